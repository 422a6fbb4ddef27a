import { execFileSync } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { changedFiles, gitBranch } from '../../../src/host/git.ts'
import { tempFolder } from '../../support/node/temp-folder.ts'

afterEach(() => {
  vi.unstubAllEnvs()
})

const IDENTITY = ['-c', 'user.name=t', '-c', 'user.email=t@example.org']
const git = (root: string, ...args: string[]) =>
  execFileSync('git', [...IDENTITY, ...args], { cwd: root, stdio: 'pipe' })

function repository(): string {
  const root = tempFolder({ 'a.txt': 'a', 'gone.txt': 'x', 'same.txt': 's', 'sub/b.txt': 'b' })
  git(root, 'init', '-q', '-b', 'trunk')
  git(root, 'add', '.')
  git(root, 'commit', '-q', '-m', 'first')
  return root
}

describe('git', () => {
  test('[EC 25.3] changed, staged, deleted and untracked files are named, each once', async () => {
    const root = repository()
    writeFileSync(path.join(root, 'a.txt'), 'changed')
    writeFileSync(path.join(root, 'sub/b.txt'), 'staged')
    git(root, 'add', 'sub/b.txt')
    execFileSync('rm', [path.join(root, 'gone.txt')])
    writeFileSync(path.join(root, 'neu ä.txt'), 'new')
    expect(await changedFiles(root)).toEqual(['a.txt', 'gone.txt', 'neu ä.txt', 'sub/b.txt'])
    expect(await gitBranch(root)).toBe('trunk')
  })

  test('names are relative to the workspace, and what lies outside it is left out', async () => {
    const root = repository()
    writeFileSync(path.join(root, 'a.txt'), 'changed')
    writeFileSync(path.join(root, 'sub/b.txt'), 'changed')
    writeFileSync(path.join(root, 'sub/new.txt'), 'new')
    expect(await changedFiles(path.join(root, 'sub'))).toEqual(['b.txt', 'new.txt'])
  })

  test('a repository without commits and a folder without repository are no failure', async () => {
    const root = tempFolder({ 'a.txt': 'a' })
    expect(await changedFiles(root)).toEqual([])
    expect(await gitBranch(root)).toBeUndefined()
    git(root, 'init', '-q', '-b', 'trunk')
    git(root, 'add', '.')
    expect(await changedFiles(root)).toEqual(['a.txt'])
    expect(await gitBranch(root)).toBe('trunk')
  })

  test('[D46] nothing that a repository configures is run', async () => {
    const root = repository()
    const trap = path.join(root, 'trap.sh')
    writeFileSync(trap, `#!/bin/sh\ntouch ${root}/sprung\n`)
    chmodSync(trap, 0o755)
    mkdirSync(path.join(root, 'hooks'))
    for (const key of ['core.fsmonitor', 'diff.external']) git(root, 'config', key, trap)
    writeFileSync(path.join(root, 'a.txt'), 'changed')
    expect(await changedFiles(root)).toContain('a.txt')
    expect(existsSync(path.join(root, 'sprung'))).toBe(false)
    // The control: without our care the trap does spring.
    git(root, 'status')
    expect(existsSync(path.join(root, 'sprung'))).toBe(true)
  })

  test('[D46] a filter that the repository defines is not run; one of the user’s own is', async () => {
    const root = repository()
    const [sprung, global] = [path.join(tempFolder(), 'sprung'), path.join(tempFolder(), 'gitconfig')]
    vi.stubEnv('GIT_CONFIG_GLOBAL', global)
    writeFileSync(path.join(root, '.gitattributes'), 'a.txt filter=trap=x\n')
    const edit = (text: string) => writeFileSync(path.join(root, 'a.txt'), text)
    git(root, 'config', 'filter.trap=x.clean', `touch ${sprung}; cat`)
    edit('c')
    expect(await changedFiles(root)).toContain('a.txt')
    expect(existsSync(sprung)).toBe(false)
    git(root, 'config', '--unset', 'filter.trap=x.clean')
    git(root, 'config', '--global', 'filter.trap=x.clean', `touch ${sprung}; cat`)
    edit('d')
    await changedFiles(root)
    expect(existsSync(sprung)).toBe(true)
  })
})
