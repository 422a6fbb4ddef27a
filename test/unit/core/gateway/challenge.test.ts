import { describe, expect, test } from 'vitest'
import {
  type Attempt,
  attempt,
  type Challenge,
  lockedFor,
  type PairingFailure,
  retained,
} from '../../../../src/core/gateway/challenge.ts'

const OPENED_AT_MS = 1_000_000
const EXPIRES_AT_MS = OPENED_AT_MS + 120_000
const [CODE, CREDENTIAL, WRONG] = ['c', 'a', 'f'].map((hex) => hex.repeat(64)) as [string, string, string]

const open: Challenge = {
  codeDigest: CODE,
  credentialDigest: CREDENTIAL,
  expiresAtMs: EXPIRES_AT_MS,
  attemptsLeft: 5,
  requestId: null,
}
const bound: Challenge = { ...open, credentialDigest: null, requestId: 'r1' }

const wrong: Attempt = {
  method: 'code',
  secretDigest: WRONG,
  address: '10.0.0.1',
  requestId: null,
  nowMs: OPENED_AT_MS,
}
const right: Attempt = { ...wrong, secretDigest: CODE }

const failures = (
  count: number,
  counts: PairingFailure['counts'] = 'all',
  address = '10.0.0.9',
  atMs = OPENED_AT_MS,
): PairingFailure[] => Array.from({ length: count }, (_, n) => ({ atMs: atMs + n, address, counts }))

const failed = (counts: PairingFailure['counts'], challenge: Challenge | null, made: Attempt = wrong) => ({
  k: 'failed',
  failure: { atMs: made.nowMs, address: made.address, counts },
  challenge,
})

describe('[RF 4] the two keys to a challenge', () => {
  test('the code matches as a code, the credential as a credential', () => {
    expect(attempt(open, [], right)).toEqual({ k: 'matched' })
    expect(attempt(open, [], { ...right, method: 'credential', secretDigest: CREDENTIAL })).toEqual({
      k: 'matched',
    })
  })

  test('each is valid for its own method only', () => {
    const left = { ...open, attemptsLeft: 4 }
    expect(attempt(open, [], { ...right, method: 'credential' })).toEqual(failed('all', left))
    expect(attempt(open, [], { ...right, secretDigest: CREDENTIAL })).toEqual(failed('all', left))
  })

  test('a challenge without a credential is matched by none', () => {
    const codeOnly = { ...open, credentialDigest: null }
    const made: Attempt = { ...wrong, method: 'credential' }
    expect(attempt(codeOnly, [], made)).toEqual(failed('all', { ...codeOnly, attemptsLeft: 4 }))
  })

  test('they share five attempts, and the fifth wrong one destroys the challenge', () => {
    let challenge: Challenge | null = open
    const left: (number | null)[] = []
    for (const method of ['code', 'credential', 'code', 'credential', 'code'] as const) {
      const outcome = attempt(challenge, [], { ...wrong, method })
      challenge = outcome.k === 'failed' ? outcome.challenge : open
      left.push(challenge?.attemptsLeft ?? null)
    }
    expect(left).toEqual([4, 3, 2, 1, null])
  })

  test('the last attempt may be the right one', () => {
    expect(attempt({ ...open, attemptsLeft: 1 }, [], right)).toEqual({ k: 'matched' })
  })
})

describe('[RF 4][U31] a challenge is open for less than 120 s', () => {
  test('a moment before it can be redeemed', () => {
    expect(attempt(open, [], { ...right, nowMs: EXPIRES_AT_MS - 1 })).toEqual({ k: 'matched' })
  })

  test('at exactly 120 s the right secret fails, and the challenge is destroyed', () => {
    const made = { ...right, nowMs: EXPIRES_AT_MS }
    expect(attempt(open, [], made)).toEqual(failed('address', null, made))
  })

  test('an exhausted challenge that was kept is not open either', () => {
    expect(attempt({ ...open, attemptsLeft: 0 }, [], right)).toEqual(failed('address', null))
  })
})

describe('[D41] what a failure counts for', () => {
  test('a wrong secret against an open challenge counts for every address', () => {
    expect(attempt(open, [], wrong)).toEqual(failed('all', { ...open, attemptsLeft: 4 }))
  })

  test('with no challenge open it counts for its own address only', () => {
    expect(attempt(null, [], wrong)).toEqual(failed('address', null))
    const ofStranger = failures(1_000, 'address')
    expect(lockedFor(ofStranger, '10.0.0.9', OPENED_AT_MS + 1_000)).not.toBeNull()
    expect(lockedFor(ofStranger, '10.0.0.1', OPENED_AT_MS + 1_000)).toBeNull()
    expect(attempt(open, ofStranger, { ...right, nowMs: OPENED_AT_MS + 1_000 })).toEqual({ k: 'matched' })
  })

  test('for its own address both kinds count together', () => {
    const nine = failures(9)
    expect(attempt(open, nine, right)).toEqual({ k: 'matched' })
    const ten = [...nine, ...failures(1, 'address', '10.0.0.1')]
    expect(attempt(open, ten, right)).toMatchObject({ k: 'rate_limited' })
    expect(attempt(open, ten, { ...right, address: '10.0.0.2' })).toEqual({ k: 'matched' })
  })
})

describe('[RF 3][RF 4] the lockout', () => {
  test('comes before everything: nothing is compared, counted or spent, and the right secret is refused too', () => {
    const outcome = { k: 'rate_limited', retryAfterSecs: 300 }
    const ten = failures(10, 'all', '10.0.0.9', OPENED_AT_MS - 9)
    const made = { ...right, nowMs: OPENED_AT_MS - 9 }
    expect(attempt(open, ten, made)).toEqual(outcome)
    expect(attempt(null, ten, made)).toEqual(outcome)
    expect(attempt(bound, ten, { ...made, requestId: 'r1' })).toEqual(outcome)
  })

  test('nine failures do not lock, ten lock every address', () => {
    const addresses = ['10.0.0.9', '10.0.0.1', 'fd00::1']
    expect(addresses.map((address) => lockedFor(failures(9), address, OPENED_AT_MS + 10))).toEqual([
      null,
      null,
      null,
    ])
    expect(addresses.map((address) => lockedFor(failures(10), address, OPENED_AT_MS + 10))).toEqual([
      300, 300, 300,
    ])
  })

  test('it ends when the oldest of ten is 300 s old, and whole seconds until then are told, at least 1', () => {
    const ten = [...failures(1), ...failures(9, 'all', '10.0.0.9', OPENED_AT_MS + 60_000)]
    const lockedAt = (nowMs: number) => lockedFor(ten, '10.0.0.1', OPENED_AT_MS + nowMs)
    expect([
      lockedAt(60_009),
      lockedAt(298_999),
      lockedAt(299_000),
      lockedAt(299_999),
      lockedAt(300_000),
    ]).toEqual([240, 2, 1, 1, null])
  })

  test('the window slides: one failure leaves it, and the next one locks again', () => {
    const ten = failures(10)
    const nowMs = OPENED_AT_MS + 300_000
    expect(lockedFor(ten, '10.0.0.1', nowMs)).toBeNull()
    expect(lockedFor([...ten, ...failures(1, 'all', '10.0.0.2', nowMs)], '10.0.0.1', nowMs)).toBe(1)
  })

  test('where more than ten count for an address, it ends when fewer than ten are left', () => {
    const own = failures(9, 'address', '10.0.0.1')
    const later = failures(9, 'all', '10.0.0.9', OPENED_AT_MS + 100_000)
    // Nine later ones and one of its own: the newest of its own has to leave.
    expect(lockedFor([...own, ...later], '10.0.0.1', OPENED_AT_MS + 200_000)).toBe(101)
    expect(lockedFor([...own, ...later], '10.0.0.1', OPENED_AT_MS + 300_008)).toBeNull()
  })

  test('failures outlive the challenge: a new one starts with five attempts and the same failures', () => {
    const nine = failures(9)
    const outcome = attempt(open, nine, wrong)
    expect(outcome).toEqual(failed('all', { ...open, attemptsLeft: 4 }))
    const ten = [...nine, ...(outcome.k === 'failed' ? [outcome.failure] : [])]
    const another = { ...open, codeDigest: 'd'.repeat(64) }
    expect(attempt(another, ten, right)).toMatchObject({ k: 'rate_limited' })
  })
})

describe('[RF 7] a challenge that is bound to a connect request', () => {
  test('is redeemed by the code on that request’s socket', () => {
    expect(attempt(bound, [], { ...right, requestId: 'r1' })).toEqual({ k: 'matched' })
  })

  test.each([null, 'r2'])(
    'the same code fails on any other socket (%j), and spends no attempt',
    (requestId) => {
      expect(attempt(bound, [], { ...right, requestId })).toEqual(failed('address', bound))
    },
  )

  test('a wrong code on its socket ends it and counts for every address', () => {
    expect(attempt(bound, [], { ...wrong, requestId: 'r1' })).toEqual(failed('all', null))
  })

  test('a credential on its socket ends it too', () => {
    expect(attempt(bound, [], { ...right, method: 'credential', requestId: 'r1' })).toEqual(
      failed('all', null),
    )
  })

  test('the socket of a request cannot redeem a challenge that is not its own, and spends nothing of it', () => {
    const made: Attempt = { ...right, requestId: 'r1' }
    expect(attempt(open, [], made)).toEqual(failed('address', open))
    expect(attempt(open, [], { ...made, method: 'credential', secretDigest: CREDENTIAL })).toEqual(
      failed('address', open),
    )
  })
})

describe('[D27][D41] failures that are kept', () => {
  test('those of 300 s and more are dropped, the newest come first', () => {
    const nowMs = OPENED_AT_MS + 300_000
    const [old, young] = [failures(1), failures(2, 'address', '10.0.0.1', OPENED_AT_MS + 1)]
    expect(retained([...old, ...young], nowMs)).toEqual(young.toReversed())
  })

  test('of one address, and of those that count for all, the ten newest', () => {
    const kept = retained([...failures(30), ...failures(30, 'address')], OPENED_AT_MS + 30)
    expect(kept.map(({ counts }) => counts).toSorted()).toEqual([
      ...Array(10).fill('address'),
      ...Array(10).fill('all'),
    ])
    expect(Math.min(...kept.map(({ atMs }) => atMs))).toBe(OPENED_AT_MS + 20)
  })

  test('a flood from ever new addresses is bounded, and pushes out none that counts for all', () => {
    const flood = Array.from({ length: 5_000 }, (_, n) =>
      failures(1, 'address', `2001:db8::${n}`, OPENED_AT_MS + 10),
    ).flat()
    const kept = retained([...failures(10), ...flood], OPENED_AT_MS + 10)
    expect(kept).toHaveLength(266)
    expect(lockedFor(kept, '10.0.0.1', OPENED_AT_MS + 10)).toBe(300)
  })

  test('ten of one address that are kept still lock it', () => {
    const kept = retained(failures(25, 'address'), OPENED_AT_MS + 25)
    expect(lockedFor(kept, '10.0.0.9', OPENED_AT_MS + 25)).toBe(
      lockedFor(failures(25, 'address'), '10.0.0.9', OPENED_AT_MS + 25),
    )
  })
})
