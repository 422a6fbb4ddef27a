import { describe, expect, test } from 'vitest'
import { type OpenRequest, takeRequest } from '../../../../src/core/gateway/connect-requests.ts'

const NOW_MS = 1_000_000
const LISTENING = NOW_MS + 1
const [APP, OTHER_APP] = ['a'.repeat(64), 'b'.repeat(64)] as [string, string]

const request = (address: string, more: Partial<OpenRequest> = {}): OpenRequest => ({
  requestId: `of ${address}`,
  address,
  installDigest: null,
  state: 'pending',
  expiresAtMs: NOW_MS + 1,
  ...more,
})

const asked = (address: string, installDigest: string | null = null) => ({
  address,
  installDigest,
  nowMs: NOW_MS,
})

const taken = (replaces: string | null = null) => ({ k: 'taken', replaces })
const busy = { k: 'busy' }

describe('[D41] connect requests are taken only while the owner listens', () => {
  test('outside the window the feature is not there, whatever else is the case', () => {
    const denials = [{ address: '10.0.0.1', untilMs: NOW_MS + 30_000 }]
    expect(takeRequest([], denials, null, asked('10.0.0.1'))).toEqual({ k: 'not_listening' })
    expect(takeRequest([request('10.0.0.1')], [], NOW_MS, asked('10.0.0.1'))).toEqual({ k: 'not_listening' })
  })

  test('until its last moment they are taken', () => {
    expect(takeRequest([], [], NOW_MS + 1, asked('10.0.0.1'))).toEqual(taken())
  })
})

describe('[RF 7] how many requests wait', () => {
  const three = ['10.0.0.1', '10.0.0.2', '10.0.0.3'].map((address) => request(address))

  test('four at once, from four addresses', () => {
    expect(takeRequest(three, [], LISTENING, asked('10.0.0.4'))).toEqual(taken())
    expect(takeRequest([...three, request('10.0.0.4')], [], LISTENING, asked('10.0.0.5'))).toEqual(busy)
  })

  test('one per address', () => {
    expect(takeRequest(three, [], LISTENING, asked('10.0.0.1'))).toEqual(busy)
  })

  test('one that was accepted and waits for its code is open, too', () => {
    const approved = [request('10.0.0.1', { state: 'approved' })]
    expect(takeRequest(approved, [], LISTENING, asked('10.0.0.1'))).toEqual(busy)
  })

  test('one whose time is over does not count', () => {
    const over = [...three, request('10.0.0.4')].map((open) => ({ ...open, expiresAtMs: NOW_MS }))
    expect(takeRequest(over, [], LISTENING, asked('10.0.0.1'))).toEqual(taken())
  })
})

describe('[RF 7] the same app asks again', () => {
  const open = ['10.0.0.2', '10.0.0.3', '10.0.0.4'].map((address) => request(address))
  const before = request('10.0.0.1', { installDigest: APP })

  test('its request from the same address is replaced, pending or accepted, also when four are open', () => {
    const replaced = taken(before.requestId)
    expect(takeRequest([before, ...open], [], LISTENING, asked('10.0.0.1', APP))).toEqual(replaced)
    const approved: OpenRequest = { ...before, state: 'approved' }
    expect(takeRequest([approved], [], LISTENING, asked('10.0.0.1', APP))).toEqual(replaced)
  })

  test('another app of that address, and one that names none, has to wait', () => {
    expect(takeRequest([before], [], LISTENING, asked('10.0.0.1', OTHER_APP))).toEqual(busy)
    expect(takeRequest([before], [], LISTENING, asked('10.0.0.1'))).toEqual(busy)
    expect(takeRequest([request('10.0.0.1')], [], LISTENING, asked('10.0.0.1'))).toEqual(busy)
  })

  test('from another address it is another request, and replaces none', () => {
    expect(takeRequest([before], [], LISTENING, asked('10.0.0.9', APP))).toEqual(taken())
  })
})

describe('[RF 7] after a denial', () => {
  const denials = [
    { address: '10.0.0.1', untilMs: NOW_MS + 29_001 },
    { address: '10.0.0.1', untilMs: NOW_MS + 1 },
  ]

  test('its address is told to wait, in whole seconds', () => {
    const verdict = takeRequest([], denials, LISTENING, asked('10.0.0.1'))
    expect(verdict).toEqual({ k: 'rate_limited', retryAfterSecs: 30 })
  })

  test('at least one second', () => {
    const verdict = takeRequest([], denials.slice(1), LISTENING, asked('10.0.0.1'))
    expect(verdict).toEqual({ k: 'rate_limited', retryAfterSecs: 1 })
  })

  test('other addresses are not concerned', () => {
    expect(takeRequest([], denials, LISTENING, asked('10.0.0.2'))).toEqual(taken())
  })

  test('once the time is over it may ask again', () => {
    const over = denials.map((denial) => ({ ...denial, untilMs: NOW_MS }))
    expect(takeRequest([], over, LISTENING, asked('10.0.0.1'))).toEqual(taken())
  })
})
