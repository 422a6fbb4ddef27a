/** Sizes of text as the wire counts them: in UTF-8 bytes, never in JavaScript's string units (RF 1). */

/** How many bytes a text has as UTF-8. A lone surrogate counts as the three bytes it is replaced by. */
export function utf8Bytes(text: string): number {
  let bytes = 0
  for (const char of text) {
    const point = char.codePointAt(0) ?? 0
    bytes += point < 0x80 ? 1 : point < 0x800 ? 2 : point < 0x10000 ? 3 : 4
  }
  return bytes
}
