import { toHex } from '../protocol/hex.ts'

/** SHA-256 of a text, as lower-case hex. */
export async function digestOf(text: string): Promise<string> {
  return toHex(new Uint8Array(await crypto.subtle.digest('SHA-256', new TextEncoder().encode(text))))
}
