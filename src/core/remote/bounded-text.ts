import type { BoundedText } from '../../protocol/remote/message.ts'

/**
 * Texts as they are cut for a device (RF 15). Sizes and offsets are UTF-8 bytes. Half of a surrogate pair has no UTF-8: it
 * goes out as the character that storage keeps in its place, which takes three bytes as well.
 */

const REPLACEMENT = '\ufffd'
const isHigh = (unit: number): boolean => unit >= 0xd800 && unit < 0xdc00
const isLow = (unit: number): boolean => unit >= 0xdc00 && unit < 0xe000

/** The character that begins at a unit: how many units and UTF-8 bytes it takes, and how many bytes inside a JSON text. */
type Char = { units: number; bytes: number; json: number }

const CHARS = {
  plain: { units: 1, bytes: 1, json: 1 },
  escaped: { units: 1, bytes: 1, json: 2 },
  control: { units: 1, bytes: 1, json: 6 },
  two: { units: 1, bytes: 2, json: 2 },
  three: { units: 1, bytes: 3, json: 3 },
  pair: { units: 2, bytes: 4, json: 4 },
} as const satisfies Record<string, Char>

function charAt(text: string, index: number): Char {
  const unit = text.charCodeAt(index)
  if (unit < 0x20) return isShortEscape(unit) ? CHARS.escaped : CHARS.control
  if (unit < 0x80) return unit === 0x22 || unit === 0x5c ? CHARS.escaped : CHARS.plain
  if (unit < 0x800) return CHARS.two
  return isHigh(unit) && isLow(text.charCodeAt(index + 1)) ? CHARS.pair : CHARS.three
}

/** Control characters that JSON writes with two characters: \b \t \n \f \r. */
const isShortEscape = (unit: number): boolean =>
  unit === 0x08 || unit === 0x09 || unit === 0x0a || unit === 0x0c || unit === 0x0d

/** How many UTF-8 bytes a text has from a unit on; quick on texts of megabytes. */
export function utf8Length(text: string, from = 0): number {
  let bytes = text.length - from
  for (let index = from; index < text.length; index++) {
    const unit = text.charCodeAt(index)
    if (unit < 0x80) continue
    if (unit < 0x800) bytes += 1
    // A pair is two units and four bytes.
    else if (isHigh(unit) && isLow(text.charCodeAt(index + 1))) {
      bytes += 2
      index++
    } else bytes += 2
  }
  return bytes
}

/** The UTF-8 bytes of the JSON of a value, as it stands in a frame. */
export const frameBytes = (value: unknown): number => utf8Length(JSON.stringify(value))

/** A text that every JSON reader takes: lone surrogates are replaced. */
export const wellFormed = (text: string): string => text.replace(/\p{Surrogate}/gu, REPLACEMENT)

/** How far a cut may go: UTF-8 bytes of the text, bytes of it inside a JSON text, characters. */
export type CutLimits = { bytes: number; json?: number; chars?: number }

/** The longest beginning of `text` from a unit on that keeps to the limits: where it ends, and its UTF-8 bytes. */
function prefix(
  text: string,
  from: number,
  {
    bytes: maxBytes,
    json: maxJson = Number.POSITIVE_INFINITY,
    chars: maxChars = Number.POSITIVE_INFINITY,
  }: CutLimits,
): { end: number; bytes: number } {
  let bytes = 0
  let json = 0
  let chars = 0
  let end = from
  while (end < text.length) {
    const char = charAt(text, end)
    if (bytes + char.bytes > maxBytes || json + char.json > maxJson || chars >= maxChars) break
    bytes += char.bytes
    json += char.json
    chars += 1
    end += char.units
  }
  return { end, bytes }
}

/** `contentId` names the whole for `get_content`; without one the rest cannot be asked for. */
const named = (contentId: string | undefined) => (contentId === undefined ? {} : { content_id: contentId })

/** The beginning of a text. `limits` as a number: UTF-8 bytes. */
export function headCut(text: string, limits: number | CutLimits, contentId?: string): BoundedText {
  const { end, bytes } = prefix(text, 0, typeof limits === 'number' ? { bytes: limits } : limits)
  const rest = utf8Length(text, end)
  return {
    text: wellFormed(text.slice(0, end)),
    truncated: rest > 0,
    offset: 0,
    total_bytes: bytes + rest,
    ...named(contentId),
  }
}

/** The end of a text: later text extends it. */
export function tailCut(text: string, maxBytes: number, contentId?: string): BoundedText {
  let bytes = 0
  let start = text.length
  while (start > 0) {
    const isPair = start > 1 && isLow(text.charCodeAt(start - 1)) && isHigh(text.charCodeAt(start - 2))
    const from = isPair ? start - 2 : start - 1
    const char = charAt(text, from)
    if (bytes + char.bytes > maxBytes) break
    bytes += char.bytes
    start = from
  }
  const offset = utf8Length(text.slice(0, start))
  return {
    text: wellFormed(text.slice(start)),
    truncated: offset > 0,
    offset,
    total_bytes: offset + bytes,
    ...named(contentId),
  }
}

/** A piece of a text. `nextOffset` is null at its end. */
export type Chunk = { text: string; totalBytes: number; nextOffset: number | null }

/**
 * The piece that begins at a byte. Null for an offset behind the end, or inside a character. At least one character, where
 * one is left and `limits` has room for one.
 */
export function chunkAt(text: string, offset: number, limits: CutLimits): Chunk | null {
  const { end: from, bytes: before } = prefix(text, 0, { bytes: offset })
  if (before !== offset) return null
  const { end, bytes } = prefix(text, from, limits)
  const rest = utf8Length(text, end)
  return {
    text: wellFormed(text.slice(from, end)),
    totalBytes: offset + bytes + rest,
    nextOffset: rest > 0 ? offset + bytes : null,
  }
}

/** The first half of what is left of a text that was cut at its end. */
export function halvedHead(cut: BoundedText): BoundedText {
  const { text } = headCut(cut.text, Math.floor(utf8Length(cut.text) / 2))
  return { ...cut, text, truncated: true }
}

/** The second half of what is left of a text that was cut at its beginning. */
export function halvedTail(cut: BoundedText): BoundedText {
  const { text, offset } = tailCut(cut.text, Math.floor(utf8Length(cut.text) / 2))
  return { ...cut, text, offset: cut.offset + offset, truncated: true }
}
