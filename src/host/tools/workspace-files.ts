import { lstat, readdir } from 'node:fs/promises'
import path from 'node:path'
import { readGit, splitNames } from '../git.ts'

/** Folders that are never a project's own text. */
const SKIPPED_FOLDERS: ReadonlySet<string> = new Set(['node_modules', '.git'])
/** A tree beyond this is cut; what a model can use of a listing is far less. */
export const MAX_LISTED_FILES = 50_000

/** Files below a folder, relative to the workspace root, sorted; `cut` when there were more. */
export type FileList = { files: string[]; cut: boolean }

/**
 * The files below `folder` (relative to `root`, `.` for all; a file is its own list): in a git work tree those that git tracks or would track,
 * so that ignored ones stay out; elsewhere, and in a folder that git ignores as a whole, a walk that skips
 * `node_modules` and `.git`. Symbolic links are listed and not followed.
 */
export async function listWorkspaceFiles(root: string, folder: string): Promise<FileList> {
  const itself = await lstat(path.join(root, folder)).catch(() => undefined)
  if (itself?.isFile()) return { files: [folder], cut: false }
  const fromGit = await listByGit(root, folder)
  const files = fromGit !== undefined && fromGit.length > 0 ? fromGit : await walk(root, folder)
  files.sort()
  return { files: files.slice(0, MAX_LISTED_FILES), cut: files.length > MAX_LISTED_FILES }
}

async function listByGit(root: string, folder: string): Promise<string[] | undefined> {
  // A literal pathspec: a folder may be called `*`.
  const scope = ['--', `:(literal)${folder}`]
  const [present, deleted] = await Promise.all([
    readGit(root, [
      'ls-files',
      '-z',
      '--cached',
      '--others',
      '--exclude-standard',
      '--deduplicate',
      ...scope,
    ]),
    readGit(root, ['ls-files', '-z', '--deleted', ...scope]),
  ])
  if (present === undefined) return undefined
  const gone = new Set(splitNames(deleted ?? ''))
  // Names with a trailing slash are repositories inside this one.
  return splitNames(present).filter((name) => !gone.has(name) && !name.endsWith('/'))
}

async function walk(root: string, folder: string): Promise<string[]> {
  const found: string[] = []
  const open = [folder]
  while (open.length > 0 && found.length <= MAX_LISTED_FILES) {
    const current = open.pop() ?? '.'
    // A folder that cannot be read has no files for us.
    const entries = await readdir(path.join(root, current), { withFileTypes: true }).catch(() => [])
    for (const entry of entries) {
      const name = current === '.' ? entry.name : `${current}/${entry.name}`
      if (entry.isDirectory()) {
        if (!SKIPPED_FOLDERS.has(entry.name)) open.push(name)
      } else if (entry.isFile() || entry.isSymbolicLink()) found.push(name)
    }
  }
  return found
}
