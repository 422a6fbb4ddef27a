import { checkImage, UPLOADED_KINDS, type UploadedKind } from '../core/images/check.ts'
import { hasForeignReference, imageHandles, promptReference } from '../core/images/reference.ts'
import { MAX_SHOWN_BYTES } from '../core/images/shown.ts'
import { fromBase64 } from '../protocol/base64.ts'
import type { RemoteErrorCode } from '../protocol/remote/errors.ts'
import {
  MAX_IMAGE_BYTES,
  MAX_IMAGE_CHUNK_BYTES,
  MAX_PROMPT_IMAGES,
  MAX_UPLOAD_BYTES,
  MAX_UPLOADS,
  PARTIAL_UPLOAD_TTL_MS,
} from '../protocol/remote/limits.ts'
import type { RemoteOperation } from '../protocol/remote/operations.ts'
import type { OutrightResult } from '../protocol/remote/results.ts'
import { err, ok, type Result } from '../protocol/result.ts'
import type { Sql } from '../storage/session/sql.ts'
import {
  appendPiece,
  completeUpload,
  deleteAbandoned,
  deleteUpload,
  eachPiece,
  findUpload,
  insertUpload,
  loadUpload,
  reservedUploads,
  type Upload,
} from '../storage/session/uploads.ts'

export type UploadImage = Extract<RemoteOperation, { type: 'upload_image' }>

/** Why an upload or a reference is refused, in the words of the protocol. */
export type UploadRefusal = { code: RemoteErrorCode; message: string }

export type UploadDeps = {
  sql: Sql
  nowMs(): number
  /** A model that would be used takes pictures (`takesImages` of core). False in a sealed session: nothing is kept in clear. */
  takesImages(): boolean
  /** Names an upload for prompts. */
  newHandle?(): string
}

const ATTACHMENT_ID = /^[A-Za-z0-9_-]{1,64}$/
const MAX_CHUNK_LETTERS = Math.ceil(MAX_IMAGE_CHUNK_BYTES / 3) * 4

/** The pictures that devices send for their prompts (remote protocol, "Image attachments"; RF 27). */
export class Uploads {
  readonly #deps: UploadDeps

  constructor(deps: UploadDeps) {
    this.#deps = deps
  }

  /**
   * Takes a chunk. With the last one the whole picture is decoded, which takes up to about half a second; what is none is
   * deleted. Waits for nothing, so that it can stand in one transaction with its receipt; call it in one.
   * @returns `image_uploaded`, or the error that a rejected request is answered with
   */
  put(deviceId: string, operation: UploadImage): OutrightResult {
    const { sql, nowMs } = this.#deps
    if (!this.#deps.takesImages()) {
      return {
        type: 'error',
        code: 'unsupported_operation',
        message: 'no model of this session takes pictures',
      }
    }
    const chunk = readChunk(operation)
    if (!chunk.ok) return refused(chunk.error)
    deleteAbandoned(sql, nowMs() - PARTIAL_UPLOAD_TTL_MS)
    const found = this.#record(deviceId, operation, chunk.value.kind)
    if (!found.ok) return refused(found.error)
    const upload = found.value
    const { offset, total_bytes: totalBytes } = operation
    const { bytes } = chunk.value
    const end = offset + bytes.byteLength
    if (offset > upload.storedBytes) return refused('the chunk does not follow what is stored')
    if (offset < upload.storedBytes) {
      if (end > upload.storedBytes || !this.#isStored(upload, offset, bytes))
        return refused('the chunk differs from what is stored')
    } else {
      if (upload.storedBytes === 0) insertUpload(sql, upload, nowMs())
      appendPiece(sql, upload, bytes, nowMs())
    }
    if (end === totalBytes && !upload.isComplete) {
      const pieces = eachPiece(sql, upload)
      const checked = checkImage(chunk.value.kind, () => pieces.next().value?.body ?? null)
      if (!checked.ok) {
        deleteUpload(sql, upload)
        return refused(checked.error)
      }
      completeUpload(sql, upload)
    }
    return {
      type: 'image_uploaded',
      attachment_id: upload.attachmentId,
      next_offset: end,
      total_bytes: totalBytes,
      // Of an early chunk that is sent again it is what it was then.
      complete: end === totalBytes,
      ...(end === totalBytes ? { prompt_reference: promptReference(upload.handle) } : {}),
    }
  }

  /**
   * The pictures that a prompt of a device refers to: complete uploads of this device in this session. Changes nothing.
   * @returns their handles, or why the prompt is refused
   */
  check(deviceId: string, text: string): Result<string[], UploadRefusal> {
    const refuse = (message: string) => err<UploadRefusal>({ code: 'invalid_request', message })
    if (hasForeignReference(text)) return refuse('the prompt refers to a picture that was not uploaded')
    const handles = imageHandles(text)
    if (handles.length > MAX_PROMPT_IMAGES)
      return refuse(`a prompt may have at most ${MAX_PROMPT_IMAGES} pictures`)
    let bytes = 0
    for (const handle of handles) {
      const upload = findUpload(this.#deps.sql, handle)
      // One answer for all: what another device has is nobody else's business.
      if (upload === null || upload.deviceId !== deviceId || !upload.isComplete)
        return refuse('the prompt refers to a picture that was not uploaded')
      bytes += upload.totalBytes
    }
    if (bytes > MAX_SHOWN_BYTES)
      return refuse(`the pictures of a prompt may have at most ${MAX_SHOWN_BYTES} bytes together`)
    return ok(handles)
  }

  /** The upload that a chunk belongs to, or a new one, which is not stored yet. */
  #record(
    deviceId: string,
    { attachment_id: attachmentId, offset, total_bytes: totalBytes }: UploadImage,
    kind: UploadedKind,
  ): Result<Upload, string> {
    const { sql, newHandle = () => crypto.randomUUID() } = this.#deps
    const known = loadUpload(sql, deviceId, attachmentId)
    if (known !== null) {
      return known.mimeType === kind && known.totalBytes === totalBytes
        ? ok(known)
        : err('the picture was announced with another kind or size')
    }
    if (offset !== 0) return err('the upload has to begin at offset 0')
    const reserved = reservedUploads(sql)
    if (reserved.count >= MAX_UPLOADS || reserved.bytes + totalBytes > MAX_UPLOAD_BYTES)
      return err('the session has no room for another picture')
    return ok({
      deviceId,
      attachmentId,
      mimeType: kind,
      totalBytes,
      storedBytes: 0,
      isComplete: false,
      handle: newHandle(),
    })
  }

  #isStored(upload: Upload, offset: number, bytes: Uint8Array): boolean {
    const end = offset + bytes.byteLength
    for (const { start, body } of eachPiece(this.#deps.sql, upload, offset)) {
      const from = Math.max(start, offset)
      const to = Math.min(start + body.byteLength, end)
      for (let at = from; at < to; at++) if (body[at - start] !== bytes[at - offset]) return false
      if (start + body.byteLength >= end) return true
    }
    return false
  }
}

/** What can be told of a chunk without what is stored, in the order of RF 27. */
function readChunk({
  attachment_id: attachmentId,
  mime_type: mimeType,
  offset,
  total_bytes: totalBytes,
  data_base64: data,
}: UploadImage): Result<{ kind: UploadedKind; bytes: Uint8Array<ArrayBuffer> }, string> {
  if (!ATTACHMENT_ID.test(attachmentId)) return err('attachment_id has to be 1 to 64 letters, digits, - or _')
  const kind = UPLOADED_KINDS.find((known) => known === mimeType)
  if (kind === undefined) return err(`mime_type has to be one of ${UPLOADED_KINDS.join(', ')}`)
  if (totalBytes < 1 || totalBytes > MAX_IMAGE_BYTES)
    return err(`a picture may have 1 to ${MAX_IMAGE_BYTES} bytes`)
  if (data.length > MAX_CHUNK_LETTERS) return err(`a chunk may have at most ${MAX_IMAGE_CHUNK_BYTES} bytes`)
  const bytes = fromBase64(data)
  if (bytes === null) return err('data_base64 has to be standard base64 with padding')
  if (bytes.byteLength < 1 || bytes.byteLength > MAX_IMAGE_CHUNK_BYTES)
    return err(`a chunk may have 1 to ${MAX_IMAGE_CHUNK_BYTES} bytes`)
  if (offset + bytes.byteLength > totalBytes) return err('the chunk goes beyond total_bytes')
  return ok({ kind, bytes })
}

const refused = (message: string): OutrightResult => ({ type: 'error', code: 'invalid_request', message })
