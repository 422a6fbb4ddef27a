import { describe, expect, test } from 'vitest'
import { remoteGoldenText } from '../../../../scripts/lib/remote-golden.ts'
import { decodeHandshake } from '../../../../src/protocol/remote/decode-handshake.ts'
import { decodeRequest } from '../../../../src/protocol/remote/decode-request.ts'
import {
  MAX_FRAME_BYTES,
  MAX_HANDSHAKE_BYTES,
  MAX_REQUEST_BYTES,
} from '../../../../src/protocol/remote/limits.ts'
import { RemoteRequest } from '../../../../src/protocol/remote/request.ts'
import { utf8Bytes } from '../../../../src/protocol/remote/utf8.ts'
import type { Json } from '../support/schema-walk.ts'
import { DOCUMENT_NAMES, documentOf, goldens, goldensOf } from './support/documents.ts'
import { placesIn, placesOf } from './support/schema-places.ts'

const asJson = (value: unknown): Json => JSON.parse(JSON.stringify(value))

describe('golden files of the remote protocol', () => {
  test.each(goldens)('$path is formatted and ordered as `npm run golden:update` leaves it', (file) => {
    expect(file.text).toBe(remoteGoldenText(file))
  })

  test.each(goldens)('[RF 1] $path fits into its frame', ({ document, wire }) => {
    const limits = { 'handshake-request': MAX_HANDSHAKE_BYTES, request: MAX_REQUEST_BYTES }
    const limit = limits[document as keyof typeof limits] ?? MAX_FRAME_BYTES
    expect(utf8Bytes(JSON.stringify(wire))).toBeLessThanOrEqual(limit)
  })

  test.each(goldensOf('handshake-request'))('$path is read as a first frame', ({ wire }) => {
    const decoded = decodeHandshake(JSON.stringify(wire))
    expect(decoded.ok && asJson(decoded.request)).toEqual(wire)
  })

  test.each(goldensOf('request'))('$path is read as a request', ({ wire }) => {
    const decoded = decodeRequest(JSON.stringify(wire), 'session')
    const sent = RemoteRequest.parse(wire)
    expect(decoded).toEqual({
      k: 'request',
      request: {
        requestId: sent.request_id,
        sessionId: sent.session_id ?? null,
        registrationEpoch: sent.registration_epoch ?? null,
        operation: sent.operation,
      },
    })
  })

  test.each(goldensOf('token-ack'))('$path is read as an acknowledgement', ({ wire }) => {
    expect(decodeRequest(JSON.stringify(wire), 'session').k).toBe('token_ack')
  })

  test.each(goldensOf('flow-ack'))('$path is read as what a device has read', ({ wire }) => {
    expect(decodeRequest(JSON.stringify(wire), 'session', true).k).toBe('flow_ack')
  })
})

describe('the golden files of', () => {
  test.each(DOCUMENT_NAMES)('%s show every field and every listed value of the document', (name) => {
    const document = documentOf(name)
    const shown = new Set(goldensOf(name).flatMap(({ wire }) => [...placesIn(document, asJson(wire))]))
    expect([...placesOf(document)].filter((place) => !shown.has(place))).toEqual([])
  })

  test('frames would be missed: each type of result, event and frame is a place of its own', () => {
    const places = [...placesOf(documentOf('frame'))]
    const typesUnder = (prefix: string) =>
      places.filter((place) => place.startsWith(`${prefix}(`) && place.includes(').type = '))
    expect(typesUnder('RemoteEvent')).toHaveLength(15)
    // `error` is a name of its own, and stands beside the others.
    expect(typesUnder('OutrightResult')).toHaveLength(23)
    expect(places).toContain('RemoteError.type = error')
    expect(places).toContain('RemoteResult(request_status).result')
    const without = goldensOf('frame').filter(({ path }) => !path.includes('stale_turn'))
    const shown = new Set(without.flatMap(({ wire }) => [...placesIn(documentOf('frame'), asJson(wire))]))
    expect(places.filter((place) => !shown.has(place))).toEqual(['RemoteErrorCode = stale_turn'])
  })
})

test('[D37] what is reserved has its golden files, though the router never sends it', () => {
  const paths = new Set(goldens.map(({ path }) => path))
  const reserved = [
    'handshake/responses/error_not_implemented.json',
    'frames/response_error_unauthorized.json',
    'frames/response_error_receipt_capacity.json',
    'frames/response_error_open_elsewhere.json',
    'frames/event_session_closed_session_changed.json',
    'frames/event_session_closed_device_revoked.json',
    'frames/event_resync_required_history_changed.json',
    'frames/event_subagent_updated.json',
    'requests/request_share.json',
  ]
  expect(reserved.filter((path) => !paths.has(path))).toEqual([])
})
