import { constants } from 'node:fs'
import { type FileHandle, lstat, mkdir, open, realpath } from 'node:fs/promises'
import path from 'node:path'
import { err, ok } from '../../protocol/result.ts'
import type { ToolResultOf } from './tool-output.ts'

/** A place inside the workspace with every symbolic link resolved. */
export type WorkspacePath = {
  absolute: string
  /** Relative to the root, with forward slashes; `.` is the root itself. */
  relative: string
}

/**
 * Resolves what exists. The path may be relative to the root or absolute; where it really leads must be inside the
 * root, whatever `..` and symbolic links it goes through (EC 29.13).
 * @param root an absolute path without symbolic links
 */
export async function resolveExisting(root: string, given: string): Promise<ToolResultOf<WorkspacePath>> {
  const wanted = lexical(root, given)
  if (!wanted.ok) return wanted
  try {
    return inside(root, await realpath(wanted.value), given)
  } catch (error) {
    return err({ message: `${given}: ${reasonOf(error)}` })
  }
}

/**
 * Resolves a file that is about to be written, without changing anything: an existing one through its links, a new
 * one through those of the folders that exist. A link that leads nowhere is refused, since what it will lead to is not
 * known, and so is everything in `.git`.
 */
export async function resolveForWriting(root: string, given: string): Promise<ToolResultOf<WorkspacePath>> {
  const wanted = lexical(root, given)
  if (!wanted.ok) return wanted
  if (wanted.value === root) return err({ message: `${given} is the workspace itself` })
  const missing: string[] = []
  let existing = wanted.value
  for (; existing !== root; existing = path.dirname(existing)) {
    const kind = await kindOf(existing)
    if (kind === 'other') break
    if (kind === 'link') {
      const target = await realpath(existing).catch(() => undefined)
      if (target === undefined)
        return err({ message: `${given} goes through a symbolic link that leads nowhere` })
      break
    }
    missing.unshift(path.basename(existing))
  }
  const resolved = await resolveExisting(root, existing)
  if (!resolved.ok) return err({ message: resolved.error.message.replace(existing, given) })
  return outsideGit(place(root, path.join(resolved.value.absolute, ...missing)), given)
}

/** Makes the folders that a resolved new file needs, one by one, each below a parent that is proven to be inside. */
export async function makeParents(root: string, at: WorkspacePath): Promise<ToolResultOf<null>> {
  let current = root
  for (const name of at.relative.split('/').slice(0, -1)) {
    const next = path.join(current, name)
    try {
      if ((await kindOf(next)) === 'missing') await mkdir(next)
      // The path was resolved: a link in it now was put there since.
      if (!(await lstat(next)).isDirectory())
        return err({ message: `${place(root, next).relative} is not a folder` })
    } catch (error) {
      return err({ message: `${at.relative}: ${reasonOf(error)}` })
    }
    current = next
  }
  return ok(null)
}

/**
 * Opens a regular file for reading and proves that it is the one inside the workspace: between resolving and opening,
 * a folder may have been swapped for a link.
 */
export async function openInside(root: string, at: WorkspacePath): Promise<ToolResultOf<FileHandle>> {
  let handle: FileHandle
  try {
    // O_NONBLOCK: a named pipe must not hold us.
    handle = await open(at.absolute, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
  } catch (error) {
    return err({ message: `${at.relative}: ${reasonOf(error)}` })
  }
  try {
    const opened = await handle.stat()
    const problem = opened.isFile()
      ? await movedAway(root, at, opened)
      : opened.isDirectory()
        ? 'is a folder'
        : 'is not a regular file'
    if (problem === undefined) return ok(handle)
    await handle.close()
    return err({ message: `${at.relative} ${problem}` })
  } catch (error) {
    await handle.close()
    return err({ message: `${at.relative}: ${reasonOf(error)}` })
  }
}

async function movedAway(
  root: string,
  at: WorkspacePath,
  opened: { dev: number; ino: number },
): Promise<string | undefined> {
  const again = await realpath(at.absolute)
  const now = await lstat(again)
  const same = now.dev === opened.dev && now.ino === opened.ino
  return same && isInside(root, again) ? undefined : 'changed while it was being opened'
}

/** Refuses what points outside by its letters alone, before the file system is touched. */
function lexical(root: string, given: string): ToolResultOf<string> {
  if (given.trim() === '') return err({ message: 'the path is empty' })
  if (given.includes('\0')) return err({ message: 'the path holds a NUL character' })
  const wanted = path.resolve(root, given)
  return isInside(root, wanted) ? ok(wanted) : err({ message: outsideMessage(given) })
}

function inside(root: string, resolved: string, given: string): ToolResultOf<WorkspacePath> {
  return isInside(root, resolved)
    ? ok(place(root, resolved))
    : err({ message: `${outsideMessage(given)} (through a symbolic link)` })
}

/** Git runs what lies in there (hooks, configured programs), so files in it are not for a model to write. */
function outsideGit(at: WorkspacePath, given: string): ToolResultOf<WorkspacePath> {
  const inGit = at.relative.split('/').some((part) => part.toLowerCase() === '.git')
  return inGit ? err({ message: gitMessage(given) }) : ok(at)
}

async function kindOf(file: string): Promise<'missing' | 'link' | 'other'> {
  try {
    return (await lstat(file)).isSymbolicLink() ? 'link' : 'other'
  } catch (error) {
    // Whatever else is wrong shows itself when the path is resolved.
    return codeOf(error) === 'ENOENT' || codeOf(error) === 'ENOTDIR' ? 'missing' : 'other'
  }
}

const isInside = (root: string, absolute: string): boolean =>
  absolute === root || absolute.startsWith(root.endsWith(path.sep) ? root : root + path.sep)

const place = (root: string, absolute: string): WorkspacePath => ({
  absolute,
  relative: path.relative(root, absolute).split(path.sep).join('/') || '.',
})

const outsideMessage = (given: string): string => `${given} is outside the workspace`
const gitMessage = (given: string): string => `${given} lies in .git, which only git itself may write`

const codeOf = (error: unknown): string =>
  error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : ''

const REASONS: Readonly<Record<string, string>> = {
  ENOENT: 'no such file or folder',
  ENOTDIR: 'a part of the path is not a folder',
  EISDIR: 'is a folder',
  EACCES: 'permission denied',
  EPERM: 'permission denied',
  ELOOP: 'is a symbolic link',
  ENAMETOOLONG: 'the path is too long',
  EEXIST: 'exists already',
  ENXIO: 'is not a regular file',
  ENOSPC: 'no space left',
  EROFS: 'the file system is read-only',
}

/** The reason of a failed file operation in words; absolute paths of this machine stay out of it. */
export function reasonOf(error: unknown): string {
  const code = codeOf(error)
  return REASONS[code] ?? (code === '' ? 'failed' : `failed (${code})`)
}
