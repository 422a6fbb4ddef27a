import type { PromptImage } from './prompt.ts'

/**
 * What a picture is counted with. Providers scale a picture down before they count, to about this at most; no estimate
 * from its bytes would be nearer.
 */
export const IMAGE_TOKENS = 1600

/** Providers take pictures of about this size at most. In characters of base64. */
const MAX_BASE64_CHARS = 8_000_000

const DATA_URL = /^data:image\/(?:png|jpe?g|webp|gif);base64,/
const BASE64 = /^[A-Za-z0-9+/]+={0,2}$/
/** How each kind begins, in base64: what a picture is called says nothing. */
const BEGINNINGS: readonly [RegExp, PromptImage['mediaType']][] = [
  [/^iVBORw0KGgo/, 'image/png'],
  [/^\/9j\//, 'image/jpeg'],
  [/^R0lGOD(?:dh|lh)/, 'image/gif'],
  [/^UklGR.{7}RUJQ/, 'image/webp'],
]

/** A file that is attached as a `data:` URL of a picture is shown to the model as that picture; any other is text. */
export function readImage(content: string): PromptImage | null {
  const prefix = DATA_URL.exec(content)
  if (!prefix) return null
  const base64 = content.slice(prefix[0].length).trim()
  if (base64.length > MAX_BASE64_CHARS || base64.length % 4 !== 0 || !BASE64.test(base64)) return null
  const mediaType = BEGINNINGS.find(([beginning]) => beginning.test(base64))?.[1]
  return mediaType === undefined ? null : { mediaType, base64 }
}
