import { execFile } from 'node:child_process'
import { err, ok, type Result } from '../protocol/result.ts'
import { withoutSecrets } from './tools/shell.ts'

/** A repository this slow is treated as none; nothing that needs git is worth a longer wait. */
export const GIT_TIMEOUT_MS = 10_000
/** An answer is held in memory whole. */
export const MAX_GIT_OUTPUT_BYTES = 64 * 1024 * 1024

/** Nothing that a repository configures may run: no hooks, no file-system monitor, no pager (D46). */
const SAFE_OPTIONS = [
  '--no-pager',
  '--no-optional-locks',
  '-c',
  'core.fsmonitor=false',
  '-c',
  'core.hooksPath=/dev/null',
  '-c',
  'core.quotePath=false',
  // Else a diff notes in the index what it learnt, lock or no lock.
  '-c',
  'diff.autoRefreshIndex=false',
  // An order file that is not there would be a failure.
  '-c',
  'diff.orderFile=/dev/null',
]
/** A clone may lack objects, which git would fetch with programs that the repository names; reading never fetches. */
const NO_FETCH = { GIT_NO_LAZY_FETCH: '1', GIT_ALLOW_PROTOCOL: '', GIT_TERMINAL_PROMPT: '0' }
/** These would point git at another repository than the one it stands in, or change what arguments mean. */
const FOREIGN_VARIABLES = [
  'GIT_DIR',
  'GIT_WORK_TREE',
  'GIT_COMMON_DIR',
  'GIT_INDEX_FILE',
  'GIT_OBJECT_DIRECTORY',
  'GIT_NAMESPACE',
  'GIT_EXTERNAL_DIFF',
  'GIT_DIFF_OPTS',
  'GIT_LITERAL_PATHSPECS',
  'GIT_GLOB_PATHSPECS',
  'GIT_NOGLOB_PATHSPECS',
  'GIT_ICASE_PATHSPECS',
]

/** Why git gave no answer. `reason` is the first line of what it said. */
export type GitFailure =
  | { kind: 'missing' }
  | { kind: 'no_repository' }
  | { kind: 'too_slow' }
  | { kind: 'too_large' }
  | { kind: 'stopped' }
  | { kind: 'failed'; reason: string }

/** A name of git's configuration and its value. */
export type GitSetting = readonly [name: string, value: string]

export type GitOptions = { settings?: readonly GitSetting[]; signal?: AbortSignal | undefined }

/** Runs a reading git command in `cwd`. @returns its whole output as text; bytes that are not UTF-8 become U+FFFD */
export function runGit(
  cwd: string,
  args: readonly string[],
  { settings = [], signal }: GitOptions = {},
): Promise<Result<string, GitFailure>> {
  const env: NodeJS.ProcessEnv = { ...withoutSecrets(process.env), ...NO_FETCH, LC_ALL: 'C' }
  for (const name of FOREIGN_VARIABLES) delete env[name]
  // By the environment and not by -c, which cannot name every setting that a repository can make up; behind those that
  // the user gives in this way.
  let count = Number.parseInt(env.GIT_CONFIG_COUNT ?? '', 10) || 0
  for (const [name, value] of settings) {
    env[`GIT_CONFIG_KEY_${count}`] = name
    env[`GIT_CONFIG_VALUE_${count}`] = value
    count++
  }
  env.GIT_CONFIG_COUNT = String(count)
  const limits = { timeout: GIT_TIMEOUT_MS, maxBuffer: MAX_GIT_OUTPUT_BYTES }
  return new Promise((resolve) => {
    execFile(
      'git',
      [...SAFE_OPTIONS, ...args],
      { cwd, env, ...limits, encoding: 'utf8', ...(signal ? { signal } : {}) },
      (error, stdout, stderr) => resolve(error ? err(failureOf(error, stderr)) : ok(stdout)),
    )
  })
}

function failureOf(error: Error & { code?: unknown; killed?: boolean }, stderr: string): GitFailure {
  if (error.code === 'ENOENT') return { kind: 'missing' }
  if (error.code === 'ABORT_ERR') return { kind: 'stopped' }
  if (error.code === 'ERR_CHILD_PROCESS_STDIO_MAXBUFFER') return { kind: 'too_large' }
  if (error.killed) return { kind: 'too_slow' }
  if (stderr.includes('not a git repository')) return { kind: 'no_repository' }
  return { kind: 'failed', reason: stderr.trim().split('\n')[0] ?? '' }
}

/** As `runGit`, for those to whom every failure is the same. */
export async function readGit(
  cwd: string,
  args: readonly string[],
  options: GitOptions = {},
): Promise<string | undefined> {
  const answer = await runGit(cwd, args, options)
  return answer.ok ? answer.value : undefined
}

/** The NUL-separated names of a git answer. */
export const splitNames = (output: string): string[] => output.split('\0').filter((name) => name !== '')

/**
 * Settings that switch off the filters which the repository's own configuration defines: comparing a file would run
 * them (D46). Those of the user's configuration stay, without which large files kept elsewhere would all look changed.
 */
export async function filtersOff(cwd: string): Promise<GitSetting[]> {
  const output = await readGit(cwd, [
    'config',
    '--show-scope',
    '--name-only',
    '-z',
    '--get-regexp',
    '^filter\\.',
  ])
  const fields = splitNames(output ?? '')
  const filters = new Set<string>()
  for (let at = 0; at + 1 < fields.length; at += 2) {
    const name = /^(filter\..*)\.[^.]+$/su.exec(fields[at + 1] ?? '')?.[1]
    if (name !== undefined && (fields[at] === 'local' || fields[at] === 'worktree')) filters.add(name)
  }
  return [...filters].flatMap((name): GitSetting[] => [
    [`${name}.clean`, ''],
    [`${name}.process`, ''],
    [`${name}.required`, 'false'],
  ])
}

/** The name of the checked-out branch; undefined when detached or outside a work tree. */
export async function gitBranch(cwd: string): Promise<string | undefined> {
  const name = (await readGit(cwd, ['symbolic-ref', '--short', '-q', 'HEAD']))?.trim()
  return name === '' ? undefined : name
}

/**
 * A file that is not as in the last commit: what it is in the index and in the work tree, in the letters of
 * `git status`. An untracked one is `?` in both.
 */
export type FileStatus = { name: string; index: string; workTree: string }

/**
 * The files below `cwd`, or below a literal `scope` in it, that are changed or untracked, each file of an untracked
 * folder by itself, with names relative to `cwd`. What is uncommitted inside a submodule is that repository's own.
 */
export async function fileStatuses(
  cwd: string,
  scope: string,
  options: GitOptions,
): Promise<Result<FileStatus[], GitFailure>> {
  const [prefix, status] = await Promise.all([
    runGit(cwd, ['rev-parse', '--show-prefix'], options),
    runGit(cwd, [...STATUS, '--', `:(literal)${scope}`], options),
  ])
  if (!prefix.ok) return prefix
  if (!status.ok) return status
  const below = prefix.value.replace(/\n$/, '')
  return ok(
    splitNames(status.value).map((entry) => ({
      // Two letters, a space, and a name from the top of the repository.
      name: entry.slice(3 + below.length),
      index: entry.slice(0, 1),
      workTree: entry.slice(1, 2),
    })),
  )
}

const STATUS = [
  'status',
  '--porcelain=v1',
  '-z',
  '--no-renames',
  '--untracked-files=all',
  '--ignore-submodules=dirty',
]

/** The files below `cwd` that differ from the last commit or are untracked, relative to `cwd`, sorted. */
export async function changedFiles(cwd: string): Promise<string[]> {
  const statuses = await fileStatuses(cwd, '.', { settings: await filtersOff(cwd) })
  return statuses.ok ? [...new Set(statuses.value.map(({ name }) => name))].sort() : []
}
