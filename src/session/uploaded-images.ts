import { UPLOADED_KINDS } from '../core/images/check.ts'
import { imageHandles } from '../core/images/reference.ts'
import type { UploadedImage } from '../core/images/shown.ts'
import { toBase64 } from '../protocol/base64.ts'
import type { Sql } from '../storage/session/sql.ts'
import { eachPiece, findUpload, type Upload } from '../storage/session/uploads.ts'

/** The pictures that a text of the user refers to and the session has. Of their content nothing is read yet. */
export function uploadedImages(sql: Sql, text: string): UploadedImage[] {
  return imageHandles(text).flatMap((handle) => {
    const upload = findUpload(sql, handle)
    return upload?.isComplete ? (toImage(sql, upload) ?? []) : []
  })
}

function toImage(sql: Sql, upload: Upload): UploadedImage | null {
  const mediaType = UPLOADED_KINDS.find((kind) => kind === upload.mimeType)
  return mediaType === undefined ? null : new StoredImage(sql, upload, mediaType)
}

/** A picture whose content stays in storage until a prompt that holds it is sent. A complete upload never changes. */
class StoredImage implements UploadedImage {
  readonly mediaType: UploadedImage['mediaType']
  readonly handle: string
  readonly bytes: number
  readonly #sql: Sql
  readonly #upload: Upload

  constructor(sql: Sql, upload: Upload, mediaType: UploadedImage['mediaType']) {
    this.mediaType = mediaType
    this.handle = upload.handle
    this.bytes = upload.totalBytes
    this.#sql = sql
    this.#upload = upload
  }

  get base64(): string {
    return toBase64(bodies(eachPiece(this.#sql, this.#upload)))
  }
}

function* bodies(pieces: Iterable<{ body: Uint8Array }>): Generator<Uint8Array, void> {
  for (const { body } of pieces) yield body
}
