/** Escapes of two characters; other control characters take six. */
const SHORT_ESCAPES = new Set(['"', '\\', '\b', '\f', '\n', '\r', '\t'])

/** What a text takes inside a JSON document, in UTF-8 bytes: a page of control characters is six times what it was. */
export function jsonBytes(text: string): number {
  let bytes = 0
  for (const char of text) {
    const point = char.codePointAt(0) ?? 0
    if (SHORT_ESCAPES.has(char)) bytes += 2
    else if (point < 0x20 || (point >= 0xd800 && point < 0xe000)) bytes += 6
    else bytes += point < 0x80 ? 1 : point < 0x800 ? 2 : point < 0x10000 ? 3 : 4
  }
  return bytes
}
