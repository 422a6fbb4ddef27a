import { describe, expect, test } from 'vitest'
import { ProtocolWatch } from '../../support/remote-device/protocol-watch.ts'

/** What the black-box tests of the gateway rely on: their device notices what a gateway must not do. */

const HEX_32 = '0'.repeat(32)
const TOKEN = 'a'.repeat(43)
const PAIR = { type: 'pair', protocol_version: 1, method: 'code', secret: 'x', device_name: 'x' }
const PAIRED = {
  type: 'paired',
  protocol_version: 1,
  gateway_id: HEX_32,
  instance_id: HEX_32,
  device_id: '0011223344556677',
  device_name: 'x',
  token: TOKEN,
  expires_at: '2030-01-01T00:00:00Z',
}
const LIST = { gateway_id: HEX_32, instance_id: HEX_32, sessions: [] }
const ask = (type: string, request_id = 'r') => ({ protocol_version: 1, request_id, operation: { type } })
const respond = (result: object, more: object = {}) => ({
  kind: 'response',
  protocol_version: 1,
  request_id: 'r',
  result,
  ...more,
})
const LISTED = respond({ type: 'sessions', ...LIST, subscribed: false })
const PUSH = { kind: 'sessions', protocol_version: 1, ...LIST }
const refusal = (code: string) => ({ type: 'error', code, message: 'no' })
const NOT_FOUND = { type: 'error', code: 'not_found', message: 'no' }
const ROW = {
  session_id: 'a',
  registration_epoch: 1,
  title: '',
  model: '',
  activity: 'idle',
  attention: { approval: false, question: false },
  health: 'live',
}

type Step = { out: object | string } | { in: object | string | Uint8Array } | { close: number }

/** Plays a conversation and gives the faults. */
function faultsOf(...steps: Step[]): string[] {
  const watch = new ProtocolWatch()
  for (const step of steps) {
    if ('out' in step) watch.sent(typeof step.out === 'string' ? step.out : JSON.stringify(step.out))
    else if ('close' in step) watch.closed(step.close)
    else
      watch.received(
        typeof step.in === 'string' || step.in instanceof Uint8Array ? step.in : JSON.stringify(step.in),
      )
  }
  return watch.faults
}

const INSIDE: Step[] = [{ out: PAIR }, { in: PAIRED }]

describe('a device of the tests', () => {
  test('finds no fault with what the contract describes', () => {
    const push = { ...PUSH, sessions: [ROW, { ...ROW, session_id: 'b' }] }
    expect(
      faultsOf(
        ...INSIDE,
        { out: '{"type":"ping"}' },
        { in: '{"type":"pong"}' },
        { out: ask('list_sessions') },
        { in: LISTED },
        { out: ask('subscribe_sessions', 'r') },
        { in: respond({ type: 'sessions', ...LIST, subscribed: true, capabilities: ['token_rotation'] }) },
        { in: push },
        { out: { ...ask('cancel_turn'), session_id: 'x', registration_epoch: 1 } },
        { in: respond(NOT_FOUND, { receipt: 'rejected' }) },
        { out: 'no json' },
        { in: respond({ ...NOT_FOUND, code: 'invalid_request' }, { request_id: '' }) },
        { out: { type: 'token_ack', rotation_id: 'x' } },
        { in: refusal('revoked') },
        { close: 1005 },
      ),
    ).toEqual([])
    expect(faultsOf({ in: refusal('handshake_timeout') }, { close: 1005 })).toEqual([])
    expect(
      faultsOf(
        { out: { type: 'connect_request', protocol_version: 1, device_name: 'x' } },
        { in: { type: 'connect_pending', request_id: '0123456789abcdef', expires_in_secs: 120 } },
        { in: { type: 'connect_denied' } },
        { close: 1005 },
      ),
    ).toEqual([])
  })

  test.each<[string, Step[], RegExp]>([
    ['a frame before anything was said', [{ in: PAIRED }], /paired came after nothing/],
    [
      'an answer of the wrong kind',
      [{ out: PAIR }, { in: { ...PAIRED, type: 'authenticated' } }],
      /authenticated/,
    ],
    ['a second answer to the handshake', [...INSIDE, { in: PAIRED }], /wrong time/],
    ['a response before authentication', [{ out: PAIR }, { in: LISTED }], /no frame of the type/],
    ['a field that is null', [{ out: PAIR }, { in: { ...PAIRED, host_name: null } }], /host_name is null/],
    [
      'a field that is missing',
      [{ out: PAIR }, { in: { ...PAIRED, gateway_id: undefined } }],
      /gateway_id is missing/,
    ],
    [
      'a field that nobody knows',
      [{ out: PAIR }, { in: { ...PAIRED, gatewayId: 'x' } }],
      /gatewayId is unknown/,
    ],
    [
      'a static and a rotating token at once',
      [{ out: PAIR }, { in: { ...PAIRED, refresh_token: TOKEN } }],
      /unknown/,
    ],
    ['a code that is in no table', [{ out: PAIR }, { in: refusal('oops') }], /code is not one of/],
    ['a code out of place', [{ out: PAIR }, { in: refusal('access_expired') }], /has no place after pair/],
    [
      'a wait without its length',
      [{ out: PAIR }, { in: refusal('rate_limited') }],
      /retry_after_secs is missing/,
    ],
    ['a close without a word', [...INSIDE, { close: 1000 }], /without a word/],
    ['a close with a code', [...INSIDE, { in: refusal('revoked') }, { close: 4001 }], /the code 4001/],
    ['a frame after the last', [...INSIDE, { in: refusal('revoked') }, { in: LISTED }], /after the last one/],
    ['an answer to nothing', [...INSIDE, { in: LISTED }], /nobody waits for/],
    [
      'a second answer',
      [...INSIDE, { out: ask('list_sessions') }, { in: LISTED }, { in: LISTED }],
      /nobody waits for/,
    ],
    [
      'an answer without an id',
      [...INSIDE, { out: ask('list_sessions') }, { in: { ...LISTED, request_id: '' } }],
      /without an id/,
    ],
    [
      'a receipt on a read',
      [...INSIDE, { out: ask('list_sessions') }, { in: { ...LISTED, receipt: 'applied' } }],
      /nothing can change/,
    ],
    [
      'a change without a receipt',
      [...INSIDE, { out: ask('cancel_turn') }, { in: respond(NOT_FOUND) }],
      /receipt is missing/,
    ],
    ['a list that was not asked for', [...INSIDE, { in: PUSH }], /did not subscribe/],
    ['a pong that was not asked for', [...INSIDE, { in: { type: 'pong' } }], /pong/],
    ['a binary frame', [...INSIDE, { in: new Uint8Array(3) }], /binary/],
    [
      'a frame that is too long',
      [...INSIDE, { in: JSON.stringify({ ...PUSH, x: 'x'.repeat(262_144) }) }],
      /over 256 KiB/,
    ],
    ['no JSON', [...INSIDE, { in: '{' }], /no JSON object/],
  ])('notices %s', (_, steps, fault) => {
    expect(faultsOf(...steps).join('\n')).toMatch(fault)
  })

  test('notices a list that did not change, that is out of order, or that has the other names', () => {
    const subscribed: Step[] = [
      ...INSIDE,
      { out: ask('subscribe_sessions') },
      { in: respond({ type: 'sessions', ...LIST, subscribed: true }) },
    ]
    expect(faultsOf(...subscribed, { in: PUSH }).join()).toMatch(/did not change/)
    const two = [{ ...ROW, session_id: 'b' }, ROW]
    expect(faultsOf(...subscribed, { in: { ...PUSH, sessions: two } }).join()).toMatch(/not in the order/)
    const { session_id: thread_id, ...rest } = ROW
    expect(faultsOf(...subscribed, { in: { ...PUSH, sessions: [{ thread_id, ...rest }] } }).join()).toMatch(
      /thread_id is unknown/,
    )
    expect(faultsOf(...subscribed, { in: { ...PUSH, kind: 'threads' } }).join()).toMatch(
      /no frame of the kind/,
    )
  })
})
