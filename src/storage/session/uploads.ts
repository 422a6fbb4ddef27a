import { bytesOf, numberOf, type Sql, type SqlRow, textOf } from './sql.ts'

/** A picture that a device sends, or has sent, piece by piece. */
export type Upload = {
  deviceId: string
  /** The device's own name for it. */
  attachmentId: string
  mimeType: string
  /** As the device declared them … */
  totalBytes: number
  /** … and how many are stored, from the first one on without a gap. */
  storedBytes: number
  /** All of it is stored, and was found to be a picture. */
  isComplete: boolean
  /** What prompts refer to it by. */
  handle: string
}

export function loadUpload(sql: Sql, deviceId: string, attachmentId: string): Upload | null {
  const row = sql.rows(
    'SELECT * FROM uploads WHERE device_id = ? AND attachment_id = ?',
    deviceId,
    attachmentId,
  )[0]
  return row ? toUpload(row) : null
}

export function findUpload(sql: Sql, handle: string): Upload | null {
  const row = sql.rows('SELECT * FROM uploads WHERE handle = ?', handle)[0]
  return row ? toUpload(row) : null
}

/** What is reserved in the session: uploads of all devices, with the bytes that they declared. */
export function reservedUploads(sql: Sql): { count: number; bytes: number } {
  const row = sql.rows('SELECT count(*) AS count, coalesce(sum(total_bytes), 0) AS bytes FROM uploads')[0]
  return row ? { count: numberOf(row, 'count'), bytes: numberOf(row, 'bytes') } : { count: 0, bytes: 0 }
}

export function insertUpload(sql: Sql, upload: Upload, nowMs: number): void {
  sql.rows(
    `INSERT INTO uploads (device_id, attachment_id, mime_type, total_bytes, stored_bytes, complete, handle, touched_at)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
    upload.deviceId,
    upload.attachmentId,
    upload.mimeType,
    upload.totalBytes,
    upload.storedBytes,
    upload.isComplete ? 1 : 0,
    upload.handle,
    nowMs,
  )
}

/** Stores the next piece as a row of its own: it has at most 128 KiB, half of what a row may hold (D27). */
export function appendPiece(
  sql: Sql,
  { deviceId, attachmentId, storedBytes }: Upload,
  piece: Uint8Array<ArrayBuffer>,
  nowMs: number,
): void {
  sql.rows(
    'INSERT INTO upload_chunks (device_id, attachment_id, start, body) VALUES (?, ?, ?, ?)',
    deviceId,
    attachmentId,
    storedBytes,
    piece.byteLength === piece.buffer.byteLength ? piece.buffer : piece.slice().buffer,
  )
  sql.rows(
    'UPDATE uploads SET stored_bytes = ?, touched_at = ? WHERE device_id = ? AND attachment_id = ?',
    storedBytes + piece.byteLength,
    nowMs,
    deviceId,
    attachmentId,
  )
}

export function completeUpload(sql: Sql, { deviceId, attachmentId }: Upload): void {
  sql.rows(
    'UPDATE uploads SET complete = 1 WHERE device_id = ? AND attachment_id = ?',
    deviceId,
    attachmentId,
  )
}

export function deleteUpload(
  sql: Sql,
  { deviceId, attachmentId }: Pick<Upload, 'deviceId' | 'attachmentId'>,
): void {
  sql.rows('DELETE FROM upload_chunks WHERE device_id = ? AND attachment_id = ?', deviceId, attachmentId)
  sql.rows('DELETE FROM uploads WHERE device_id = ? AND attachment_id = ?', deviceId, attachmentId)
}

/** Removes what was begun and not gone on with since then. */
export function deleteAbandoned(sql: Sql, beforeMs: number): void {
  const rows = sql.rows(
    'SELECT device_id, attachment_id FROM uploads WHERE complete = 0 AND touched_at <= ?',
    beforeMs,
  )
  for (const row of rows)
    deleteUpload(sql, { deviceId: textOf(row, 'device_id'), attachmentId: textOf(row, 'attachment_id') })
}

/** The pieces of an upload from the one that holds a byte on, one read at a time. */
export function* eachPiece(
  sql: Sql,
  { deviceId, attachmentId }: Upload,
  fromByte = 0,
): Generator<{ start: number; body: Uint8Array }, void> {
  const first = sql.rows(
    'SELECT coalesce(max(start), 0) AS start FROM upload_chunks WHERE device_id = ? AND attachment_id = ? AND start <= ?',
    deviceId,
    attachmentId,
    fromByte,
  )[0]
  for (let next = first ? numberOf(first, 'start') : 0; ; ) {
    const row = sql.rows(
      'SELECT start, body FROM upload_chunks WHERE device_id = ? AND attachment_id = ? AND start = ?',
      deviceId,
      attachmentId,
      next,
    )[0]
    if (row === undefined) return
    const piece = { start: numberOf(row, 'start'), body: bytesOf(row, 'body') }
    yield piece
    next = piece.start + piece.body.byteLength
  }
}

const toUpload = (row: SqlRow): Upload => ({
  deviceId: textOf(row, 'device_id'),
  attachmentId: textOf(row, 'attachment_id'),
  mimeType: textOf(row, 'mime_type'),
  totalBytes: numberOf(row, 'total_bytes'),
  storedBytes: numberOf(row, 'stored_bytes'),
  isComplete: numberOf(row, 'complete') === 1,
  handle: textOf(row, 'handle'),
})
