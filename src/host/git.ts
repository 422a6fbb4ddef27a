import { execFile } from 'node:child_process'
import { withoutSecrets } from './tools/shell.ts'

/** A repository this slow is treated as none; nothing that needs git is worth a longer wait. */
const GIT_TIMEOUT_MS = 10_000
const MAX_GIT_OUTPUT_BYTES = 64 * 1024 * 1024

/** Nothing that a repository configures may run: no hooks, no file-system monitor (D46). */
const SAFE_CONFIG = [
  '-c',
  'core.fsmonitor=false',
  '-c',
  'core.hooksPath=/dev/null',
  '-c',
  'core.quotePath=false',
]
/** These would point git at another repository than the one it stands in. */
const REPOSITORY_VARIABLES = ['GIT_DIR', 'GIT_WORK_TREE', 'GIT_INDEX_FILE', 'GIT_EXTERNAL_DIFF']

/** Runs a reading git command in `cwd`. @returns undefined when git is missing, fails, or there is no work tree */
export function readGit(cwd: string, args: readonly string[]): Promise<string | undefined> {
  const env: NodeJS.ProcessEnv = { ...withoutSecrets(process.env), GIT_OPTIONAL_LOCKS: '0', LC_ALL: 'C' }
  for (const name of REPOSITORY_VARIABLES) delete env[name]
  return new Promise((resolve) => {
    execFile(
      'git',
      [...SAFE_CONFIG, ...args],
      { cwd, env, timeout: GIT_TIMEOUT_MS, maxBuffer: MAX_GIT_OUTPUT_BYTES, encoding: 'utf8' },
      (error, stdout) => resolve(error ? undefined : stdout),
    )
  })
}

/** The NUL-separated names of a git answer. */
export const splitNames = (output: string): string[] => output.split('\0').filter((name) => name !== '')

/** The name of the checked-out branch; undefined when detached or outside a work tree. */
export async function gitBranch(cwd: string): Promise<string | undefined> {
  const name = (await readGit(cwd, ['symbolic-ref', '--short', '-q', 'HEAD']))?.trim()
  return name === '' ? undefined : name
}

/** The files below `cwd` that differ from the last commit or are untracked, relative to `cwd`, sorted. */
export async function changedFiles(cwd: string): Promise<string[]> {
  const names = ['--name-only', '-z', '--relative', '--no-ext-diff', '--no-textconv', '--no-renames']
  const [unstaged, staged, untracked] = await Promise.all([
    readGit(cwd, ['diff', ...names]),
    // Against the empty tree in a repository without commits: --cached does that by itself.
    readGit(cwd, ['diff', '--cached', ...names]),
    readGit(cwd, ['ls-files', '-z', '--others', '--exclude-standard']),
  ])
  const all = [unstaged, staged, untracked].flatMap((output) => splitNames(output ?? ''))
  return [...new Set(all)].sort()
}
