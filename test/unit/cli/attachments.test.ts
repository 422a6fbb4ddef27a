import { mkdirSync, symlinkSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, test } from 'vitest'
import { attachFiles } from '../../../src/cli/attached-files.ts'
import { changeText } from '../../../src/cli/change-text.ts'
import { makePaint } from '../../../src/cli/paint.ts'
import { oneLine, printable, printableAnswer } from '../../../src/cli/printable.ts'
import { buildRunRequest } from '../../../src/cli/run-request.ts'
import { loadSkills, withoutFrontMatter } from '../../../src/cli/skills.ts'
import { readImage } from '../../../src/core/image.ts'
import { NO_PREFERENCES, smallPolicy } from '../../support/node/run-request.ts'
import { tempFolder } from '../../support/node/temp-folder.ts'

describe('attachFiles', () => {
  const attach = async (root: string, prompt: string, named: string[] = []) => {
    const attached = await attachFiles(root, prompt, named)
    if (!attached.ok) return attached.error
    return { prompt: attached.value.prompt, paths: attached.value.files.map(({ path }) => path) }
  }

  test('[EC 25.3] the @ goes, the file is attached once, paths are sorted', async () => {
    const root = tempFolder({ 'src/b.ts': 'b', 'a.ts': 'a' })
    expect(await attach(root, '@src/b.ts and @a.ts, (@./a.ts)', ['a.ts'])).toEqual({
      prompt: 'src/b.ts and a.ts, (@./a.ts)',
      paths: ['a.ts', 'src/b.ts'],
    })
  })

  test('what names no text file of the workspace stays as it is', async () => {
    const root = tempFolder({ 'pic.png': Uint8Array.of(0, 1) })
    mkdirSync(path.join(root, 'dir'))
    const prompt = 'ask @bob, mail a@b.org, @dir @pic.png @../x @/etc/hostname @'
    expect(await attach(root, prompt)).toEqual({ prompt, paths: [] })
  })

  test('a named file must be a text file of the workspace', async () => {
    const root = tempFolder({ 'pic.png': Uint8Array.of(0, 1) })
    expect(await attach(root, 'x', ['pic.png'])).toContain('binary')
    expect(await attach(root, 'x', ['none'])).toContain('no such file')
    expect(await attach(root, 'x', ['/etc/hostname'])).toContain('outside the workspace')
  })

  test('[EC 8.5] a picture is attached as one, by what it holds and not by its name', async () => {
    const png = Uint8Array.of(0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0, 1)
    const root = tempFolder({ 'shot.bin': png, 'text.png': 'not one' })
    const attached = await attachFiles(root, 'what is @shot.bin?', ['text.png'])
    const contents = attached.ok ? attached.value.files.map(({ content }) => content) : attached.error
    expect(contents).toEqual([`data:image/png;base64,${Buffer.from(png).toString('base64')}`, 'not one'])
    expect(attached.ok && attached.value.files.map(({ content }) => readImage(content) !== null)).toEqual([
      true,
      false,
    ])
  })

  test('the sum of the attached files is bounded', async () => {
    const big = 'x'.repeat(3_500_000)
    const root = tempFolder({ 'a.txt': big, 'b.txt': big })
    expect(await attach(root, 'x', ['a.txt'])).toMatchObject({ paths: ['a.txt'] })
    expect(await attach(root, 'x', ['a.txt', 'b.txt'])).toContain('together')
  })
})

describe('skills and instructions', () => {
  const skill = (body: string) => `---\nname: other\ndescription: d\n---\n\n${body}\n`

  test('[EC 24.4] the folder is the name, the body has no front matter, the project beats the home', async () => {
    const home = tempFolder({
      '.agents/skills/review/SKILL.md': skill('home review'),
      '.agents/skills/deploy/SKILL.md': skill('deploy'),
    })
    const root = tempFolder({
      '.agents/skills/review/SKILL.md': skill('project review'),
      '.agents/skills/list_files/SKILL.md': skill('taken'),
      '.agents/skills/bad name/SKILL.md': skill('no tool name'),
      '.agents/skills/empty/README.md': 'no skill',
    })
    expect(await loadSkills(root, new Set(['list_files']), home)).toEqual([
      { name: 'deploy', content: 'deploy\n', path: path.join(home, '.agents/skills/deploy/SKILL.md') },
      {
        name: 'review',
        content: 'project review\n',
        path: path.join(root, '.agents/skills/review/SKILL.md'),
      },
    ])
  })

  test('a project that links to the user’s own files offers neither skill nor instructions from them', async () => {
    const outside = tempFolder({ 'secret.txt': 'SECRET', 'SKILL.md': 'SECRET' })
    const root = tempFolder()
    mkdirSync(path.join(root, '.agents/skills'), { recursive: true })
    symlinkSync(outside, path.join(root, '.agents/skills/trap'))
    symlinkSync(path.join(outside, 'secret.txt'), path.join(root, 'AGENTS.md'))
    const request = await buildRunRequest({
      root,
      prompt: 'x',
      policy: smallPolicy(),
      preferences: NO_PREFERENCES,
      files: [],
    })
    expect(JSON.stringify(request)).not.toContain('SECRET')
    expect(request).toMatchObject({ ok: true, value: { attachments: { instructions: [] } } })
  })

  test.each([
    ['---\na: 1\n---\nbody', 'body'],
    ['\uFEFF---\r\na: 1\r\n---\r\n\r\nbody', 'body'],
    ['---\n---\nbody', 'body'],
    ['no front matter\n---\nx', 'no front matter\n---\nx'],
    ['---\nnever closed', '---\nnever closed'],
  ])('front matter of %j', (given, expected) => {
    expect(withoutFrontMatter(given)).toBe(expected)
  })
})

describe('what is shown', () => {
  const paint = makePaint(false)
  const at = { absolute: '/w/a.txt', relative: 'a.txt' }

  test('a new file is a diff against nothing', () => {
    const text = changeText({ at, before: null, after: 'one\n', mode: undefined }, paint)
    expect(text).toBe('--- /dev/null\n+++ b/a.txt\n@@ -0,0 +1,1 @@\n+one')
  })

  test('colours mark what comes and goes', () => {
    const text = changeText({ at, before: 'a\n', after: 'b\n', mode: undefined }, makePaint(true))
    expect(text).toContain('\u001b[31m-a\u001b[39m\n\u001b[32m+b\u001b[39m')
  })

  test('a very long diff is cut with a count', () => {
    const after = 'x\n'.repeat(5000)
    const text = changeText({ at, before: null, after, mode: undefined }, paint)
    expect(text.split('\n')).toHaveLength(1001)
    expect(text).toContain('… 4003 more lines are not shown')
  })

  test('nothing hides in a change', () => {
    const text = changeText({ at, before: null, after: 'a\u202eb\u001b[8mc\n', mode: undefined }, paint)
    expect(text).toContain('+a\\u{202e}b\\u{1b}[8mc')
  })

  test('ordinary text of any script is shown as it is in an answer', () => {
    expect(printableAnswer('Größe\t👩‍💻 שלום\r\n')).toBe('Größe\t👩‍💻 שלום\n')
    expect(printable('Größe\t שלום\r\n')).toBe('Größe\t שלום\n')
    expect(oneLine('a\n  b\tc', 5)).toBe('a b c')
    expect(oneLine('👍👍👍👍', 3)).toBe('👍👍…')
  })
})
