import type { PromptImage } from './prompt.ts'

/**
 * What a picture is counted with. Providers scale a picture down before they count, to about this at most; no estimate
 * from its bytes would be nearer.
 */
export const IMAGE_TOKENS = 1600

const DATA_URL = /^data:(image\/(?:png|jpeg|webp|gif));base64,/
const BASE64 = /^[A-Za-z0-9+/]+={0,2}$/

/** A file that is attached as a `data:` URL of a picture is shown to the model as that picture; any other is text. */
export function readImage(content: string): PromptImage | null {
  const prefix = DATA_URL.exec(content)
  if (!prefix) return null
  const base64 = content.slice(prefix[0].length)
  if (!BASE64.test(base64)) return null
  return { mediaType: prefix[1] as PromptImage['mediaType'], base64 }
}
