import { assertNever } from '../../protocol/assert.ts'
import { ok, type Result } from '../../protocol/result.ts'
import { GIT_TIMEOUT_MS, type GitFailure, MAX_GIT_OUTPUT_BYTES } from '../git.ts'
import { coveredBy } from '../restricted-paths.ts'
import { optionalCount, optionalText, type ToolArguments } from './arguments.ts'
import { PIECE_MARK, takePage } from './line-page.ts'
import { counted, failedOutput, formatBytes, type ToolOutput, type ToolResultOf } from './tool-output.ts'
import { type ChangedFile, diffOf, listChanges, type WorkspaceChanges } from './workspace-changes.ts'
import { resolveExisting, resolveForWriting } from './workspace-path.ts'

/** More untracked files than this would stand between the counts and the diff; the rest is listed behind it. */
const MAX_UNTRACKED_FIRST = 100

export type ShowChangesOptions = {
  /** Globs of files whose text must not be quoted: the router cannot see which file a line came from (EC 9). */
  restrictedPaths?: readonly string[]
  signal?: AbortSignal
}

/**
 * `show_changes` {path?, offset?}: what is changed against the last commit, staged or not. First the files with their
 * numbers of added and removed lines and the names of untracked ones, then the diff, in pages of lines (U44). Of
 * restricted and binary files nothing but the name and the counts is told.
 */
export async function showChangesTool(
  root: string,
  args: ToolArguments,
  { restrictedPaths = [], signal }: ShowChangesOptions = {},
): Promise<ToolOutput> {
  const given = optionalText(args, 'path')
  if (!given.ok) return failedOutput(given.error.message)
  const offset = optionalCount(args, 'offset')
  if (!offset.ok) return failedOutput(offset.error.message)
  const scope = await scopeOf(root, given.value ?? '.')
  if (!scope.ok) return failedOutput(scope.error.message)
  const { relative, missing } = scope.value
  const listed = await listChanges(root, relative, signal)
  if (!listed.ok) return failedOutput(failureText(listed.error))
  const changes = listed.value
  if (changes.files.length + changes.untracked.length === 0)
    return missing === undefined ? noChanges(relative, changes) : failedOutput(missing)

  const from = offset.value ?? 1
  const page = await takePage(textOf(root, relative, changes, coveredBy(restrictedPaths, root)), from)
  if (!page.ok) return failedOutput(failureText(page.error))
  const { lines, more, passed } = page.value
  if (lines.length === 0) return failedOutput(`there are only ${counted(passed, 'line')} to show`)
  const notes: string[] = []
  if (lines.some((line) => line.startsWith(PIECE_MARK)))
    notes.push(`[Long lines are broken; what begins with ${PIECE_MARK} goes on from the line before.]`)
  if (more) {
    const next = from + lines.length
    notes.push(
      `[Lines ${from} to ${next - 1}. To read on, call show_changes with "offset": "${next}", or narrow \`path\`.]`,
    )
  }
  return { content: [...lines, ...notes].join('\n'), isError: false, summary: shortCount(changes) }
}

/** What exists is resolved as for reading. What does not may have been deleted, which is a change, too. */
async function scopeOf(
  root: string,
  given: string,
): Promise<ToolResultOf<{ relative: string; missing?: string }>> {
  const existing = await resolveExisting(root, given)
  if (existing.ok) return ok({ relative: existing.value.relative })
  const gone = await resolveForWriting(root, given)
  if (!gone.ok) return gone
  return ok({ relative: gone.value.relative, missing: existing.error.message })
}

/** Everything there is to show, line by line; the diff is asked for only as far as it is read. */
async function* textOf(
  root: string,
  scope: string,
  changes: WorkspaceChanges,
  isRestricted: (path: string) => boolean,
): AsyncGenerator<Result<readonly string[], GitFailure>> {
  const { files, untracked } = changes
  yield ok([countLine(scope, changes)])
  yield ok(files.map((file) => fileLine(file, isRestricted(file.name))))
  const first = untracked.slice(0, MAX_UNTRACKED_FIRST).map(untrackedLine)
  const rest = untracked.slice(MAX_UNTRACKED_FIRST).map(untrackedLine)
  yield ok(
    rest.length === 0 ? first : [...first, `(${rest.length} more untracked files are listed after the diff)`],
  )
  const shown = files.filter(
    ({ name, lines }) => lines !== undefined && !isRestricted(name) && !isMangled(name),
  )
  if (shown.length > 0) yield ok([''])
  for await (const diff of diffOf(root, changes, shown)) {
    if (!diff.ok) yield diff
    else yield ok(diff.value.replace(/\n$/, '').split('\n'))
  }
  if (rest.length > 0) yield ok(['', ...rest])
}

/** A name whose bytes are no text reaches us with replacements, under which git does not find it again. */
const isMangled = (name: string): boolean => name.includes('\uFFFD')

function countLine(scope: string, changes: WorkspaceChanges): string {
  const { added, removed } = sum(changes.files)
  const parts = [
    `${counted(changes.files.length, 'changed file')} (+${added} -${removed})`,
    counted(changes.untracked.length, 'untracked file'),
  ]
  return `[${parts.join(', ')} in ${scope === '.' ? 'the workspace' : shownName(scope)}, ${against(changes)}]`
}

function fileLine({ name, lines, mark }: ChangedFile, restricted: boolean): string {
  const remarks = [
    ...(mark === undefined ? [] : [mark]),
    ...(lines === undefined ? ['binary or very large, not shown'] : []),
    ...(restricted ? ['restricted, not shown'] : []),
    ...(isMangled(name) ? ['its name is not UTF-8, not shown'] : []),
  ]
  const counts = lines === undefined ? '' : `+${lines.added} -${lines.removed} `
  return `${counts}${shownName(name)}${remarks.length > 0 ? ` (${remarks.join('; ')})` : ''}`
}

const untrackedLine = (name: string): string => `${shownName(name)} (untracked)`

/** A name that could be taken for something else, such as one with a line break in it, is quoted. */
const shownName = (name: string): string =>
  /[\p{Cc}\p{Zl}\p{Zp}"\\]|^[\s[+(…]|\s$/u.test(name) ? JSON.stringify(name) : name

const against = ({ hasCommit }: WorkspaceChanges): string =>
  hasCommit ? 'against the last commit' : 'there is no commit yet'

const noChanges = (scope: string, changes: WorkspaceChanges): ToolOutput => ({
  content: `[No changes in ${scope === '.' ? 'the workspace' : shownName(scope)}, ${against(changes)}.]`,
  isError: false,
  summary: 'no changes',
})

function shortCount({ files, untracked }: WorkspaceChanges): string {
  const { added, removed } = sum(files)
  const changed = `${counted(files.length, 'file')} changed, +${added} -${removed}`
  return untracked.length === 0 ? changed : `${changed}, ${untracked.length} untracked`
}

function sum(files: readonly ChangedFile[]): { added: number; removed: number } {
  let [added, removed] = [0, 0]
  for (const { lines } of files) {
    added += lines?.added ?? 0
    removed += lines?.removed ?? 0
  }
  return { added, removed }
}

function failureText(failure: GitFailure): string {
  switch (failure.kind) {
    case 'missing':
      return 'git is not installed on this machine, so there is nothing to compare with'
    case 'no_repository':
      return 'the workspace is in no git repository, so there is nothing to compare with'
    case 'too_slow':
      return `git gave no answer within ${GIT_TIMEOUT_MS / 1000} s; narrow \`path\``
    case 'too_large':
      return `the changes are larger than ${formatBytes(MAX_GIT_OUTPUT_BYTES)}; narrow \`path\``
    case 'stopped':
      return 'stopped by the user'
    case 'failed':
      return `git failed: ${failure.reason}`
    default:
      return assertNever(failure)
  }
}
