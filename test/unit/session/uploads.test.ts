import { describe, expect, test } from 'vitest'
import { promptReference } from '../../../src/core/images/reference.ts'
import { MAX_SHOWN_BYTES } from '../../../src/core/images/shown.ts'
import { toBase64 } from '../../../src/protocol/base64.ts'
import {
  MAX_IMAGE_BYTES,
  MAX_IMAGE_CHUNK_BYTES,
  MAX_PROMPT_IMAGES,
  MAX_UPLOAD_BYTES,
  MAX_UPLOADS,
  PARTIAL_UPLOAD_TTL_MS,
} from '../../../src/protocol/remote/limits.ts'
import { OutrightResult } from '../../../src/protocol/remote/results.ts'
import { type UploadImage, Uploads } from '../../../src/session/uploads.ts'
import { migrateSession } from '../../../src/storage/session/migrations.ts'
import { completeUpload, insertUpload } from '../../../src/storage/session/uploads.ts'
import { makeNodeSql } from '../../support/node/node-sql.ts'
import { JPEGS, jpegNamed, makeLongPng, makePng } from '../../support/node/pictures.ts'

const PHONE = 'phone'
const PNG = makePng({ width: 20, height: 20 })

const operation = (fields: Partial<UploadImage> & { data?: Uint8Array } = {}): UploadImage => {
  const { data = PNG, ...others } = fields
  return {
    type: 'upload_image',
    attachment_id: 'shot-1',
    mime_type: 'image/png',
    offset: 0,
    total_bytes: PNG.length,
    data_base64: toBase64([data]),
    ...others,
  }
}

function makeUploads({ takesImages = true } = {}) {
  const sql = makeNodeSql()
  migrateSession(sql)
  const clock = { nowMs: 1_000_000 }
  const uploads = new Uploads({ sql, nowMs: () => clock.nowMs, takesImages: () => takesImages })
  /** A chunk of a file. */
  const part = (file: Uint8Array, from: number, to: number, fields: Partial<UploadImage> = {}) =>
    uploads.put(
      PHONE,
      operation({ offset: from, total_bytes: file.length, data: file.subarray(from, to), ...fields }),
    )
  const send = (file: Uint8Array, attachmentId: string, device = PHONE): string => {
    let answer: OutrightResult | null = null
    for (let at = 0; at < file.length; at += MAX_IMAGE_CHUNK_BYTES) {
      const data = file.subarray(at, at + MAX_IMAGE_CHUNK_BYTES)
      const fields = { offset: at, total_bytes: file.length, data, attachment_id: attachmentId }
      answer = uploads.put(device, operation(fields))
    }
    if (answer?.type !== 'image_uploaded' || answer.prompt_reference === undefined)
      throw new Error(`not uploaded: ${JSON.stringify(answer)}`)
    return answer.prompt_reference
  }
  return { sql, clock, uploads, part, send }
}

const rows = (sql: ReturnType<typeof makeNodeSql>) => [
  sql.rows('SELECT attachment_id, stored_bytes, complete FROM uploads ORDER BY attachment_id'),
  sql.rows('SELECT attachment_id, start FROM upload_chunks ORDER BY attachment_id, start'),
]

const refusal = (message = expect.any(String)) => ({ type: 'error', code: 'invalid_request', message })

describe('[RF 27] an upload', () => {
  test('in one chunk is complete with it, and is told how to refer to it', () => {
    const { uploads } = makeUploads()
    const answer = uploads.put(PHONE, operation())
    expect(answer).toEqual({
      type: 'image_uploaded',
      attachment_id: 'shot-1',
      next_offset: PNG.length,
      total_bytes: PNG.length,
      complete: true,
      prompt_reference: expect.stringMatching(/^!\[image\]\(switchyard-image:[0-9a-f-]{36}\)$/),
    })
    expect(OutrightResult.parse(answer)).toEqual(answer)
  })

  test('in several chunks: only the final reply has the reference', () => {
    const { part } = makeUploads()
    expect(part(PNG, 0, 40)).toEqual({
      type: 'image_uploaded',
      attachment_id: 'shot-1',
      next_offset: 40,
      total_bytes: PNG.length,
      complete: false,
    })
    expect(part(PNG, 40, 50)).toMatchObject({ next_offset: 50, complete: false })
    expect(part(PNG, 50, PNG.length)).toMatchObject({ complete: true, prompt_reference: expect.any(String) })
  })

  test.each(JPEGS)('of a JPEG: %s', (_name, file) => {
    const { part } = makeUploads()
    expect(part(file, 0, file.length, { mime_type: 'image/jpeg' })).toMatchObject({ complete: true })
  })

  test('whose chunks are sent again gets the same answers, even after it is complete', () => {
    const { sql, part } = makeUploads()
    const answers = () => [part(PNG, 0, 40), part(PNG, 40, 90), part(PNG, 90, PNG.length)]
    const first = answers()
    const stored = rows(sql)
    expect(answers()).toEqual(first)
    // In other pieces than they were stored, too.
    expect(part(PNG, 30, 95)).toMatchObject({ next_offset: 95, complete: false })
    expect(part(PNG, 0, PNG.length)).toEqual(first[2])
    expect(rows(sql)).toEqual(stored)
  })

  test('whose bytes or metadata change is refused, and stays as it is', () => {
    const { sql, part } = makeUploads()
    part(PNG, 0, 40)
    const other = Buffer.from(PNG)
    other[39] = (other[39] ?? 0) ^ 1
    const check = () => {
      const stored = rows(sql)
      expect(part(other, 20, 40)).toEqual(refusal('the chunk differs from what is stored'))
      expect(part(PNG, 0, 20, { total_bytes: PNG.length + 1 })).toEqual(refusal())
      expect(part(PNG, 0, 20, { mime_type: 'image/jpeg' })).toEqual(refusal())
      expect(rows(sql)).toEqual(stored)
    }
    check()
    // Half of it is new: it would have to be cut.
    expect(part(PNG, 30, 50)).toEqual(refusal('the chunk differs from what is stored'))
    expect(part(PNG, 41, 50)).toEqual(refusal('the chunk does not follow what is stored'))
    part(PNG, 40, PNG.length)
    check()
  })

  test('that is no picture is deleted with its last chunk, and may be sent anew', () => {
    const { sql, part } = makeUploads()
    const broken = Buffer.from(PNG)
    broken[60] = (broken[60] ?? 0) ^ 1
    part(broken, 0, 50)
    expect(part(broken, 50, PNG.length)).toEqual(refusal())
    expect(rows(sql)).toEqual([[], []])
    expect(part(PNG, 0, PNG.length)).toMatchObject({ complete: true })
  })

  test('is what it is said to be', () => {
    const { part } = makeUploads()
    expect(part(PNG, 0, PNG.length, { mime_type: 'image/jpeg' })).toEqual(refusal('this is no JPEG'))
    const jpeg = jpegNamed('grey')
    expect(part(jpeg, 0, jpeg.length)).toEqual(refusal('this is no PNG'))
    const wide = makePng({ width: 4097, height: 1, colour: 0 })
    expect(part(wide, 0, wide.length)).toEqual(refusal('a picture may have at most 4096 × 4096 pixels'))
  })

  test('of one device is not that of another under the same name', () => {
    const { uploads, send } = makeUploads()
    const reference = send(PNG, 'shot-1')
    expect(send(PNG, 'shot-1', 'tablet')).not.toBe(reference)
    uploads.put('watch', operation({ data: PNG.subarray(0, 9) }))
    expect(uploads.put('watch', operation({ offset: 9, data: PNG.subarray(9) }))).toMatchObject({
      complete: true,
    })
  })

  test('is not taken where no model of the session takes pictures, whatever else is wrong with it', () => {
    const { sql, uploads } = makeUploads({ takesImages: false })
    const error = { type: 'error', code: 'unsupported_operation', message: expect.any(String) }
    expect(uploads.put(PHONE, operation())).toEqual(error)
    expect(uploads.put(PHONE, operation({ attachment_id: '', mime_type: 'text/html' }))).toEqual(error)
    expect(rows(sql)).toEqual([[], []])
  })

  test.each<[string, Partial<UploadImage> & { data?: Uint8Array }]>([
    ['no name', { attachment_id: '' }],
    ['a name that is too long', { attachment_id: 'a'.repeat(65) }],
    ['a name with another character', { attachment_id: 'a/b' }],
    ['a name with a line end', { attachment_id: 'a\n' }],
    ['another kind', { mime_type: 'image/webp' }],
    ['no size', { total_bytes: 0 }],
    ['too large a size', { total_bytes: MAX_IMAGE_BYTES + 1 }],
    ['an empty chunk', { data_base64: '' }],
    ['base64 without padding', { data_base64: 'AAA' }],
    ['base64 for URLs', { data_base64: 'A-_A' }],
    ['base64 with bits left over', { data_base64: 'AB==' }],
    ['base64 with a blank', { data_base64: 'AA A' }],
    ['base64 that ends in its middle', { data_base64: 'AA==AAAA' }],
    ['too long a chunk', { total_bytes: MAX_IMAGE_BYTES, data: new Uint8Array(MAX_IMAGE_CHUNK_BYTES + 1) }],
    ['too many letters', { total_bytes: MAX_IMAGE_BYTES, data_base64: 'A'.repeat(200_000) }],
    ['a chunk beyond its size', { total_bytes: PNG.length - 1 }],
    ['another beginning', { offset: 1, data: PNG.subarray(1) }],
  ])('with %s is refused', (_, fields) => {
    const { sql, uploads } = makeUploads()
    expect(uploads.put(PHONE, operation(fields))).toEqual(refusal())
    expect(rows(sql)).toEqual([[], []])
  })

  test('may have chunks and a name of the longest kind', () => {
    const { uploads } = makeUploads()
    const data = new Uint8Array(MAX_IMAGE_CHUNK_BYTES)
    const fields = { attachment_id: 'aZ_-'.repeat(16), total_bytes: MAX_IMAGE_BYTES, data }
    expect(uploads.put(PHONE, operation(fields))).toMatchObject({ next_offset: MAX_IMAGE_CHUNK_BYTES })
  })
})

describe('[RF 27] a session reserves', () => {
  const begin = (name: string, totalBytes: number) =>
    operation({ attachment_id: name, total_bytes: totalBytes, data: Uint8Array.of(1) })

  test('at most 64 MiB', () => {
    const { uploads } = makeUploads()
    for (let n = 0; n < MAX_UPLOAD_BYTES / MAX_IMAGE_BYTES; n++)
      expect(uploads.put(`device ${n}`, begin('a', MAX_IMAGE_BYTES))).toMatchObject({ complete: false })
    expect(uploads.put(PHONE, begin('b', 2))).toEqual(refusal('the session has no room for another picture'))
    // What is begun goes on.
    const next = { ...begin('a', MAX_IMAGE_BYTES), offset: 1 }
    expect(uploads.put('device 0', next)).toMatchObject({ next_offset: 2 })
  })

  test('at most 256 attachments', () => {
    const { uploads } = makeUploads()
    for (let n = 0; n < MAX_UPLOADS; n++)
      expect(uploads.put(PHONE, begin(`a${n}`, 2))).toMatchObject({ complete: false })
    expect(uploads.put(PHONE, begin('b', 2))).toEqual(refusal('the session has no room for another picture'))
  })

  test('for a partial upload an hour, until the next upload', () => {
    const { sql, clock, uploads, part, send } = makeUploads()
    send(PNG, 'whole')
    part(PNG, 0, 40, { attachment_id: 'goes-on' })
    part(PNG, 0, 40, { attachment_id: 'left' })
    clock.nowMs += PARTIAL_UPLOAD_TTL_MS - 1
    part(PNG, 40, 50, { attachment_id: 'goes-on' })
    clock.nowMs += 1
    expect(part(PNG, 50, 60, { attachment_id: 'goes-on' })).toMatchObject({ next_offset: 60 })
    expect(sql.rows('SELECT attachment_id FROM uploads ORDER BY 1')).toEqual([
      { attachment_id: 'goes-on' },
      { attachment_id: 'whole' },
    ])
    expect(
      uploads.put(PHONE, operation({ attachment_id: 'left', offset: 40, data: PNG.subarray(40) })),
    ).toEqual(refusal('the upload has to begin at offset 0'))
  })
})

describe('[RF 27] a prompt', () => {
  const notUploaded = {
    ok: false,
    error: { code: 'invalid_request', message: 'the prompt refers to a picture that was not uploaded' },
  }

  test('refers to pictures of its device, each once', () => {
    const { uploads, send } = makeUploads()
    const [a, b] = [send(PNG, 'a'), send(PNG, 'b')]
    const checked = uploads.check(PHONE, `Look: ${a} and ${b}, ${a} above all`)
    expect(checked.ok && checked.value.map(promptReference)).toEqual([a, b])
    expect(
      uploads.check(PHONE, 'no picture, but ![logo](https://example.com/a.png) and ![x](./a.png)'),
    ).toEqual({
      ok: true,
      value: [],
    })
  })

  test('cannot refer to those of another device or session, nor to incomplete ones', () => {
    const { sql, uploads, send } = makeUploads()
    const reference = send(PNG, 'a')
    expect(uploads.check('tablet', reference)).toEqual(notUploaded)
    expect(makeUploads().uploads.check(PHONE, reference)).toEqual(notUploaded)
    sql.rows('UPDATE uploads SET complete = 0')
    expect(uploads.check(PHONE, reference)).toEqual(notUploaded)
  })

  test('cannot refer to anything else', () => {
    const { uploads, send } = makeUploads()
    const reference = send(PNG, 'shot-1')
    for (const text of [
      promptReference('00000000-0000-0000-0000-000000000000'),
      promptReference('shot-1'),
      promptReference('../../etc/passwd'),
      reference.toUpperCase(),
      reference.replace('![image]', '![cat]'),
      reference.replace('(', '( '),
      `${reference} ${promptReference('x')}`,
      '![image](file:///etc/passwd)',
      '![](<file:/etc/passwd>)',
    ])
      expect(uploads.check(PHONE, `see ${text}`), text).toEqual(notUploaded)
  })

  test('has at most eight pictures', () => {
    const { uploads, send } = makeUploads()
    const all = Array.from({ length: MAX_PROMPT_IMAGES + 1 }, (_, n) => send(PNG, `a${n}`))
    expect(uploads.check(PHONE, all.slice(1).join(' '))).toMatchObject({ ok: true })
    expect(uploads.check(PHONE, all.join(' '))).toMatchObject({
      ok: false,
      error: { code: 'invalid_request' },
    })
  })

  test('has no more of them than fit the memory of its session together', () => {
    const { sql, uploads } = makeUploads()
    const handles = ['a', 'b'].map((attachmentId, n) => {
      const handle = `00000000-0000-0000-0000-00000000000${n}`
      const totalBytes = MAX_SHOWN_BYTES / 2 + n
      const upload = {
        deviceId: PHONE,
        attachmentId,
        mimeType: 'image/png',
        totalBytes,
        storedBytes: 0,
        handle,
      }
      insertUpload(sql, { ...upload, isComplete: false }, 0)
      completeUpload(sql, { ...upload, isComplete: false })
      return promptReference(handle)
    })
    expect(uploads.check(PHONE, handles[1] ?? '')).toMatchObject({ ok: true })
    expect(uploads.check(PHONE, handles.join(''))).toMatchObject({
      ok: false,
      error: { code: 'invalid_request' },
    })
  })

  test('of any length is looked through in a moment', () => {
    const { uploads } = makeUploads()
    const began = performance.now()
    for (const piece of ['![', '](', '![image](', '](   ', '![image](switchyard-image:'])
      uploads.check(PHONE, piece.repeat(200_000 / piece.length))
    expect(performance.now() - began).toBeLessThan(2000)
  })
})

test('[D39] the largest file is taken chunk by chunk and checked to its end', () => {
  const { sql, send } = makeUploads()
  const file = makeLongPng(MAX_IMAGE_BYTES - 200)
  expect(send(file, 'long')).toContain('switchyard-image:')
  expect(sql.rows('SELECT max(octet_length(body)) AS bytes FROM upload_chunks')).toEqual([
    { bytes: MAX_IMAGE_CHUNK_BYTES },
  ])
})
