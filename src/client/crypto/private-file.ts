/** Files of secrets. Only for Node. */

import {
  chmodSync,
  closeSync,
  fstatSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import path from 'node:path'

const FOLDER_MODE = 0o700
const FILE_MODE = 0o600

/** Windows has no such bits, and what Node shows of them there says nothing; nor can a folder be opened there. */
const IS_POSIX = process.platform !== 'win32'

/**
 * Writes a file that only its owner can read, in the place of an older one, in one step: whoever reads it sees the old
 * content or the new one. The folder is made, or closed to others. Throws what the file system says, and leaves no rest.
 */
export function writePrivateFile(file: string, text: string): void {
  const temporary = `${file}.${process.pid}.tmp`
  try {
    const folder = path.dirname(file)
    mkdirSync(folder, { recursive: true, mode: FOLDER_MODE })
    if ((statSync(folder).mode & 0o777) !== FOLDER_MODE) chmodSync(folder, FOLDER_MODE)
    // A leftover of a crash may have any mode; a fresh file is private from its first byte.
    rmSync(temporary, { force: true })
    const handle = openSync(temporary, 'wx', FILE_MODE)
    try {
      writeFileSync(handle, text)
      // What hangs on a key is stored elsewhere at once: the key must outlive a power cut, too.
      fsyncSync(handle)
    } finally {
      closeSync(handle)
    }
    renameSync(temporary, file)
    if (IS_POSIX) syncFolder(folder)
  } catch (error) {
    rmSync(temporary, { force: true, recursive: true })
    throw error
  }
}

/** Until then a power cut may take the new name of the file along. */
function syncFolder(folder: string): void {
  const handle = openSync(folder, 'r')
  try {
    fsyncSync(handle)
  } catch (error) {
    // Some network file systems cannot do this for a folder; they store names in their own time.
    if (!['EINVAL', 'ENOTSUP'].includes(fileErrorCode(error))) throw error
  } finally {
    closeSync(handle)
  }
}

/** What is in a file, and whether others may read or change it. Throws what the file system says. */
export function readPrivateFile(file: string): { text: string; exposed: boolean } {
  const handle = openSync(file, 'r')
  try {
    // Of the file that is read, not of whatever has its name a moment later.
    const { mode } = fstatSync(handle)
    return { text: readFileSync(handle, 'utf8'), exposed: IS_POSIX && (mode & 0o077) !== 0 }
  } finally {
    closeSync(handle)
  }
}

/** Whether others may add and remove files in a folder. Throws what the file system says. */
export const isOpenFolder = (folder: string): boolean => IS_POSIX && (statSync(folder).mode & 0o022) !== 0

/** The code of a file system's error, `ENOENT` for one. */
export const fileErrorCode = (error: unknown): string =>
  error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : 'unknown reason'
