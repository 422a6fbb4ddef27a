import { ok, type Result } from '../../protocol/result.ts'

/** One answer holds at most so much, as much as the window on a command's output. */
const PAGE_BYTES = 64 * 1024
/** A longer line is broken, so that a page boundary can fall into it and no part of it is out of reach. */
const MAX_LINE_CHARS = 2_000

/** Begins the further pieces of a broken line. */
export const PIECE_MARK = '…'

/** Lines of a text from one on; `more` when the text goes on behind them; `passed` = lines that were counted over. */
export type LinePage = { lines: string[]; more: boolean; passed: number }

/**
 * Takes a page out of a text that is made as it is read, and leaves the rest unmade (U44).
 * @param chunks lines without their line ends; the first failure among what is read is the answer
 * @param from line to begin with, from 1; the pieces of a broken line count as lines
 */
export async function takePage<E>(
  chunks: AsyncIterable<Result<readonly string[], E>>,
  from: number,
): Promise<Result<LinePage, E>> {
  const lines: string[] = []
  let bytes = 0
  let passed = 0
  for await (const chunk of chunks) {
    if (!chunk.ok) return chunk
    for (const line of chunk.value.flatMap(pieces)) {
      if (passed < from - 1) {
        passed++
        continue
      }
      bytes += Buffer.byteLength(line) + 1
      if (bytes > PAGE_BYTES) return ok({ lines, more: true, passed })
      lines.push(line)
    }
  }
  return ok({ lines, more: false, passed })
}

function pieces(line: string): string[] {
  if (line.length <= MAX_LINE_CHARS) return [line]
  const found: string[] = []
  for (let start = 0; start < line.length; ) {
    let end = Math.min(start + MAX_LINE_CHARS, line.length)
    // Not between the two halves of a character.
    if (end < line.length && isHighSurrogate(line.charCodeAt(end - 1))) end--
    found.push(`${start === 0 ? '' : PIECE_MARK}${line.slice(start, end)}`)
    start = end
  }
  return found
}

const isHighSurrogate = (unit: number): boolean => unit >= 0xd800 && unit <= 0xdbff
