import { expect, test } from 'vitest'
import { decodeHandshake } from '../../../../src/protocol/remote/decode-handshake.ts'
import { decodeRequest } from '../../../../src/protocol/remote/decode-request.ts'
import { RemoteResponse } from '../../../../src/protocol/remote/frame.ts'
import { BareErrorCode } from '../../../../src/protocol/remote/handshake-response.ts'
import { isObject, type Json } from '../support/schema-walk.ts'
import { goldensOf } from './support/documents.ts'

const NONSENSE: Json[] = [
  null,
  true,
  0,
  -1,
  1.5,
  2 ** 60,
  '',
  'token_ack',
  'list_threads',
  [],
  [null],
  {},
  { type: 'x' },
]

/** Every value that differs from the given one in one place: something else stands there, or nothing. */
function* mutated(value: Json): Generator<Json> {
  yield* NONSENSE
  if (Array.isArray(value)) {
    for (const [i, item] of value.entries()) for (const other of mutated(item)) yield value.with(i, other)
  } else if (isObject(value)) {
    for (const [key, member] of Object.entries(value)) {
      const { [key]: _, ...rest } = value
      yield rest
      for (const other of mutated(member)) yield { ...value, [key]: other }
    }
  }
}

const asJson = (value: unknown): Json => JSON.parse(JSON.stringify(value))

test.each(goldensOf('request'))(
  'whatever stands in $path in the wrong place, there is an answer',
  ({ wire }) => {
    for (const frame of mutated(asJson(wire))) {
      const text = JSON.stringify(frame)
      for (const names of ['session', 'thread'] as const) {
        const decoded = decodeRequest(text, names)
        if (decoded.k === 'refused') {
          expect(RemoteResponse.parse(decoded.response)).toEqual(decoded.response)
          expect(decoded.response.receipt).toBeUndefined()
        }
      }
    }
  },
)

test.each(goldensOf('handshake-request'))(
  'whatever stands in $path in the wrong place, there is a code',
  ({ wire }) => {
    for (const frame of mutated(asJson(wire))) {
      const decoded = decodeHandshake(JSON.stringify(frame))
      if (!decoded.ok) expect(BareErrorCode.options).toContain(decoded.error.code)
    }
  },
)

test('half of a frame is no frame', () => {
  for (const { text } of [...goldensOf('request'), ...goldensOf('handshake-request')]) {
    const line = JSON.stringify(JSON.parse(text))
    for (let end = 0; end < line.length; end += 7) {
      expect(decodeRequest(line.slice(0, end), 'session')).toMatchObject({
        k: 'refused',
        response: { request_id: '', result: { code: 'invalid_request' } },
      })
      expect(decodeHandshake(line.slice(0, end))).toMatchObject({
        ok: false,
        error: { code: 'invalid_frame' },
      })
    }
  }
})
