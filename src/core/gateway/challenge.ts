import { MAX_PAIRING_FAILURES, PAIRING_FAILURE_WINDOW_MS } from '../../protocol/remote/limits.ts'
import { sameDigest } from './codes.ts'

/** An offer to pair one device. There is at most one; a new one takes its place, used or not (RF 4). */
export type Challenge = {
  codeDigest: string
  /** Of the QR code; null when there is only a code to type. */
  credentialDigest: string | null
  /** From this moment on it is closed. */
  expiresAtMs: number
  attemptsLeft: number
  /** Only the socket of this connect request can redeem it; null: any socket but that of a connect request. */
  requestId: string | null
}

/**
 * A failed attempt to pair. One that was compared with an open challenge counts for everybody; any other one counts for
 * its own address only, so strangers who knock while nothing is open cannot keep the owner from pairing (D41).
 */
export type PairingFailure = { atMs: number; address: string; counts: 'all' | 'address' }

/** One `pair` frame. */
export type Attempt = {
  method: 'code' | 'credential'
  /** Of the secret; a code is normalised before it is hashed. */
  secretDigest: string
  address: string
  /** The connect request of this socket, or null. */
  requestId: string | null
  nowMs: number
}

export type AttemptOutcome =
  /** Nothing was compared, counted or spent. */
  | { k: 'rate_limited'; retryAfterSecs: number }
  /** The failure to record, and the challenge that is left. */
  | { k: 'failed'; failure: PairingFailure; challenge: Challenge | null }
  /** The challenge is consumed, whatever becomes of the device. */
  | { k: 'matched' }

/**
 * How many failures that count for one address are kept: each could not have guessed anything, so to forget the oldest
 * of them under a flood of addresses costs nothing, and a row of them stays small (about 20 KB).
 */
const MAX_ADDRESS_FAILURES = 256

/**
 * Weighs one attempt to pair: first the lockout, then whether a challenge is open to this socket, then one try is spent,
 * and only then is anything compared. All failures look the same to the peer.
 */
export function attempt(
  challenge: Challenge | null,
  failures: readonly PairingFailure[],
  made: Attempt,
): AttemptOutcome {
  const retryAfterSecs = lockedFor(failures, made.address, made.nowMs)
  if (retryAfterSecs !== null) return { k: 'rate_limited', retryAfterSecs }

  const failed = (counts: PairingFailure['counts'], left: Challenge | null): AttemptOutcome => ({
    k: 'failed',
    failure: { atMs: made.nowMs, address: made.address, counts },
    challenge: left,
  })

  const open = challenge !== null && made.nowMs < challenge.expiresAtMs && challenge.attemptsLeft > 0
  if (!open) return failed('address', null)
  // Compared with nothing, it could not have guessed: it may neither spend the challenge nor lock others out (D41).
  if (challenge.requestId !== made.requestId) return failed('address', challenge)

  const expected = made.method === 'code' ? challenge.codeDigest : challenge.credentialDigest
  if (expected !== null && sameDigest(expected, made.secretDigest)) return { k: 'matched' }

  // An accepted request has one code and one try at it (RF 7).
  const attemptsLeft = challenge.requestId === null ? challenge.attemptsLeft - 1 : 0
  return failed('all', attemptsLeft > 0 ? { ...challenge, attemptsLeft } : null)
}

/**
 * For how many seconds, at least 1, this address may not try to pair; null when it may. Locked while 10 failures that
 * count for it are younger than 300 s: until the tenth newest leaves that window.
 */
export function lockedFor(
  failures: readonly PairingFailure[],
  address: string,
  nowMs: number,
): number | null {
  const tenth = newestFirst(failures.filter((failure) => countsFor(failure, address)))[
    MAX_PAIRING_FAILURES - 1
  ]
  if (tenth === undefined || !isRecent(tenth, nowMs)) return null
  return Math.ceil((tenth.atMs + PAIRING_FAILURE_WINDOW_MS - nowMs) / 1000)
}

/**
 * The failures that still count, the newest first. At most 10 for everybody and 10 of one address, which is all that
 * `lockedFor` looks at, and 256 of the latter kind over all addresses.
 */
export function retained(failures: readonly PairingFailure[], nowMs: number): PairingFailure[] {
  const recent = newestFirst(failures.filter((failure) => isRecent(failure, nowMs)))
  const kept: PairingFailure[] = []
  const perBudget = new Map<string, number>()
  let ofAddresses = 0
  for (const failure of recent) {
    const ofAddress = failure.counts === 'address'
    const budget = ofAddress ? `address ${failure.address}` : 'all'
    const before = perBudget.get(budget) ?? 0
    if (before >= MAX_PAIRING_FAILURES || (ofAddress && ofAddresses >= MAX_ADDRESS_FAILURES)) continue
    perBudget.set(budget, before + 1)
    if (ofAddress) ofAddresses++
    kept.push(failure)
  }
  return kept
}

const countsFor = (failure: PairingFailure, address: string): boolean =>
  failure.counts === 'all' || failure.address === address

const isRecent = (failure: PairingFailure, nowMs: number): boolean =>
  nowMs - failure.atMs < PAIRING_FAILURE_WINDOW_MS

const newestFirst = (failures: readonly PairingFailure[]): PairingFailure[] =>
  failures.toSorted((a, b) => b.atMs - a.atMs)
