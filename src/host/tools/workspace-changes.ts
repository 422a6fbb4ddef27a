import { err, ok, type Result } from '../../protocol/result.ts'
import {
  type FileStatus,
  fileStatuses,
  filtersOff,
  type GitFailure,
  type GitOptions,
  runGit,
  splitNames,
} from '../git.ts'

/** Larger files are named and not compared, as git does with binary ones: comparing must not fill the memory. */
const MAX_COMPARED_FILE_BYTES = 8 * 1024 * 1024
/** What is asked of git at once: few enough that a page costs little, and that the arguments fit a command line. */
const BATCH_FILES = 50
const BATCH_CHANGED_LINES = 5_000

/**
 * How every diff is asked for: no program of the repository takes part (D46), names are relative to the folder, a
 * rename is a file that goes and one that comes, and what is uncommitted inside a submodule is that repository's own.
 */
const DIFF_OPTIONS = [
  '--no-ext-diff',
  '--no-textconv',
  '--no-renames',
  '--no-color',
  '--relative',
  '--ignore-submodules=dirty',
]

/** The form of a diff, whatever the user's settings say. */
const DIFF_FORM = [
  '--patch',
  '--unified=3',
  '--inter-hunk-context=0',
  '--src-prefix=a/',
  '--dst-prefix=b/',
  '--submodule=short',
]

/** A file that is not as in the last commit. Without counts: binary, or too large to be compared. */
export type ChangedFile = {
  /** Relative to the workspace. */
  name: string
  lines?: { added: number; removed: number }
  /** How the change stands in the index. */
  mark?: 'staged' | 'staged in part' | 'staged, then undone' | 'in conflict'
}

export type WorkspaceChanges = {
  files: ChangedFile[]
  /** Names of files that git does not know; one with a slash at its end is a repository of its own. */
  untracked: string[]
  /** What was compared with: the last commit, or the empty tree before the first one. */
  base: string
  hasCommit: boolean
  /** For the diffs that follow. */
  git: GitOptions
}

/**
 * What is changed in the workspace against the last commit, staged or not, in the order of the diff.
 * @param scope a file or folder relative to the root; it need not exist any more
 */
export async function listChanges(
  root: string,
  scope: string,
  signal?: AbortSignal,
): Promise<Result<WorkspaceChanges, GitFailure>> {
  const inside = await runGit(root, ['rev-parse', '--is-inside-work-tree'], { signal })
  if (!inside.ok) return inside
  if (inside.value.trim() !== 'true') return err({ kind: 'no_repository' })
  const settings = [
    ...(await filtersOff(root)),
    ['core.bigFileThreshold', String(MAX_COMPARED_FILE_BYTES)] as const,
  ]
  const git = { settings, signal }
  const head = await runGit(root, ['rev-parse', '--verify', '--quiet', 'HEAD^{commit}'], git)
  // Its hash depends on how the repository hashes.
  const base = head.ok ? head : await runGit(root, ['hash-object', '-t', 'tree', '/dev/null'], git)
  if (!base.ok) return base
  const tree = base.value.trim()
  const [counted, statuses] = await Promise.all([
    runGit(root, ['diff', '--numstat', '-z', ...DIFF_OPTIONS, tree, '--', literal(scope)], git),
    fileStatuses(root, scope, git),
  ])
  if (!counted.ok) return counted
  if (!statuses.ok) return statuses
  const counts = parseCounts(counted.value)
  if (counts === undefined)
    return err({ kind: 'failed', reason: 'its counts have a form that is not known here' })
  const isUntracked = ({ index }: FileStatus) => index === '?'
  return ok({
    files: statuses.value
      .filter((status) => !isUntracked(status))
      .map((status) => changedFile(status, counts.get(status.name))),
    untracked: statuses.value.filter(isUntracked).map(({ name }) => name),
    base: tree,
    hasCommit: head.ok,
    git,
  })
}

type Counts = NonNullable<ChangedFile['lines']> | 'not compared'

/** The records of `--numstat -z`: counts and name with tabs between them; a name may hold tabs. */
function parseCounts(output: string): Map<string, Counts> | undefined {
  const counts = new Map<string, Counts>()
  for (const record of splitNames(output)) {
    const [, added, removed, name] = /^(\d+|-)\t(\d+|-)\t(.+)$/su.exec(record) ?? []
    if (added === undefined || removed === undefined || name === undefined) return undefined
    counts.set(name, added === '-' ? 'not compared' : { added: Number(added), removed: Number(removed) })
  }
  return counts
}

/** @param counts absent where the work tree is as in the last commit, and only the index is not */
function changedFile({ name, index, workTree }: FileStatus, counts: Counts | undefined): ChangedFile {
  const lines = counts ?? { added: 0, removed: 0 }
  const mark = CONFLICTS.has(index + workTree)
    ? 'in conflict'
    : index === ' '
      ? undefined
      : counts === undefined
        ? 'staged, then undone'
        : workTree === ' '
          ? 'staged'
          : 'staged in part'
  return {
    name,
    ...(lines === 'not compared' ? {} : { lines }),
    ...(mark === undefined ? {} : { mark }),
  }
}

/** The pairs of letters that stand for a merge that is not decided. */
const CONFLICTS: ReadonlySet<string> = new Set(['DD', 'AU', 'UD', 'UA', 'DU', 'AA', 'UU'])

/**
 * The unified diff of the `shown` files, a batch at a time, so that who needs the beginning only does not pay for the
 * whole. Nothing of any other file is in it.
 */
export async function* diffOf(
  root: string,
  changes: WorkspaceChanges,
  shown: readonly ChangedFile[],
): AsyncGenerator<Result<string, GitFailure>> {
  for (const batch of batches(shown)) {
    const names = new Set(batch.map(({ name }) => name))
    // A file may have become a folder: its name then stands for what lies in the folder, too.
    const below = changes.files.filter(
      ({ name }) => !names.has(name) && foldersOf(name).some((at) => names.has(at)),
    )
    const only = [...[...names].map(literal), ...below.map(({ name }) => `:(exclude,literal)${name}`)]
    const args = ['diff', ...DIFF_OPTIONS, ...DIFF_FORM, changes.base, '--', ...only]
    yield await runGit(root, args, changes.git)
  }
}

function* batches(files: readonly ChangedFile[]): Generator<ChangedFile[]> {
  let batch: ChangedFile[] = []
  let lines = 0
  for (const file of files) {
    batch.push(file)
    lines += (file.lines?.added ?? 0) + (file.lines?.removed ?? 0)
    if (batch.length < BATCH_FILES && lines < BATCH_CHANGED_LINES) continue
    yield batch
    batch = []
    lines = 0
  }
  if (batch.length > 0) yield batch
}

function foldersOf(name: string): string[] {
  const folders: string[] = []
  for (let slash = name.indexOf('/'); slash >= 0; slash = name.indexOf('/', slash + 1))
    folders.push(name.slice(0, slash))
  return folders
}

/** A file may be called `*` or `:(top)`. */
const literal = (name: string): string => `:(literal)${name}`
