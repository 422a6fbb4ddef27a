import type { FileHandle } from 'node:fs/promises'
import { err, ok } from '../../protocol/result.ts'
import { formatBytes, type ToolResultOf } from './tool-output.ts'
import { openInside, reasonOf, type WorkspacePath } from './workspace-path.ts'

/** A file that is edited or compared is held in memory whole; text that people edit is far smaller. */
export const MAX_WHOLE_FILE_BYTES = 4 * 1024 * 1024

/** A byte that no text holds. */
const NUL = 0

export const binaryMessage = (name: string): string =>
  `${name} is a binary file (or not UTF-8), which this tool does not handle`

/** Text with its mode, for a rewrite that keeps it. */
export type WholeFile = { text: string; mode: number }

/** Reads a whole UTF-8 file of at most `MAX_WHOLE_FILE_BYTES`. A byte order mark stays in the text. */
export async function readWholeFile(root: string, at: WorkspacePath): Promise<ToolResultOf<WholeFile>> {
  const read = await readBytes(root, at)
  if (!read.ok) return read
  const text = decodeText(read.value.bytes)
  return text === undefined
    ? err({ message: binaryMessage(at.relative) })
    : ok({ text, mode: read.value.mode })
}

/** Reads a whole file of at most `MAX_WHOLE_FILE_BYTES`, whatever is in it. */
export async function readBytes(
  root: string,
  at: WorkspacePath,
): Promise<ToolResultOf<{ bytes: Uint8Array; mode: number }>> {
  const opened = await openInside(root, at)
  if (!opened.ok) return opened
  const handle: FileHandle = opened.value
  try {
    const { size, mode } = await handle.stat()
    if (size > MAX_WHOLE_FILE_BYTES) {
      const message = `${at.relative} has ${formatBytes(size)}; at most ${formatBytes(MAX_WHOLE_FILE_BYTES)} can be handled at once`
      return err({ message })
    }
    return ok({ bytes: await handle.readFile(), mode: mode & 0o7777 })
  } catch (error) {
    return err({ message: `${at.relative}: ${reasonOf(error)}` })
  } finally {
    await handle.close()
  }
}

/** @returns undefined when the bytes are not text in UTF-8 */
export function decodeText(bytes: Uint8Array): string | undefined {
  if (bytes.includes(NUL)) return undefined
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    return undefined
  }
}
