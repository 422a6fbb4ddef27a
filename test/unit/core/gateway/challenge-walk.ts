/**
 * An owner who opens challenges, devices that redeem them, and strangers who guess from many addresses, over restarts
 * and any time. What must become of each attempt is counted by hand here, from the whole history.
 */

import assert from 'node:assert/strict'
import {
  attempt,
  type Challenge,
  lockedFor,
  type PairingFailure,
  retained,
} from '../../../../src/core/gateway/challenge.ts'
import type { Random } from '../../../support/core/random.ts'

export type Move =
  | { k: 'open'; requestId: string | null }
  | {
      k: 'attempt'
      method: 'code' | 'credential'
      secret: 'code' | 'credential' | 'wrong'
      address: number
      requestId: string | null
    }
  | { k: 'wait'; ms: number }
  | { k: 'restart' }

export type Tally = Map<string, number>

const TTL_MS = 120_000
const WINDOW_MS = 300_000
const MAX_TRIES = 5
const LOCKING = 10

/** An address from which nobody ever tried. */
const NEW_ADDRESS = 'a new address'

export function makeMoves(random: Random): Move[] {
  const requestId = () => (random.chance(0.8) ? null : random.pick(['r1', 'r2']))
  return random.list(120, (): Move => {
    if (random.chance(0.15)) return { k: 'open', requestId: requestId() }
    if (random.chance(0.03)) return { k: 'restart' }
    if (random.chance(0.15))
      return { k: 'wait', ms: random.pick([1, 999, 10_000, TTL_MS - 1, TTL_MS, WINDOW_MS - 1, WINDOW_MS]) }
    return {
      k: 'attempt',
      method: random.pick(['code', 'credential']),
      secret: random.chance(0.95) ? 'wrong' : random.pick(['code', 'credential']),
      address: random.int(4),
      requestId: requestId(),
    }
  })
}

/** Plays the moves, and checks after each one. */
export function play(moves: readonly Move[], tally: Tally): void {
  const walk = new Walk(tally)
  for (const move of moves) {
    walk.move(move)
    walk.check()
  }
}

/** A challenge as the one who watches sees it. */
type Watched = { n: number; requestId: string | null; openedAtMs: number; tries: number }

class Walk {
  readonly #tally: Tally
  #nowMs = 1_000_000

  // The gateway.
  #challenge: Challenge | null = null
  #failures: PairingFailure[] = []

  // The one who watches.
  #opened = 0
  #watched: Watched | null = null
  /** Wrong secrets that were compared with an open challenge, from the beginning. */
  readonly #compared: number[] = []
  /** All other failures. */
  readonly #others: { atMs: number; address: string }[] = []

  constructor(tally: Tally) {
    this.#tally = tally
  }

  move(move: Move): void {
    if (move.k === 'wait') this.#nowMs += move.ms
    else if (move.k === 'restart') {
      this.#challenge = JSON.parse(JSON.stringify(this.#challenge))
      this.#failures = JSON.parse(JSON.stringify(this.#failures))
    } else if (move.k === 'open') this.#open(move.requestId)
    else this.#attempt(move)
  }

  #open(requestId: string | null): void {
    const n = this.#opened++
    this.#watched = { n, requestId, openedAtMs: this.#nowMs, tries: 0 }
    this.#challenge = {
      codeDigest: `code ${n}`,
      credentialDigest: requestId === null ? `credential ${n}` : null,
      expiresAtMs: this.#nowMs + TTL_MS,
      attemptsLeft: MAX_TRIES,
      requestId,
    }
  }

  #attempt(move: Extract<Move, { k: 'attempt' }>): void {
    const address = `10.0.0.${move.address}`
    const before = JSON.stringify(this.#challenge)
    const outcome = attempt(this.#challenge, this.#failures, {
      method: move.method,
      secretDigest: `${move.secret} ${this.#watched?.n}`,
      address,
      requestId: move.requestId,
      nowMs: this.#nowMs,
    })

    const expected = this.#expected(move, address)
    this.#count(expected)
    if (expected === 'rate_limited') {
      assert.equal(outcome.k, 'rate_limited')
      return
    }
    if (expected === 'matched') {
      assert.deepEqual(outcome, { k: 'matched' })
      this.#challenge = null
      this.#watched = null
      return
    }
    assert(outcome.k === 'failed', `the attempt was ${outcome.k}, not ${expected}`)
    const counts = expected === 'compared' ? 'all' : 'address'
    assert.deepEqual(outcome.failure, { atMs: this.#nowMs, address, counts })
    if (expected === 'compared') {
      this.#compared.push(this.#nowMs)
      if (this.#watched) this.#watched.tries++
    } else {
      this.#others.push({ atMs: this.#nowMs, address })
      if (expected === 'not for it') assert.equal(JSON.stringify(outcome.challenge), before)
      else assert.equal(outcome.challenge, null)
    }
    this.#challenge = outcome.challenge
    this.#failures = retained([...this.#failures, outcome.failure], this.#nowMs)
  }

  #expected(
    move: Extract<Move, { k: 'attempt' }>,
    address: string,
  ): 'rate_limited' | 'closed' | 'not for it' | 'matched' | 'compared' {
    if (this.#counted(address) >= LOCKING) return 'rate_limited'
    const watched = this.#watched
    if (watched === null || this.#nowMs - watched.openedAtMs >= TTL_MS) return 'closed'
    if (watched.tries >= (watched.requestId === null ? MAX_TRIES : 1)) return 'closed'
    if (watched.requestId !== move.requestId) return 'not for it'
    const isIssued = move.secret === 'code' || (move.secret === 'credential' && watched.requestId === null)
    return isIssued && move.method === move.secret ? 'matched' : 'compared'
  }

  /** Failures that count for an address now. */
  #counted(address: string): number {
    const isRecent = (atMs: number): boolean => this.#nowMs - atMs < WINDOW_MS
    return (
      this.#compared.filter(isRecent).length +
      this.#others.filter((other) => other.address === address && isRecent(other.atMs)).length
    )
  }

  check(): void {
    if (this.#watched) assert(this.#watched.tries <= MAX_TRIES, 'a challenge was tried more than 5 times')
    const lastWindow = this.#compared.filter((atMs) => this.#nowMs - atMs < WINDOW_MS).length
    assert(lastWindow <= LOCKING, 'more than 10 guesses in 300 s')

    // Whoever comes from elsewhere is locked out by guesses at open challenges, and by nothing else.
    const isLocked = lockedFor(this.#failures, NEW_ADDRESS, this.#nowMs) !== null
    assert.equal(isLocked, lastWindow >= LOCKING)
    if (isLocked) this.#count('everybody is locked out')
    else if (this.#others.length >= LOCKING) this.#count('strangers lock out nobody')

    for (const address of ['10.0.0.0', '10.0.0.1', '10.0.0.2', '10.0.0.3']) {
      const seconds = lockedFor(this.#failures, address, this.#nowMs)
      assert.equal(seconds !== null, this.#counted(address) >= LOCKING)
      if (seconds === null) continue
      assert(Number.isInteger(seconds) && seconds >= 1 && seconds <= WINDOW_MS / 1000, `${seconds} s`)
      // Who waits as long as told may try; a second earlier not.
      assert.equal(lockedFor(this.#failures, address, this.#nowMs + seconds * 1000), null)
      assert.notEqual(lockedFor(this.#failures, address, this.#nowMs + seconds * 1000 - 1000), null)
    }
    assert(this.#failures.length <= 50, 'more is kept than ten for all and ten of each of four addresses')
  }

  #count(what: string): void {
    this.#tally.set(what, (this.#tally.get(what) ?? 0) + 1)
  }
}
