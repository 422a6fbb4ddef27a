import { describe, expect, test } from 'vitest'
import type { RunState } from '../../../src/core/run/state.ts'
import type { ContinueRequest } from '../../../src/protocol/execution/continue.ts'
import { refuseLargeBundle, refuseOverfull } from '../../../src/session/bounds.ts'
import {
  MAX_MESSAGES_PER_SESSION,
  MAX_RUNS_PER_SESSION,
  MAX_SEALED_BUNDLE_BYTES,
  MAX_TURNS_PER_RUN,
} from '../../../src/storage/limits.ts'
import type { Sql } from '../../../src/storage/session/sql.ts'
import { makeState } from '../storage/contract/builders.ts'

/** No row is read to tell how full a session is. */
const UNREAD: Sql = {
  rows: (query) => {
    throw new Error(`read ${query}`)
  },
  transaction: (work) => work(),
}
const FULL = {
  message: MAX_MESSAGES_PER_SESSION,
  runs: MAX_RUNS_PER_SESSION,
  turn: 1,
  rev: 1,
  ringReserved: 0,
}

const waiting = (fields: Partial<RunState> = {}): RunState => ({
  ...makeState(),
  active: null,
  unsettled: null,
  turn: MAX_TURNS_PER_RUN,
  phase: { k: 'AwaitingTool', calls: [], resume: 'NextTurn' },
  ...fields,
})

const refusal = (message: ContinueRequest | null, state: RunState | null = waiting()) =>
  refuseOverfull(UNREAD, state, FULL, { digest: 'd', message })?.details

describe('[D27] in a session that is full in every way', () => {
  const SEALED: ContinueRequest = { type: 'sealed', data: { encrypted: {} } }
  const DECRYPTED: ContinueRequest = { type: 'decrypted', data: { plaintext: {} } }
  const RESULTS: ContinueRequest = { type: 'tool_results', data: { results: [] } }
  const INJECT: ContinueRequest = { type: 'inject', data: { messages: [{ text: 'x' }] } }

  test('what is open can be stopped, sealed and opened', () => {
    for (const message of [{ type: 'break' } as const, SEALED, DECRYPTED])
      expect(refusal(message)).toBeUndefined()
  })

  test('nothing new begins', () => {
    expect(refusal(null)).toEqual({ max_messages: MAX_MESSAGES_PER_SESSION })
    expect(refusal(null, null)).toEqual({ max_messages: MAX_MESSAGES_PER_SESSION })
    expect(refusal(INJECT)).toEqual({ max_messages: MAX_MESSAGES_PER_SESSION })
    expect(refusal(RESULTS)).toEqual({ max_turns: MAX_TURNS_PER_RUN })
  })

  test('what was taken before a crash is taken again', () => {
    const state = waiting({ unsettled: { digest: 'd', kind: 'tool_results' } })
    for (const message of [null, INJECT, RESULTS]) expect(refusal(message, state)).toBeUndefined()
  })
})

test('[D27] what a run of a sealed session starts with has 2 MiB as JSON, its prompt counted twice', () => {
  const fits = 'ü'.repeat(MAX_SEALED_BUNDLE_BYTES / 2 - 5)
  expect(refuseLargeBundle(fits, 'a "b"\n!')).toBeNull()
  expect(refuseLargeBundle(fits, 'a "b"\n!!')).toMatchObject({
    code: 'invalid_request',
    details: { bytes: MAX_SEALED_BUNDLE_BYTES + 1, max_bytes: MAX_SEALED_BUNDLE_BYTES },
  })
})
