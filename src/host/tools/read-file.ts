import type { FileHandle } from 'node:fs/promises'
import { optionalCount, type ToolArguments, textArgument } from './arguments.ts'
import { binaryMessage, decodeText } from './text-file.ts'
import { counted, failedOutput, formatBytes, type ToolOutput } from './tool-output.ts'
import { openInside, reasonOf, resolveExisting } from './workspace-path.ts'

/** What one answer holds at most; about 65,000 tokens, more than most models want at once. */
export const MAX_READ_BYTES = 256 * 1024

const CHUNK_BYTES = 64 * 1024
const NEWLINE = 10

/** The lines `offset`… of a file. `complete` = the end of the file was reached; `cut` = the last line is not whole. */
type Page = { bytes: Uint8Array; lines: number; complete: boolean; cut: boolean }

/**
 * `read_file` {path} and `read_lines` {path, offset, limit?}: the text of a file, or of `limit` lines from line `offset`
 * (from 1). More than 256 KiB is cut after a whole line, with a note that says how to read on.
 */
export async function readFileTool(root: string, args: ToolArguments): Promise<ToolOutput> {
  const given = textArgument(args, 'path')
  if (!given.ok) return failedOutput(given.error.message)
  const offset = optionalCount(args, 'offset')
  if (!offset.ok) return failedOutput(offset.error.message)
  const limit = optionalCount(args, 'limit')
  if (!limit.ok) return failedOutput(limit.error.message)
  const at = await resolveExisting(root, given.value)
  if (!at.ok) return failedOutput(at.error.message)
  const opened = await openInside(root, at.value)
  if (!opened.ok) return failedOutput(opened.error.message)
  const handle = opened.value
  try {
    const { size } = await handle.stat()
    const from = offset.value ?? 1
    const page = await readPage(handle, from, limit.value ?? Number.POSITIVE_INFINITY)
    const text = decodeText(page.bytes)
    if (text === undefined) return failedOutput(binaryMessage(at.value.relative))
    if (page.lines === 0 && from > 1) return failedOutput(`${at.value.relative} ends before line ${from}`)
    const summary = `${counted(page.lines, 'line')}, ${formatBytes(page.bytes.length)}`
    return { content: text + note(page, at.value.relative, from, size), isError: false, summary }
  } catch (error) {
    return failedOutput(`${at.value.relative}: ${reasonOf(error)}`)
  } finally {
    await handle.close()
  }
}

function note(page: Page, name: string, from: number, size: number): string {
  if (page.complete) return ''
  const last = from + page.lines - 1
  if (page.cut) {
    return `\n[Line ${from} of ${name} is longer than ${formatBytes(MAX_READ_BYTES)} and was cut; use \`shell\` to read the rest of it, or go on with read_lines and "offset": "${from + 1}".]`
  }
  return `\n[Lines ${from} to ${last} of ${name} (${formatBytes(size)} in all). To read on, call read_lines with "offset": "${last + 1}".]`
}

async function readPage(handle: FileHandle, from: number, limit: number): Promise<Page> {
  const kept: Uint8Array[] = []
  let keptBytes = 0
  /** The line that the next byte belongs to. */
  let line = 1
  const end = from + limit
  const chunk = new Uint8Array(CHUNK_BYTES)
  for (;;) {
    const { bytesRead } = await handle.read(chunk, 0, CHUNK_BYTES, null)
    if (bytesRead === 0) return finish(kept, true)
    let start = 0
    let position = 0
    while (position < bytesRead && line < end && keptBytes + (position - start) <= MAX_READ_BYTES) {
      if (chunk[position] === NEWLINE) {
        line++
        if (line === from) start = position + 1
      }
      position++
    }
    if (line >= from) {
      kept.push(chunk.slice(start, position))
      keptBytes += position - start
    }
    if (line >= end) {
      const rest = position < bytesRead || (await handle.read(chunk, 0, 1, null)).bytesRead > 0
      return finish(kept, !rest)
    }
    if (keptBytes > MAX_READ_BYTES) return finish(kept, false)
  }
}

function finish(kept: readonly Uint8Array[], complete: boolean): Page {
  let bytes: Uint8Array = Buffer.concat(kept)
  let cut = false
  if (bytes.length > MAX_READ_BYTES) {
    const lastNewline = bytes.lastIndexOf(NEWLINE, MAX_READ_BYTES - 1)
    cut = lastNewline < 0
    bytes = bytes.subarray(0, cut ? wholeCharacters(bytes, MAX_READ_BYTES) : lastNewline + 1)
  }
  return { bytes, lines: countLines(bytes), complete, cut }
}

/** The largest length up to `most` that does not end inside a UTF-8 character. */
export function wholeCharacters(bytes: Uint8Array, most: number): number {
  let end = Math.min(most, bytes.length)
  while (end > 0 && end < bytes.length && ((bytes[end] ?? 0) & 0xc0) === 0x80) end--
  return end
}

function countLines(bytes: Uint8Array): number {
  let lines = 0
  for (const byte of bytes) if (byte === NEWLINE) lines++
  return bytes.length > 0 && bytes[bytes.length - 1] !== NEWLINE ? lines + 1 : lines
}
