import { readFileSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, it } from 'vitest'
import { RemoteErrorCode } from '../../src/protocol/remote/errors.ts'
import { RemoteEvent, ResyncReason, SessionCloseReason } from '../../src/protocol/remote/events.ts'
import { RemoteOperation } from '../../src/protocol/remote/operations.ts'
import { OutrightResult, ReceiptState } from '../../src/protocol/remote/results.ts'
import { SUITES } from '../support/remote-device/attached/tests/all.ts'

/** Every word of the contract that this router says or hears is met by a test that speaks to it over its wire alone. */

const typesOf = (options: readonly { shape: { type: { value: string } } }[]): string[] =>
  options.map(({ shape }) => shape.type.value)

const WORDS = [
  ...typesOf(RemoteOperation.options).map((type) => `operation:${type}`),
  ...typesOf(OutrightResult.options).map((type) => `result:${type}`),
  'result:request_status',
  ...typesOf(RemoteEvent.options).map((type) => `event:${type}`),
  ...RemoteErrorCode.options.map((code) => `error:${code}`),
  ...ResyncReason.options.map((reason) => `resync:${reason}`),
  ...SessionCloseReason.options.map((reason) => `closed:${reason}`),
  ...ReceiptState.options.flatMap((receipt) => [`status:${receipt}`]),
  ...['started', 'queued', 'steered'].map((disposition) => `disposition:${disposition}`),
  ...['completed', 'cancelled', 'failed'].map((outcome) => `outcome:${outcome}`),
  ...['stored', 'delivered', 'acted_on'].map((state) => `decision:${state}`),
  ...['receipt:applied', 'receipt:rejected'],
]

/** Typed and never sent (D37), or sent by a host only. */
const RESERVED = [
  ...['error:unauthorized', 'error:receipt_capacity', 'error:open_elsewhere', 'closed:session_changed'],
  ...['closed:device_revoked', 'resync:history_changed', 'event:subagent_updated'],
  ...['result:changes', 'result:directories', 'result:session_created'],
  // Is the shape of every refusal.
  'result:error',
]
/** Only where something is broken or slowed on purpose (D37): the tests in workerd of the gateway and of receipts. */
const BY_FAULT = ['error:internal', 'status:received']
/** Met by another black-box suite, whose file says the word. */
const ELSEWHERE: Readonly<Record<string, string>> = {
  'error:incompatible_version': 'request-tests.ts',
  'error:frame_too_large': 'request-tests.ts',
}

describe('the black-box tests of remote protocol v1', () => {
  it('[D37] meet every operation, result, event and code that is not reserved', () => {
    const met = new Set(Object.values(SUITES).flatMap((tests) => tests.flatMap(({ covers }) => covers)))
    const excused = new Set([...RESERVED, ...BY_FAULT, ...Object.keys(ELSEWHERE)])
    expect(WORDS.filter((word) => !met.has(word) && !excused.has(word))).toEqual([])
  })

  it('name no word that the contract does not know', () => {
    const declared = Object.values(SUITES).flatMap((tests) => tests.flatMap(({ covers }) => covers))
    const known = new Set([...WORDS, 'resync_required:lagged'])
    expect(
      [...RESERVED, ...BY_FAULT, ...Object.keys(ELSEWHERE), ...declared].filter((word) => !known.has(word)),
    ).toEqual([])
  })

  it('that meet a word elsewhere do', () => {
    const folder = path.join(import.meta.dirname, '../support/remote-device')
    for (const [word, file] of Object.entries(ELSEWHERE)) {
      expect(readFileSync(path.join(folder, file), 'utf8')).toContain(word.split(':')[1] ?? word)
    }
  })
})
