import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import path from 'node:path'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { runTool } from '../../../src/host/tools/run-tool.ts'
import { tempFolder } from '../../support/node/temp-folder.ts'

afterEach(() => {
  vi.unstubAllEnvs()
})

const IDENTITY = ['-c', 'user.name=t', '-c', 'user.email=t@example.org']
const git = (root: string, ...args: string[]) =>
  execFileSync('git', [...IDENTITY, ...args], { cwd: root, stdio: 'pipe', encoding: 'utf8' })

/** A repository with these files in its one commit. */
function repository(files: Readonly<Record<string, string | Uint8Array>>): string {
  const root = tempFolder(files)
  git(root, 'init', '-q', '-b', 'trunk')
  git(root, 'add', '.')
  git(root, 'commit', '-q', '--allow-empty', '-m', 'first')
  return root
}

function write(root: string, name: string, content: string | Uint8Array): void {
  mkdirSync(path.dirname(path.join(root, name)), { recursive: true })
  writeFileSync(path.join(root, name), content)
}

const show = (root: string, args: Record<string, unknown> = {}, restrictedPaths: string[] = []) =>
  runTool('show_changes', args, { root, restrictedPaths })

/** Every page, one behind the other, without the notes. */
async function allPages(root: string): Promise<{ lines: string[]; pages: number; longest: number }> {
  const lines: string[] = []
  let pages = 0
  let longest = 0
  for (let offset: string | undefined = '1'; offset !== undefined; pages++) {
    const { content }: { content: string } = await show(root, { offset })
    longest = Math.max(longest, Buffer.byteLength(content))
    offset = /\n\[Lines .*"offset": "(\d+)", or narrow `path`\.\]$/.exec(content)?.[1]
    lines.push(...content.split('\n').filter((line) => !/^\[(Lines|Long lines) /.test(line)))
  }
  return { lines, pages, longest }
}

describe('[EC 26.13] show_changes', () => {
  test('counts come first, then the names of untracked files, then one diff of what is staged and what is not', async () => {
    const root = repository({
      'a.txt': 'one\ntwo\n',
      'both.txt': '1\n',
      'gone.txt': 'x\n',
      'same.txt': 's\n',
    })
    write(root, 'a.txt', 'one\n2\n')
    write(root, 'both.txt', '1\n2\n')
    git(root, 'add', 'both.txt')
    write(root, 'both.txt', '1\n2\n3\n')
    write(root, 'new.txt', 'n\n')
    git(root, 'add', 'new.txt')
    rmSync(path.join(root, 'gone.txt'))
    write(root, 'sub/notes.txt', 'not read')
    const output = await show(root)
    expect(output).toMatchObject({ isError: false, summary: '4 files changed, +4 -2, 1 untracked' })
    expect(output.content.replace(/^index .*\n/gm, '').split('\n')).toEqual([
      '[4 changed files (+4 -2), 1 untracked file in the workspace, against the last commit]',
      '+1 -1 a.txt',
      '+2 -0 both.txt (staged in part)',
      '+0 -1 gone.txt',
      '+1 -0 new.txt (staged)',
      'sub/notes.txt (untracked)',
      '',
      'diff --git a/a.txt b/a.txt',
      '--- a/a.txt',
      '+++ b/a.txt',
      '@@ -1,2 +1,2 @@',
      ' one',
      '-two',
      '+2',
      'diff --git a/both.txt b/both.txt',
      '--- a/both.txt',
      '+++ b/both.txt',
      '@@ -1 +1,3 @@',
      ' 1',
      '+2',
      '+3',
      'diff --git a/gone.txt b/gone.txt',
      'deleted file mode 100644',
      '--- a/gone.txt',
      '+++ /dev/null',
      '@@ -1 +0,0 @@',
      '-x',
      'diff --git a/new.txt b/new.txt',
      'new file mode 100644',
      '--- /dev/null',
      '+++ b/new.txt',
      '@@ -0,0 +1 @@',
      '+n',
    ])
  })

  test('a path narrows it to a folder or a file, one that was deleted included', async () => {
    const root = repository({ 'a.txt': 'a\n', 'sub/b.txt': 'b\n', 'sub/c.txt': 'c\n' })
    write(root, 'a.txt', 'changed\n')
    rmSync(path.join(root, 'sub'), { recursive: true })
    const folder = await show(root, { path: 'sub' })
    expect(folder.content.split('\n').slice(0, 3)).toEqual([
      '[2 changed files (+0 -2), 0 untracked files in sub, against the last commit]',
      '+0 -1 sub/b.txt',
      '+0 -1 sub/c.txt',
    ])
    expect(folder.content).not.toContain('a.txt')
    expect((await show(root, { path: 'sub/b.txt' })).content).toContain('\n-b')
    expect(await show(root, { path: 'sub/never.txt' })).toMatchObject({
      isError: true,
      content: 'sub/never.txt: no such file or folder',
    })
  })

  test('without changes it says so, and ignored files are none', async () => {
    const root = repository({ '.gitignore': 'out/\n', 'a.txt': 'a' })
    write(root, 'out/x.txt', 'x')
    expect(await show(root)).toEqual({
      content: '[No changes in the workspace, against the last commit.]',
      isError: false,
      summary: 'no changes',
    })
  })

  test('before the first commit everything that was added is a change', async () => {
    const root = tempFolder({ 'a.txt': 'a\n', 'b.txt': 'b\n' })
    git(root, 'init', '-q')
    git(root, 'add', 'a.txt')
    const { content } = await show(root)
    expect(content).toContain('there is no commit yet]\n+1 -0 a.txt (staged)\nb.txt (untracked)\n')
    expect(content).toContain('\n+a')
  })

  test('a file in conflict is marked, and shown with its markers', async () => {
    const root = repository({ 'a.txt': 'base\n' })
    git(root, 'checkout', '-q', '-b', 'other')
    write(root, 'a.txt', 'theirs\n')
    git(root, 'commit', '-q', '-a', '-m', 'theirs')
    git(root, 'checkout', '-q', 'trunk')
    write(root, 'a.txt', 'ours\n')
    git(root, 'commit', '-q', '-a', '-m', 'ours')
    expect(() => git(root, 'merge', 'other')).toThrow()
    const { content } = await show(root)
    expect(content).toContain('\n+4 -0 a.txt (in conflict)\n')
    expect(content).toContain('\n+theirs\n')
  })

  test('what is staged and undone in the workspace is listed, since it would be committed', async () => {
    const root = repository({ 'a.txt': 'a\n' })
    write(root, 'a.txt', 'b\n')
    git(root, 'add', '.')
    write(root, 'a.txt', 'a\n')
    expect((await show(root)).content.split('\n')[1]).toBe('+0 -0 a.txt (staged, then undone)')
  })

  test('a file that was only touched is no change, whatever is in it', async () => {
    const root = repository({ 'a.txt': 'a\n', 'b.bin': Uint8Array.of(0, 1) })
    for (const name of ['a.txt', 'b.bin']) utimesSync(path.join(root, name), 1_000_000_000, 1_000_000_000)
    expect((await show(root)).summary).toBe('no changes')
  })

  test('a binary file is named and not dumped', async () => {
    const root = repository({ 'pic.bin': Uint8Array.of(0, 1, 2), 'a.txt': 'a\n' })
    write(root, 'pic.bin', Uint8Array.of(0, 1, 3))
    const { content } = await show(root)
    expect(content).toBe(
      '[1 changed file (+0 -0), 0 untracked files in the workspace, against the last commit]\npic.bin (binary or very large, not shown)',
    )
  })

  test('a very large file is named and not compared', async () => {
    const root = repository({ 'big.txt': 'x\n' })
    write(root, 'big.txt', 'y\n'.repeat(5_000_000))
    expect((await show(root)).content).toContain('\nbig.txt (binary or very large, not shown)')
  })

  test('names that are made to confuse are quoted, and their diff is there', async () => {
    const names = [
      'two\nlines.txt',
      '-rf',
      '"quoted"',
      ':(top)x',
      '*',
      'tab\there',
      '[Lines 1 to 2.]',
      'ä ö.txt',
    ]
    const root = repository(Object.fromEntries(names.map((name) => [name, 'old\n'])))
    for (const [index, name] of names.entries()) write(root, name, `new ${index}\n`)
    write(root, 'un\ntracked', '')
    const { content } = await show(root)
    const list = content.split('\n\n')[0]?.split('\n') ?? []
    expect(list.slice(1).sort()).toEqual(
      [
        '+1 -1 "two\\nlines.txt"',
        '+1 -1 -rf',
        '+1 -1 "\\"quoted\\""',
        '+1 -1 :(top)x',
        '+1 -1 *',
        '+1 -1 "tab\\there"',
        '+1 -1 "[Lines 1 to 2.]"',
        '+1 -1 ä ö.txt',
        '"un\\ntracked" (untracked)',
      ].sort(),
    )
    for (const index of names.keys()) expect(content.split(`\n+new ${index}`)).toHaveLength(2)
    expect((await show(root, { path: '*' })).content).not.toContain('-rf')
    expect((await show(root, { path: '-rf' })).content).toContain(`\n+new ${names.indexOf('-rf')}`)
  })

  test('a name that is no text is told as such, and the rest is shown', async () => {
    const root = repository({ 'a.txt': 'a\n' })
    const blob = git(root, 'hash-object', '-w', 'a.txt').trim()
    const entry = Buffer.concat([Buffer.from(`100644 ${blob}\tb`), Buffer.of(0xff), Buffer.from('.txt\n')])
    execFileSync('git', ['update-index', '--index-info'], { cwd: root, input: entry })
    git(root, 'commit', '-q', '-m', 'second')
    write(root, 'a.txt', 'b\n')
    const { content } = await show(root)
    expect(content).toContain('\n+0 -1 b\uFFFD.txt (its name is not UTF-8, not shown)\n\ndiff --git a/a.txt')
  })

  test('outside a repository, and without git, the answer is a sentence', async () => {
    const root = tempFolder({ 'a.txt': 'a' })
    expect(await show(root)).toMatchObject({
      isError: true,
      content: expect.stringContaining('no git repository'),
    })
    git(root, 'init', '-q')
    expect((await show(path.join(root, '.git'))).content).toContain('no git repository')
    vi.stubEnv('PATH', tempFolder())
    expect(await show(root)).toMatchObject({
      isError: true,
      content: expect.stringContaining('not installed'),
    })
  })

  test('a damaged repository is told in the words of git', async () => {
    const root = repository({ 'a.txt': 'a' })
    write(root, '.git/index', 'no index')
    expect(await show(root)).toMatchObject({
      isError: true,
      content: expect.stringMatching(/^git failed: .*index/),
    })
  })

  test('a stopped run does not wait for git', async () => {
    const stopped = await runTool('show_changes', {}, { root: repository({}), signal: AbortSignal.abort() })
    expect(stopped).toMatchObject({ isError: true, content: 'stopped by the user' })
  })
})

describe('[EC 29.13] show_changes stays inside the workspace', () => {
  test('a workspace below the top of the repository shows its own changes only, by names of its own', async () => {
    const top = repository({ 'top.txt': 't\n', 'sub/a.txt': 'a\n' })
    write(top, 'top.txt', 'SECRET\n')
    write(top, 'sub/a.txt', 'b\n')
    write(top, 'untracked.txt', 'SECRET')
    const { content } = await show(path.join(top, 'sub'))
    expect(content).toContain('\n+1 -1 a.txt\n\ndiff --git a/a.txt b/a.txt\n')
    expect(content).not.toMatch(/SECRET|top\.txt|untracked\.txt/)
  })

  test.each(['../top.txt', 'out/top.txt', '/etc', 'a\0b'])('%j is refused', async (given) => {
    const top = repository({ 'top.txt': 't\n', 'sub/a.txt': 'a\n' })
    symlinkSync('..', path.join(top, 'sub/out'))
    write(top, 'top.txt', 'SECRET\n')
    const output = await show(path.join(top, 'sub'), { path: given })
    expect(output.isError).toBe(true)
    expect(output.content).not.toContain('SECRET')
  })
})

describe('[EC 9] show_changes quotes nothing of restricted files', () => {
  test('they are listed with their counts', async () => {
    const root = repository({ '.env': 'TOKEN=old\n', 'a.txt': 'a\n' })
    write(root, '.env', 'TOKEN=new\n')
    write(root, 'a.txt', 'b\n')
    const { content } = await show(root, {}, ['**/.env'])
    expect(content).toContain('\n+1 -1 .env (restricted, not shown)\n')
    expect(content).toContain('\n+b')
    expect(content).not.toContain('TOKEN')
    expect((await show(root, { path: '.env' }, ['**/.env'])).content).not.toContain('TOKEN')
    // The control: without the restriction it is shown.
    expect((await show(root)).content).toContain('TOKEN')
  })

  test('nor where a restricted file lies in a folder that has taken the place of a file', async () => {
    const root = repository({ conf: 'plain\n' })
    rmSync(path.join(root, 'conf'))
    write(root, 'conf/.env', 'TOKEN=1\n')
    write(root, 'conf/open.txt', 'open\n')
    git(root, 'add', '-A')
    const { content } = await show(root, {}, ['**/.env'])
    expect(content).not.toContain('TOKEN')
    for (const line of ['-plain', '+open']) expect(content.split(`\n${line}`)).toHaveLength(2)
  })

  test('a rename is a file that goes and one that comes, so that each name is judged by itself', async () => {
    const text = Array.from({ length: 50 }, (_, i) => `TOKEN ${i}\n`).join('')
    const root = repository({ '.env': text, 'a.txt': 'a\n' })
    git(root, 'config', 'diff.renames', 'true')
    git(root, 'config', 'status.renames', 'true')
    git(root, 'mv', '.env', 'open.txt')
    git(root, 'mv', 'a.txt', 'b.txt')
    const { content } = await show(root, {}, ['**/.env'])
    expect(content.split('\n\n')[0]?.split('\n').slice(1)).toEqual([
      '+0 -50 .env (staged; restricted, not shown)',
      '+0 -1 a.txt (staged)',
      '+1 -0 b.txt (staged)',
      '+50 -0 open.txt (staged)',
    ])
    expect(content).not.toContain('\n-TOKEN')
    expect(content).toContain('\n+TOKEN')
  })
})

describe('[U44] large changes', () => {
  test('come in bounded pages that reach everything, in order and once', async () => {
    const names = Array.from({ length: 120 }, (_, i) => `f${String(i).padStart(3, '0')}.txt`)
    const root = repository(Object.fromEntries(names.map((name) => [name, 'old\n'])))
    for (const name of names)
      write(
        root,
        name,
        Array.from({ length: 60 }, (_, i) => `${name} line ${i} ${'.'.repeat(30)}\n`).join(''),
      )
    const { lines, pages, longest } = await allPages(root)
    expect(pages).toBeGreaterThan(4)
    expect(longest).toBeLessThan(66 * 1024)
    expect(lines[0]).toContain('[120 changed files (+7200 -120)')
    const diff = lines.slice(lines.indexOf('') + 1)
    expect(`${diff.join('\n')}\n`).toBe(git(root, 'diff', '--no-color'))
  })

  test('a line longer than a page is broken, and every piece of it can be reached', async () => {
    const long = Array.from({ length: 40_000 }, (_, i) => `<${i}👍>`).join('')
    const root = repository({ 'min.js': 'x\n' })
    write(root, 'min.js', `${long}\n`)
    const { lines, pages } = await allPages(root)
    expect(pages).toBeGreaterThan(3)
    const start = lines.findIndex((line) => line.startsWith('+<0'))
    expect(
      lines
        .slice(start)
        .map((line) => line.slice(1))
        .join(''),
    ).toBe(long)
    expect((await show(root)).content).toContain('what begins with … goes on from the line before')
  })

  test('many untracked files do not stand between the counts and the diff, and all are listed', async () => {
    const names = Array.from({ length: 3000 }, (_, i) => `u${String(i).padStart(4, '0')}${'x'.repeat(30)}`)
    const root = repository({ 'a.txt': 'a\n' })
    write(root, 'a.txt', 'b\n')
    for (const name of names) write(root, name, '')
    const first = await show(root)
    expect(first.content).toContain('\n(2900 more untracked files are listed after the diff)\n\ndiff --git')
    expect(first.content).not.toContain('Long lines')
    const { lines } = await allPages(root)
    expect(lines.filter((line) => line.endsWith(' (untracked)')).sort()).toEqual(
      names.map((name) => `${name} (untracked)`),
    )
  })

  test('an offset behind the end is an error that says where the end is', async () => {
    const root = repository({ 'a.txt': 'a' })
    write(root, 'b.txt', 'b')
    expect(await show(root, { offset: '9' })).toMatchObject({
      isError: true,
      content: 'there are only 2 lines to show',
    })
  })
})

describe('[D46] show_changes', () => {
  test('runs nothing that the repository configures', async () => {
    const root = repository({ 'a.txt': 'a\n', '.gitattributes': '*.txt diff=trap filter=trap\n' })
    const sprung = path.join(tempFolder(), 'sprung')
    const trap = path.join(root, 'trap.sh')
    write(root, 'trap.sh', `#!/bin/sh\ntouch ${sprung}\ncat\n`)
    chmodSync(trap, 0o755)
    const programs = [
      ...['core.fsmonitor', 'core.pager', 'pager.diff', 'diff.external', 'diff.trap.command'],
      ...['diff.trap.textconv', 'filter.trap.clean', 'filter.trap.process'],
    ]
    for (const key of programs) git(root, 'config', key, trap)
    git(root, 'config', 'filter.trap.required', 'true')
    write(root, 'a.txt', 'b\n')
    expect((await show(root)).content).toContain('\n-a\n+b')
    expect(existsSync(sprung)).toBe(false)
    // The control: each of these by itself does spring where nothing holds it.
    for (const key of programs) git(root, 'config', '--unset', key)
    git(root, 'config', 'filter.trap.required', 'false')
    for (const key of ['diff.external', 'diff.trap.textconv', 'filter.trap.clean']) {
      git(root, 'config', key, trap)
      write(root, 'a.txt', `${key}\n`)
      git(root, 'diff')
      expect(existsSync(sprung), key).toBe(true)
      rmSync(sprung)
      git(root, 'config', '--unset', key)
    }
  })

  test('fetches nothing that a partial clone lacks', async () => {
    const origin = repository({ 'a.txt': 'a\n' })
    git(origin, 'config', 'uploadpack.allowFilter', 'true')
    const root = tempFolder()
    git(root, 'clone', '-q', '--no-local', '--filter=blob:none', '--no-checkout', `file://${origin}`, '.')
    write(root, 'a.txt', 'b\n')
    git(root, 'reset', '-q')
    const sprung = path.join(tempFolder(), 'sprung')
    write(root, '.git/trap.sh', `#!/bin/sh\ntouch ${sprung}\nexec git-upload-pack "$@"\n`)
    chmodSync(path.join(root, '.git/trap.sh'), 0o755)
    git(root, 'config', 'remote.origin.uploadpack', path.join(root, '.git/trap.sh'))
    expect(await show(root)).toMatchObject({ isError: true, content: expect.stringMatching(/^git failed: /) })
    expect(existsSync(sprung)).toBe(false)
    git(root, 'diff')
    expect(existsSync(sprung)).toBe(true)
  })

  test('takes no lock and leaves the index as it is', async () => {
    const root = repository({ 'a.txt': 'a\n', 'b.txt': 'b\n' })
    // A file that was touched: git notes in the index that it is unchanged, unless it is told not to.
    utimesSync(path.join(root, 'b.txt'), 1_000_000_000, 1_000_000_000)
    write(root, 'a.txt', 'b\n')
    const index = () => readFileSync(path.join(root, '.git/index'))
    const before = index()
    expect((await show(root)).content).toContain('[1 changed file (+1 -1)')
    expect(index()).toEqual(before)
    // The control.
    git(root, 'diff')
    expect(index()).not.toEqual(before)
    write(root, '.git/index.lock', '')
    expect((await show(root)).isError).toBe(false)
  })

  test('settings of the user do not change the form of what is shown', async () => {
    const root = repository({ 'a.txt': '1\n2\n3\n4\n5\n6\n7\n8\n9\n' })
    write(root, 'a.txt', '1\n2\n3\n4\nV\n6\n7\n8\n9\n')
    const plain = (await show(root)).content
    for (const [key, value] of [
      ['color.ui', 'always'],
      ['diff.noprefix', 'true'],
      ['diff.mnemonicPrefix', 'true'],
      ['diff.context', '1'],
      ['diff.orderFile', '/not/there'],
      ['diff.relative', 'false'],
    ] as const)
      git(root, 'config', key, value)
    expect((await show(root)).content).toBe(plain)
    vi.stubEnv('GIT_EXTERNAL_DIFF', 'false')
    vi.stubEnv('GIT_DIFF_OPTS', '-u0')
    vi.stubEnv('GIT_LITERAL_PATHSPECS', '1')
    vi.stubEnv('GIT_DIR', '/not/there')
    expect((await show(root)).content).toBe(plain)
  })
})
