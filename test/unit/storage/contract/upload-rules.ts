import { expect } from 'vitest'
import { MAX_IMAGE_CHUNK_BYTES } from '../../../../src/protocol/remote/limits.ts'
import { MAX_INLINE_BYTES } from '../../../../src/storage/limits.ts'
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
} from '../../../../src/storage/session/uploads.ts'
import { count, ruleInto, type StorageRule } from './rules.ts'

export const UPLOAD_RULES: StorageRule[] = []

const rule = ruleInto(UPLOAD_RULES)

const upload = (fields: Partial<Upload> = {}): Upload => ({
  deviceId: 'phone',
  attachmentId: 'a',
  mimeType: 'image/png',
  totalBytes: 5,
  storedBytes: 0,
  isComplete: false,
  handle: `handle of ${fields.deviceId ?? 'phone'} ${fields.attachmentId ?? 'a'}`,
  ...fields,
})

rule('[D27] the pieces of an upload come back as they were stored, from any byte on', (sql) => {
  const piece = Uint8Array.from({ length: MAX_IMAGE_CHUNK_BYTES }, (_, n) => (n * 7) & 255)
  expect(piece.length).toBeLessThanOrEqual(MAX_INLINE_BYTES)
  const first = upload({ totalBytes: piece.length + 3 })
  insertUpload(sql, first, 1)
  appendPiece(sql, first, piece, 2)
  const stored = loadUpload(sql, 'phone', 'a')
  expect(stored).toEqual({ ...first, storedBytes: piece.length })
  // A view into a longer buffer is stored without what is around it.
  const view = Uint8Array.of(9, 1, 2, 3, 9).subarray(1, 4)
  appendPiece(sql, { ...first, storedBytes: piece.length }, view, 3)
  const pieces = [...eachPiece(sql, first)]
  expect(pieces.map(({ start }) => start)).toEqual([0, piece.length])
  expect(pieces[0]?.body).toEqual(piece)
  expect(pieces[1]?.body).toEqual(Uint8Array.of(1, 2, 3))
  const starts = (from: number) => [...eachPiece(sql, first, from)].map(({ start }) => start)
  expect([starts(piece.length - 1), starts(piece.length), starts(piece.length + 2)]).toEqual([
    [0, piece.length],
    [piece.length],
    [piece.length],
  ])
})

rule('[RF 27] an upload is found by its handle, and belongs to one device', (sql) => {
  insertUpload(sql, upload(), 1)
  insertUpload(sql, upload({ deviceId: 'tablet' }), 1)
  completeUpload(sql, upload())
  expect(findUpload(sql, 'handle of phone a')).toEqual(upload({ isComplete: true }))
  expect(findUpload(sql, 'handle of tablet a')).toEqual(upload({ deviceId: 'tablet' }))
  expect(findUpload(sql, 'another')).toBeNull()
  expect(loadUpload(sql, 'watch', 'a')).toBeNull()
})

rule('[RF 27] what was announced is reserved, and given back with the upload', (sql) => {
  expect(reservedUploads(sql)).toEqual({ count: 0, bytes: 0 })
  insertUpload(sql, upload({ totalBytes: 1000 }), 1)
  insertUpload(sql, upload({ attachmentId: 'b', totalBytes: 500 }), 1)
  appendPiece(sql, upload({ attachmentId: 'b' }), Uint8Array.of(1), 1)
  expect(reservedUploads(sql)).toEqual({ count: 2, bytes: 1500 })
  deleteUpload(sql, upload({ attachmentId: 'b' }))
  expect(reservedUploads(sql)).toEqual({ count: 1, bytes: 1000 })
  expect(count(sql, 'upload_chunks')).toBe(0)
})

rule('[RF 27] only an upload that nobody goes on with is abandoned', (sql) => {
  for (const attachmentId of ['old', 'whole', 'goes on', 'young'])
    insertUpload(sql, upload({ attachmentId }), attachmentId === 'young' ? 101 : 100)
  appendPiece(sql, upload({ attachmentId: 'old' }), Uint8Array.of(1), 100)
  completeUpload(sql, upload({ attachmentId: 'whole' }))
  appendPiece(sql, upload({ attachmentId: 'goes on' }), Uint8Array.of(1), 101)
  deleteAbandoned(sql, 100)
  const left = ['old', 'whole', 'goes on', 'young'].filter((name) => loadUpload(sql, 'phone', name) !== null)
  expect(left).toEqual(['whole', 'goes on', 'young'])
  expect(count(sql, 'upload_chunks')).toBe(1)
})
