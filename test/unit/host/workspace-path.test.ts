import { existsSync, mkdirSync, renameSync, symlinkSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, test } from 'vitest'
import { runTool } from '../../../src/host/tools/run-tool.ts'
import { openInside, resolveExisting, resolveForWriting } from '../../../src/host/tools/workspace-path.ts'
import { tempFolder } from '../../support/node/temp-folder.ts'

/** A workspace with links out of it in every place that a path may go through. */
function trap(): { root: string; outside: string } {
  const outside = tempFolder({ 'secret.txt': 'SECRET' })
  const root = tempFolder({ 'in.txt': 'inside', 'dir/a.txt': 'a' })
  symlinkSync(path.join(outside, 'secret.txt'), path.join(root, 'link.txt'))
  symlinkSync(outside, path.join(root, 'linkdir'))
  symlinkSync(path.join(outside, 'not-there.txt'), path.join(root, 'dangling.txt'))
  symlinkSync('in.txt', path.join(root, 'inner-link.txt'))
  symlinkSync('..', path.join(root, 'dir', 'up'))
  return { root, outside }
}

const escapes = (outside: string): [string, string][] => [
  ['..', '../x.txt'],
  ['.. in the middle', 'dir/../../x.txt'],
  ['an absolute path', path.join(outside, 'secret.txt')],
  ['a sibling with the same beginning', `../${path.basename(outside)}`],
  ['a link to a file', 'link.txt'],
  ['a link to a folder', 'linkdir/secret.txt'],
  ['a new file below a link to a folder', 'linkdir/new.txt'],
  ['a new folder below a link to a folder', 'linkdir/deep/new.txt'],
  ['a link that leads nowhere', 'dangling.txt'],
  ['a chain of links', 'dir/up/linkdir/secret.txt'],
  ['NUL', 'in.txt\0.png'],
  ['nothing', ' '],
]

describe('[EC 29.13] no tool leaves the workspace', () => {
  test.each(escapes('/').map(([what]) => what))('by %s', async (what) => {
    const { root, outside } = trap()
    const given = escapes(outside).find(([name]) => name === what)?.[1] ?? ''
    for (const [name, args] of [
      ['read_file', { path: given }],
      ['write_file', { path: given, content: 'PWNED' }],
      ['edit_file', { path: given, old: 'SECRET', new: 'PWNED' }],
      ['list_files', { path: path.dirname(given) === '.' ? given : path.dirname(given) }],
      ['search_files', { query: 'SECRET', path: given }],
    ] as const) {
      const output = await runTool(name, args, { root })
      // Listing and searching nothing at all is the whole workspace, where a search finds no secret.
      expect(output.content, name).not.toContain('SECRET')
      if (name !== 'list_files' && name !== 'search_files') expect(output.isError, name).toBe(true)
    }
    expect(existsSync(path.join(outside, 'new.txt'))).toBe(false)
    expect(existsSync(path.join(outside, 'deep'))).toBe(false)
    expect(existsSync(path.join(outside, 'not-there.txt'))).toBe(false)
    expect((await runTool('shell', { command: `cat ${outside}/secret.txt` }, { root })).content).toContain(
      'SECRET',
    )
  })

  test('a link inside the workspace may be followed, and an absolute path inside may be used', async () => {
    const { root } = trap()
    expect(await resolveExisting(root, 'inner-link.txt')).toMatchObject({ value: { relative: 'in.txt' } })
    expect(await resolveExisting(root, 'dir/up/in.txt')).toMatchObject({ value: { relative: 'in.txt' } })
    expect(await resolveExisting(root, path.join(root, 'dir'))).toMatchObject({ value: { relative: 'dir' } })
    expect(await resolveForWriting(root, 'dir/up/dir/b.txt')).toMatchObject({
      value: { relative: 'dir/b.txt' },
    })
  })

  test('a message tells the path as it was given and nothing of the rest of the machine', async () => {
    const { root, outside } = trap()
    for (const given of ['linkdir/new.txt', 'link.txt', 'missing.txt']) {
      for (const resolve of [resolveExisting, resolveForWriting]) {
        const answer = await resolve(root, given)
        if (!answer.ok) expect(answer.error.message).not.toContain(outside)
        if (!answer.ok) expect(answer.error.message).not.toContain(root)
      }
    }
  })

  test('resolving a file to write changes nothing', async () => {
    const { root } = trap()
    await resolveForWriting(root, 'new/deep/file.txt')
    expect(existsSync(path.join(root, 'new'))).toBe(false)
  })

  test('a folder that is swapped for a link after it was resolved is not read through', async () => {
    const { root, outside } = trap()
    writeFileSync(path.join(outside, 'a.txt'), 'SECRET')
    const at = await resolveExisting(root, 'dir/a.txt')
    if (!at.ok) throw new Error(at.error.message)
    renameSync(path.join(root, 'dir'), path.join(root, 'moved'))
    symlinkSync(outside, path.join(root, 'dir'))
    expect(await openInside(root, at.value)).toEqual({
      ok: false,
      error: { message: 'dir/a.txt changed while it was being opened' },
    })
  })

  test.each(['.git/config', '.git/hooks/pre-commit', 'sub/.GIT/config', '.git'])(
    '[D46] %s, which git would run or obey, is not written',
    async (given) => {
      const root = tempFolder()
      mkdirSync(path.join(root, '.git'))
      const output = await runTool('write_file', { path: given, content: 'x' }, { root })
      expect(output).toMatchObject({ isError: true })
      expect(output.content).toContain('.git')
    },
  )
})
