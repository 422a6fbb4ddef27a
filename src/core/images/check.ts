import { err, ok, type Result } from '../../protocol/result.ts'
import { ByteReader, type NextPiece } from './byte-reader.ts'
import type { Dimensions } from './dimensions.ts'
import { readJpeg } from './jpeg.ts'
import { Malformed } from './malformed.ts'
import { readPng } from './png.ts'

/** The kinds of pictures that are taken (remote protocol, "Image attachments"). */
export const UPLOADED_KINDS = ['image/png', 'image/jpeg'] as const
export type UploadedKind = (typeof UPLOADED_KINDS)[number]

/**
 * Decodes a whole picture without keeping its pixels (D39): it is what `kind` says, complete, and within the limits of
 * size. Needs some 100 KiB of memory beside the piece that is read, and for a progressive JPEG one bit per coefficient: at
 * most 8.5 MiB.
 * @returns its size, or why it is refused in a sentence for people
 */
export function checkImage(kind: UploadedKind, next: NextPiece): Result<Dimensions, string> {
  const bytes = new ByteReader(next)
  try {
    const { width, height } = kind === 'image/png' ? readPng(bytes) : readJpeg(bytes)
    return ok({ width, height })
  } catch (error) {
    if (error instanceof Malformed) return err(error.message)
    throw error
  }
}
