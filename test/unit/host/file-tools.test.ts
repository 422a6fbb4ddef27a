import { execFileSync } from 'node:child_process'
import { chmodSync, mkdirSync, readdirSync, readFileSync, statSync, symlinkSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, test } from 'vitest'
import { MAX_READ_BYTES } from '../../../src/host/tools/read-file.ts'
import { previewChange, runTool } from '../../../src/host/tools/run-tool.ts'
import { tempFolder } from '../../support/node/temp-folder.ts'

const read = (root: string, args: Record<string, unknown>) => runTool('read_file', args, { root })

describe('read_file', () => {
  test('gives the text as it is, byte order mark and line endings included', async () => {
    const text = '\uFEFFeins\r\nzwei ü 😀\n'
    const root = tempFolder({ 'a.txt': text })
    expect(await read(root, { path: 'a.txt' })).toEqual({
      content: text,
      isError: false,
      summary: '2 lines, 22 B',
    })
  })

  test('[U44] a long file comes in pages, and the pages are the file', async () => {
    const text = Array.from({ length: 20_000 }, (_, i) => `line ${i} ${'ä'.repeat(10)}\n`).join('')
    const root = tempFolder({ 'long.txt': text })
    let all = ''
    let offset: string | undefined = '1'
    while (offset !== undefined) {
      const { content } = await read(root, { path: 'long.txt', offset })
      const note = content.lastIndexOf('\n[Lines ')
      const page = note < 0 ? content : content.slice(0, note)
      expect(Buffer.byteLength(page)).toBeLessThanOrEqual(MAX_READ_BYTES)
      all += page
      offset = /"offset": "(\d+)"/.exec(content.slice(page.length))?.[1]
    }
    expect(all).toBe(text)
  })

  test.each([
    [{}, 'a\nb\nc\n'],
    [{ offset: 2 }, 'b\nc\n'],
    [{ offset: '3', limit: '1' }, 'c\n'],
    [{ limit: 3 }, 'a\nb\nc\n'],
  ])('lines %j', async (args, expected) => {
    const root = tempFolder({ 'a.txt': 'a\nb\nc\n' })
    expect((await read(root, { path: 'a.txt', ...args })).content).toBe(expected)
  })

  test('a limited read says how to read on', async () => {
    const root = tempFolder({ 'a.txt': 'a\nb\nc\n' })
    expect((await read(root, { path: 'a.txt', limit: '2' })).content).toBe(
      'a\nb\n\n[Lines 1 to 2 of a.txt (6 B in all). To read on, call read_lines with "offset": "3".]',
    )
  })

  test('exactly as many bytes as fit are not cut; one more is', async () => {
    const line = `${'x'.repeat(1023)}\n`
    const full = line.repeat(MAX_READ_BYTES / 1024)
    const root = tempFolder({ 'full.txt': full, 'over.txt': `${full}y` })
    expect((await read(root, { path: 'full.txt' })).content).toBe(full)
    expect((await read(root, { path: 'over.txt' })).content).toContain('"offset": "257"')
  })

  test('a line longer than a page is cut between characters and says so', async () => {
    const root = tempFolder({ 'wide.txt': '€'.repeat(MAX_READ_BYTES) })
    const { content, isError } = await read(root, { path: 'wide.txt' })
    expect(isError).toBe(false)
    expect(content).not.toContain('\uFFFD')
    expect(content).toContain('longer than')
  })

  test.each([
    ['bytes that are not UTF-8', Uint8Array.of(0x66, 0xff, 0xfe)],
    ['a NUL', Uint8Array.of(0x66, 0, 0x67)],
  ])('a file with %s is refused with a sentence', async (_what, bytes) => {
    const root = tempFolder({ 'b.bin': bytes })
    const output = await read(root, { path: 'b.bin' })
    expect(output.isError).toBe(true)
    expect(output.content).toContain('binary')
  })

  test.each([
    ['a folder', { path: 'dir' }, 'dir is a folder'],
    ['nothing there', { path: 'no.txt' }, 'no.txt: no such file or folder'],
    ['a named pipe', { path: 'pipe' }, 'pipe is not a regular file'],
    ['past the end', { path: 'a.txt', offset: '9' }, 'a.txt ends before line 9'],
    ['a wrong offset', { path: 'a.txt', offset: 'x' }, 'the argument `offset` must be a whole number from 1'],
    ['no path', {}, 'the argument `path` is missing; it is a text'],
  ])('%s is an error in words', async (_what, args, message) => {
    const root = tempFolder({ 'a.txt': 'a\n' })
    mkdirSync(path.join(root, 'dir'))
    execFileSync('mkfifo', [path.join(root, 'pipe')])
    expect(await read(root, args)).toEqual({ content: message, isError: true, summary: 'failed' })
  })
})

describe('write_file', () => {
  test('creates the file and its folders, and leaves nothing else behind', async () => {
    const root = tempFolder()
    const output = await runTool('write_file', { path: 'a/b/c.txt', content: 'one\ntwo' }, { root })
    expect(output).toEqual({
      content: 'a/b/c.txt created (2 lines, 7 B)',
      isError: false,
      summary: 'created, 2 lines',
    })
    expect(readdirSync(path.join(root, 'a/b'))).toEqual(['c.txt'])
    expect(readFileSync(path.join(root, 'a/b/c.txt'), 'utf8')).toBe('one\ntwo')
  })

  test('keeps the mode of a file that it replaces', async () => {
    const root = tempFolder({ 'run.sh': 'old' })
    chmodSync(path.join(root, 'run.sh'), 0o751)
    await runTool('write_file', { path: 'run.sh', content: 'new' }, { root })
    expect(statSync(path.join(root, 'run.sh')).mode & 0o777).toBe(0o751)
  })

  test('writes through a link inside the workspace and keeps the link', async () => {
    const root = tempFolder({ 'real.txt': 'old' })
    symlinkSync('real.txt', path.join(root, 'link.txt'))
    await runTool('write_file', { path: 'link.txt', content: 'new' }, { root })
    expect(readFileSync(path.join(root, 'real.txt'), 'utf8')).toBe('new')
    expect(readdirSync(root).sort()).toEqual(['link.txt', 'real.txt'])
  })

  test('a file in the place of a folder is an error in words', async () => {
    const root = tempFolder({ 'a.txt': 'x' })
    const output = await runTool('write_file', { path: 'a.txt/b.txt', content: 'y' }, { root })
    expect(output).toMatchObject({ isError: true, content: 'a.txt is not a folder' })
  })

  test('the preview tells what would be written and writes nothing', async () => {
    const root = tempFolder({ 'a.txt': 'old' })
    const change = await previewChange('write_file', { path: 'new/b.txt', content: 'x' }, root)
    expect(change).toMatchObject({ ok: true, value: { before: null, after: 'x' } })
    expect(await previewChange('write_file', { path: 'a.txt', content: 'x' }, root)).toMatchObject({
      value: { before: 'old', after: 'x' },
    })
    expect(readdirSync(root)).toEqual(['a.txt'])
  })
})

describe('edit_file', () => {
  const edit = (root: string, args: Record<string, string>) =>
    runTool('edit_file', { path: 'a.txt', ...args }, { root })
  const content = (root: string) => readFileSync(path.join(root, 'a.txt'), 'utf8')

  test('replaces the one place, literally', async () => {
    const root = tempFolder({ 'a.txt': 'let a = 1\nlet b = 2\n' })
    const output = await edit(root, { old: 'let b = 2', new: 'let b = $& $1 \\n' })
    expect(output.isError).toBe(false)
    expect(content(root)).toBe('let a = 1\nlet b = $& $1 \\n\n')
  })

  test.each([
    ['none', { old: 'zzz', new: 'y' }, /does not occur in a\.txt/],
    ['several', { old: 'let', new: 'y' }, /occurs 2 times in a\.txt/],
    ['overlapping', { old: 'aa', new: 'y' }, /occurs 2 times/],
    ['an empty text', { old: '', new: 'y' }, /`old` is empty/],
    ['the same text', { old: 'let', new: 'let' }, /the same text/],
  ])('%s is a clear error and changes nothing', async (_what, args, message) => {
    const before = 'let x = "aaa"\nlet y\n'
    const root = tempFolder({ 'a.txt': before })
    const output = await edit(root, args)
    expect(output.isError).toBe(true)
    expect(output.content).toMatch(message)
    expect(content(root)).toBe(before)
  })

  test('a file with CRLF is matched by LF and keeps its line endings', async () => {
    const root = tempFolder({ 'a.txt': 'one\r\ntwo\r\nthree\r\n' })
    await edit(root, { old: 'one\ntwo', new: 'eins\nzwei' })
    expect(content(root)).toBe('eins\r\nzwei\r\nthree\r\n')
  })

  test('a file that does not exist or is binary is refused', async () => {
    const root = tempFolder({ 'b.bin': Uint8Array.of(0, 1, 2) })
    expect((await edit(root, { old: 'a', new: 'b' })).content).toContain('no such file')
    expect((await runTool('edit_file', { path: 'b.bin', old: 'a', new: 'b' }, { root })).content).toContain(
      'binary',
    )
  })

  test('text may be removed', async () => {
    const root = tempFolder({ 'a.txt': 'keep drop' })
    await edit(root, { old: ' drop', new: '' })
    expect(content(root)).toBe('keep')
  })
})

describe('list_files and search_files', () => {
  const git = (root: string, ...args: string[]) => execFileSync('git', args, { cwd: root, stdio: 'pipe' })
  const files = {
    'src/a.ts': 'const Needle = 1\nother\n',
    'src/deep/b/c/d.ts': 'needle needle\n',
    'node_modules/x/index.js': 'needle\n',
    'ignored/z.txt': 'needle\n',
    '.gitignore': 'ignored/\nnode_modules/\n',
    'bin.dat': Uint8Array.of(0, 1),
    '.env': 'TOKEN=needle\n',
  }

  test('in a git work tree what git ignores stays out, and untracked files are in', async () => {
    const root = tempFolder(files)
    git(root, 'init', '-q')
    git(root, 'add', 'src/a.ts')
    const output = await runTool('list_files', { depth: '9' }, { root })
    expect(output.content.split('\n')).toEqual([
      '.env',
      '.gitignore',
      'bin.dat',
      'src/a.ts',
      'src/deep/b/c/d.ts',
      '[5 files in .]',
    ])
  })

  test('a tracked file that was deleted is not listed', async () => {
    const root = tempFolder({ 'a.txt': 'x', 'b.txt': 'y' })
    git(root, 'init', '-q')
    git(root, 'add', '.')
    execFileSync('rm', [path.join(root, 'a.txt')])
    expect((await runTool('list_files', {}, { root })).content.split('\n')[0]).toBe('b.txt')
  })

  test('elsewhere the walk leaves node_modules out and sums up deep folders', async () => {
    const root = tempFolder(files)
    const output = await runTool('list_files', { depth: '2' }, { root })
    expect(output.content.split('\n')).toEqual([
      '.env',
      '.gitignore',
      'bin.dat',
      'ignored/z.txt',
      'src/a.ts',
      'src/deep/ (1 file)',
      '[6 files in .]',
    ])
    const inner = await runTool('list_files', { path: 'src/deep' }, { root })
    expect(inner.content).toContain('src/deep/b/c/d.ts')
  })

  test('a folder that git ignores as a whole can still be listed', async () => {
    const root = tempFolder(files)
    git(root, 'init', '-q')
    expect((await runTool('list_files', { path: 'ignored' }, { root })).content).toContain('ignored/z.txt')
  })

  test('[U44] a long list comes in pages that reach everything', async () => {
    const names = Array.from({ length: 1200 }, (_, i) => `f${String(i).padStart(4, '0')}.txt`)
    const root = tempFolder(Object.fromEntries(names.map((name) => [name, ''])))
    const seen: string[] = []
    for (let offset: string | undefined = '1'; offset !== undefined; ) {
      const { content }: { content: string } = await runTool('list_files', { offset }, { root })
      seen.push(...content.split('\n').filter((line) => !line.startsWith('[')))
      offset = /"offset": "(\d+)"/.exec(content)?.[1]
    }
    expect(seen).toEqual(names)
  })

  test('a search ignores case, quotes lines with their number and counts', async () => {
    const root = tempFolder(files)
    const output = await runTool('search_files', { query: 'NEEDLE', path: 'src' }, { root })
    expect(output.content.split('\n')).toEqual([
      'src/a.ts:1: const Needle = 1',
      'src/deep/b/c/d.ts:1: needle needle',
      '[2 matches in 2 of 2 files.]',
    ])
  })

  test('the query is plain text, not a pattern', async () => {
    const root = tempFolder({ 'a.txt': 'f(x)[0] .* ^$\nfoo\n' })
    expect((await runTool('search_files', { query: '(x)[0] .*' }, { root })).content).toContain('a.txt:1:')
    expect((await runTool('search_files', { query: 'f.o' }, { root })).content).toBe('[No match in 1 file.]')
  })

  test('[EC 9] restricted files are not quoted, whatever the query, and are counted', async () => {
    const root = tempFolder(files)
    const output = await runTool('search_files', { query: 'TOKEN' }, { root, restrictedPaths: ['**/.env'] })
    expect(output.content).not.toContain('needle')
    expect(output.content).toContain('[1 restricted file not searched.]')
    const free = await runTool('search_files', { query: 'TOKEN' }, { root })
    expect(free.content).toContain('.env:1: TOKEN=needle')
  })

  test('a file may be searched alone, and a long line is shown around the match', async () => {
    const root = tempFolder({ 'a.txt': `${'x'.repeat(5000)}needle${'y'.repeat(5000)}\n` })
    const output = await runTool('search_files', { query: 'needle', path: 'a.txt' }, { root })
    expect(output.content.length).toBeLessThan(400)
    expect(output.content).toContain('xneedley')
  })

  test('[U44] many matches come in pages that reach everything', async () => {
    const root = tempFolder({ 'a.txt': Array.from({ length: 250 }, (_, i) => `needle ${i}\n`).join('') })
    const seen: string[] = []
    for (let offset: string | undefined = '1'; offset !== undefined; ) {
      const { content }: { content: string } = await runTool(
        'search_files',
        { query: 'needle', offset },
        { root },
      )
      seen.push(...content.split('\n').filter((line) => line.startsWith('a.txt')))
      offset = /"offset": "(\d+)"/.exec(content)?.[1]
    }
    expect(seen).toEqual(Array.from({ length: 250 }, (_, i) => `a.txt:${i + 1}: needle ${i}`))
  })
})

test('a tool that this machine lacks is an error in words', async () => {
  expect(await runTool('launch', null, { root: tempFolder() })).toMatchObject({
    isError: true,
    content: 'there is no tool "launch" on this machine',
  })
})
