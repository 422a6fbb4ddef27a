import type { PromptImage } from '../prompt.ts'

/** A picture that was uploaded for a prompt. Its content is read when it is asked for. */
export type UploadedImage = PromptImage & {
  handle: string
  /** Of the file. */
  bytes: number
}

/** Pictures of uploads in one prompt, the newest first: what providers take at once and a person still means. */
export const MAX_SHOWN_IMAGES = 16
/**
 * Of all their files together. On its way to the provider a picture is several times in memory, each time a third longer
 * than its file, and an object has 128 MiB for everything.
 */
export const MAX_SHOWN_BYTES = 12 * 1024 * 1024

/**
 * Which pictures go along with which message, by `seq`: the newest ones, as far as the limits allow. Each goes once, with
 * the newest message that refers to it.
 * @param messages those that the prompt holds, oldest first
 */
export function shownImages(
  messages: readonly { seq: number; images?: readonly UploadedImage[] }[],
): Map<number, UploadedImage[]> {
  const shown = new Map<number, UploadedImage[]>()
  const handles = new Set<string>()
  let bytes = 0
  for (const { seq, images = [] } of messages.toReversed()) {
    const of: UploadedImage[] = []
    for (const image of images) {
      if (handles.has(image.handle)) continue
      if (handles.size === MAX_SHOWN_IMAGES || bytes + image.bytes > MAX_SHOWN_BYTES)
        return shown.set(seq, of)
      handles.add(image.handle)
      bytes += image.bytes
      of.push(image)
    }
    if (of.length > 0) shown.set(seq, of)
  }
  return shown
}
