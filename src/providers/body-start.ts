import { MAX_ERROR_BODY_BYTES } from './bounds.ts'

/** The first character of a body that is no white space, if there is one yet; all that matter are ASCII. */
export function firstCharacter(bytes: Uint8Array): string | undefined {
  const byte = bytes.find((byte) => byte > 0x20)
  return byte === undefined ? undefined : String.fromCharCode(byte)
}

/** The beginning of a body as text, as far as it is of interest. */
export async function readStart(
  first: Uint8Array,
  read: () => ReturnType<ReadableStreamDefaultReader<Uint8Array>['read']>,
): Promise<string> {
  const decoder = new TextDecoder()
  let text = decoder.decode(first, { stream: true })
  for (let bytes = first.byteLength; bytes < MAX_ERROR_BODY_BYTES; ) {
    const { done, value } = await read()
    if (done) break
    text += decoder.decode(value, { stream: true })
    bytes += value.byteLength
  }
  return text
}
