import { byteLength, type Fields, isFields } from '../shapes.ts'

/**
 * A transcript as any client shows it, whether it was built from events or read from a snapshot: the same list either
 * way. A text is known by its size and its first 4 KiB, which is what a snapshot holds of it.
 */
export type Item =
  | { kind: 'user' | 'assistant' | 'system'; text: ShownText }
  | { kind: 'tool'; id: string; name: string; state: ToolState; content: ShownText }

export type ToolState = 'open' | 'succeeded' | 'failed'
export type ShownText = { head: string; bytes: number }

export const HEAD_BYTES = 4096

/** The longest beginning of a text within so many bytes that cuts no character. */
export function headOf(text: string, maxBytes = HEAD_BYTES): string {
  const bytes = new TextEncoder().encode(text)
  if (bytes.length <= maxBytes) return text
  let end = maxBytes
  // Bytes like 10xxxxxx continue a character.
  while (end > 0 && ((bytes[end] ?? 0) & 0xc0) === 0x80) end--
  return new TextDecoder().decode(bytes.subarray(0, end))
}

/** The shortest-start end of a text within so many bytes that cuts no character. */
export function tailOf(text: string, maxBytes: number): string {
  const bytes = new TextEncoder().encode(text)
  let start = Math.max(0, bytes.length - maxBytes)
  while (start < bytes.length && ((bytes[start] ?? 0) & 0xc0) === 0x80) start++
  return new TextDecoder().decode(bytes.subarray(start))
}

export const shown = (text: string): ShownText => ({ head: headOf(text), bytes: byteLength(text) })

/** A `BoundedText` that was cut at its end, or not at all. */
export const shownBounded = (bounded: unknown): ShownText => {
  const { text, total_bytes: bytes } = fieldsOf(bounded)
  return { head: String(text), bytes: Number(bytes) }
}

/** One message of a snapshot or a page; null for one that shows nothing: an assistant that only called tools. */
export function itemOf(message: Fields): Item | null {
  const content = shownBounded(message.content)
  if (message.role === 'tool') {
    const tool = fieldsOf(message.tool)
    return {
      kind: 'tool',
      id: String(tool.call_id),
      name: String(tool.name),
      state: tool.pending === true ? 'open' : tool.success === true ? 'succeeded' : 'failed',
      content: tool.pending === true ? shown('') : content,
    }
  }
  if (message.role === 'assistant' && content.bytes === 0) return null
  return {
    kind: message.role === 'user' ? 'user' : message.role === 'system' ? 'system' : 'assistant',
    text: content,
  }
}

export const itemsOf = (messages: readonly Fields[]): Item[] =>
  messages.map(itemOf).filter((item) => item !== null)

export const fieldsOf = (value: unknown): Fields => {
  if (!isFields(value)) throw new Error(`this is no object: ${JSON.stringify(value)?.slice(0, 200)}`)
  return value
}

export const listOfFields = (value: unknown): Fields[] => {
  if (!Array.isArray(value)) throw new Error(`this is no list: ${JSON.stringify(value)?.slice(0, 200)}`)
  return value.map(fieldsOf)
}
