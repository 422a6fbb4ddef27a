import { describe, expect, test } from 'vitest'
import { toBase64 } from '../../../src/protocol/base64.ts'
import { TranscriptWindow } from '../../../src/session/transcript-window.ts'
import { uploadedImages } from '../../../src/session/uploaded-images.ts'
import { Uploads } from '../../../src/session/uploads.ts'
import { insertMessage } from '../../../src/storage/session/messages.ts'
import { migrateSession } from '../../../src/storage/session/migrations.ts'
import { makeNodeSql } from '../../support/node/node-sql.ts'
import { jpegNamed, makePng } from '../../support/node/pictures.ts'

const PNG = makePng({ width: 20, height: 20 })
const JPEG = jpegNamed('grey')

/** A session with two pictures, and a count of the pieces that were read. */
function makeSession() {
  const plain = makeNodeSql()
  migrateSession(plain)
  const read = { pieces: 0 }
  const sql: typeof plain = {
    ...plain,
    rows: (query, ...values) => {
      const rows = plain.rows(query, ...values)
      if (query.startsWith('SELECT start, body')) read.pieces += rows.length
      return rows
    },
  }
  const uploads = new Uploads({ sql: plain, nowMs: () => 0, takesImages: () => true })
  const send = (file: Uint8Array, mimeType: string, cuts: number[]): string => {
    const ends = [...cuts, file.length]
    const answers = ends.map((end, n) =>
      uploads.put('phone', {
        type: 'upload_image',
        attachment_id: mimeType.slice(6),
        mime_type: mimeType,
        offset: ends[n - 1] ?? 0,
        total_bytes: file.length,
        data_base64: toBase64([file.subarray(ends[n - 1] ?? 0, end)]),
      }),
    )
    const last = answers.at(-1)
    return last?.type === 'image_uploaded' ? (last.prompt_reference ?? '') : ''
  }
  return { sql, read, png: send(PNG, 'image/png', [7, 8]), jpeg: send(JPEG, 'image/jpeg', []) }
}

describe('the pictures of a message', () => {
  test('are those that it refers to, as they were uploaded', () => {
    const { sql, png, jpeg } = makeSession()
    expect(uploadedImages(sql, 'no picture')).toEqual([])
    const [first, second] = uploadedImages(sql, `${jpeg} and ${png}`)
    expect([first?.mediaType, first?.bytes, first?.base64]).toEqual([
      'image/jpeg',
      JPEG.length,
      JPEG.toString('base64'),
    ])
    expect([second?.mediaType, second?.bytes, second?.base64]).toEqual([
      'image/png',
      PNG.length,
      PNG.toString('base64'),
    ])
  })

  test('come with the history of a turn; their content is read when it is asked for', () => {
    const { sql, read, png } = makeSession()
    const says = (seq: number, text: string) =>
      insertMessage(sql, seq, { w: 'user_message', id: `m${seq}`, runId: 'run', text }, 0, 1)
    says(1, `what is ${png}?`)
    says(2, 'and then?')
    const window = new TranscriptWindow(sql)
    const { transcript } = window.read(2, 'run')
    expect(transcript.map(({ images }) => images?.length)).toEqual([1, undefined])
    // What stays from turn to turn holds nothing of them either.
    expect(window.read(2, 'run').transcript[0]).toBe(transcript[0])
    expect(read.pieces).toBe(0)
    expect(transcript[0]?.images?.[0]?.base64).toBe(PNG.toString('base64'))
    expect(read.pieces).toBe(3)
  })

  test('are none in a sealed session', () => {
    const { sql, png } = makeSession()
    insertMessage(sql, 1, { w: 'user_message', id: 'm1', runId: 'run', text: png }, 0, 1)
    const [message] = new TranscriptWindow(sql, { sealed: true }).read(1, 'run').transcript
    expect(message).not.toHaveProperty('images')
  })
})
