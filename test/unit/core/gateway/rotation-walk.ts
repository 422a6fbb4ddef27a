/**
 * Two devices with rotating tokens, and a thief who copies what they hold. Frames overtake each other, answers and
 * acknowledgements are lost, the gateway restarts. What must become of each frame is said by a list of all tokens that
 * were ever given out, which shares nothing with the code under test.
 */

import assert from 'node:assert/strict'
import type { Random } from '../../../support/core/random.ts'
import { type Issued, type RefreshAnswer, rememberedInMemory, TokenServer } from './token-server.ts'

export type Move =
  /** The device sends its newest token; one that has no answer yet may be under way on another route. */
  | { k: 'send'; device: number }
  /** A frame under way arrives, and its answer comes back or is lost. */
  | { k: 'arrive'; device: number; frame: number; isLost: boolean }
  | { k: 'drop'; device: number; frame: number }
  /** The device acknowledges its newest rotation, if no route of it waits for an answer. */
  | { k: 'acknowledge'; device: number }
  | { k: 'acknowledge_old'; device: number; rotation: number }
  | { k: 'access'; device: number; generation: number }
  | { k: 'restart'; device: number }
  | { k: 'wait'; ms: number }
  /** The thief copies the token that the device holds. */
  | { k: 'steal'; device: number }
  | { k: 'thief_sends'; device: number; loot: number }
  | { k: 'thief_acknowledges'; device: number }
  /** Someone shows this device's token under the name of the other one. */
  | { k: 'wrong_device'; device: number }
  | { k: 'guess'; device: number }

export type Tally = Map<string, number>

const ACCESS_TTL_MS = 15 * 60_000

/** @param thieving how often the thief does something: 0 for never */
export function makeMoves(random: Random, thieving: number): Move[] {
  return random.list(80, (): Move => {
    const device = random.int(2)
    if (random.chance(thieving)) {
      return random.pick<() => Move>([
        () => ({ k: 'steal', device }),
        () => ({ k: 'thief_sends', device, loot: random.int(4) }),
        () => ({ k: 'thief_acknowledges', device }),
      ])()
    }
    return random.pick<() => Move>([
      () => ({ k: 'send', device }),
      () => ({ k: 'send', device }),
      () => ({ k: 'arrive', device, frame: random.int(3), isLost: false }),
      () => ({ k: 'arrive', device, frame: random.int(3), isLost: random.chance(0.5) }),
      () => ({ k: 'drop', device, frame: random.int(3) }),
      () => ({ k: 'acknowledge', device }),
      () => ({ k: 'acknowledge_old', device, rotation: random.int(5) }),
      () => ({ k: 'access', device, generation: random.int(3) }),
      () => ({ k: 'restart', device }),
      () => ({ k: 'wait', ms: random.pick([1, 1_000, ACCESS_TTL_MS - 1, ACCESS_TTL_MS]) }),
      () => ({ k: 'wrong_device', device }),
      () => ({ k: 'guess', device }),
    ])()
  })
}

/** Plays the moves, and checks after each one. */
export function play(moves: readonly Move[], tally: Tally): void {
  let nowMs = 1_000_000
  const devices = [new Device('one', nowMs), new Device('two', nowMs)]
  const count = (what: string): void => {
    tally.set(what, (tally.get(what) ?? 0) + 1)
  }
  for (const move of moves) {
    if (move.k === 'wait') nowMs += move.ms
    else {
      const device = devices[move.device]
      const other = devices[1 - move.device]
      if (!device || !other) throw new Error('there are two devices')
      if (move.k === 'wrong_device') other.presented(device.held, nowMs)
      else device.move(move, nowMs, count)
    }
    for (const device of devices) device.checkReachable()
  }
}

/** A device with the gateway's side of it, and all that was ever given out to whom. */
class Device {
  readonly #server: TokenServer
  /** Every refresh token of the family, the oldest first. */
  readonly #tokens: string[]
  /** By the place of the token that was presented: the answer that every retry of it must get. */
  readonly #answers: Issued[] = []
  readonly #accesses: { token: string; expiresAtMs: number }[]
  #isAcknowledged = true
  #isRevoked = false

  /** What the device has stored. */
  held: string
  #toAcknowledge: string | null = null
  readonly #underWay: string[] = []

  readonly #loot: string[] = []
  #thiefToAcknowledge: string | null = null
  #wasRobbed = false

  constructor(name: string, nowMs: number) {
    this.held = `first refresh token of ${name}`
    const accessToken = `first access token of ${name}`
    this.#tokens = [this.held]
    this.#accesses = [{ token: accessToken, expiresAtMs: nowMs + ACCESS_TTL_MS }]
    this.#server = new TokenServer({ refreshToken: this.held, accessToken }, nowMs, rememberedInMemory())
  }

  move(
    move: Exclude<Move, { k: 'wait' | 'wrong_device' }>,
    nowMs: number,
    count: (what: string) => void,
  ): void {
    switch (move.k) {
      case 'send':
        // A device that shows a successor while its predecessor is still under way asks for a replay.
        if (this.#underWay.some((token) => token !== this.held)) return
        this.#underWay.push(this.held)
        return
      case 'drop':
        this.#underWay.splice(move.frame, 1)
        return
      case 'arrive': {
        const [token] = this.#underWay.splice(move.frame, 1)
        if (token === undefined) return
        const answer = this.presented(token, nowMs)
        count(`${answer.k}${move.isLost ? ', lost' : ''}`)
        // A late answer on a slow route is older than what the device holds by now.
        if (
          move.isLost ||
          !('issued' in answer) ||
          this.#ageOf(answer.issued.refreshToken) > this.#ageOf(this.held)
        )
          return
        this.held = answer.issued.refreshToken
        this.#toAcknowledge = answer.issued.rotationId
        return
      }
      case 'acknowledge':
        if (this.#toAcknowledge === null || this.#underWay.length > 0) return
        count('acknowledged')
        this.#acknowledge(this.#toAcknowledge)
        return
      case 'acknowledge_old': {
        const old = this.#answers.at(-2 - move.rotation)
        if (old) assert.equal(this.#server.acknowledge(old.rotationId), false)
        return
      }
      case 'access': {
        const age = this.#accesses.at(-1 - move.generation)
        if (!age) return
        const isGood = move.generation === 0 && !this.#isRevoked && nowMs < age.expiresAtMs
        count(`access ${isGood ? 'accepted' : 'refused'}`)
        assert.deepEqual(
          this.#server.access(age.token, nowMs),
          isGood ? { ok: true, expiresAtMs: age.expiresAtMs } : { ok: false },
        )
        return
      }
      case 'restart':
        this.#server.restart()
        return
      case 'steal':
        this.#loot.push(this.held)
        return
      case 'thief_sends': {
        const token = this.#loot.at(-1 - move.loot)
        if (token === undefined) return
        this.#wasRobbed = true
        const answer = this.presented(token, nowMs)
        count(`thief: ${answer.k}`)
        if (!('issued' in answer)) return
        this.#loot.push(answer.issued.refreshToken)
        this.#thiefToAcknowledge = answer.issued.rotationId
        return
      }
      case 'thief_acknowledges':
        if (this.#thiefToAcknowledge !== null) this.#acknowledge(this.#thiefToAcknowledge)
        return
      case 'guess':
        this.presented('a guess', nowMs)
        return
    }
  }

  /** Presents a refresh token, and checks the answer against all that was ever given out. */
  presented(token: string, nowMs: number): RefreshAnswer {
    const place = this.#tokens.indexOf(token)
    const newest = this.#tokens.length - 1
    const isPrevious = place === newest - 1 && !this.#isAcknowledged
    const answer = this.#server.refresh(token, nowMs)
    if (place === -1 || this.#isRevoked) assert.deepEqual(answer, { k: 'unauthorized' })
    else if (place === newest) {
      assert(answer.k === 'rotated', `the newest token was ${answer.k}`)
      assert.equal(answer.issued.accessExpiresAtMs, nowMs + ACCESS_TTL_MS)
      this.#given(answer.issued)
    } else if (isPrevious) assert.deepEqual(answer, { k: 'again', issued: this.#answers[place] })
    else {
      assert.deepEqual(answer, { k: 'token_replayed' })
      this.#isRevoked = true
    }
    assert.equal(this.#server.revoked, this.#isRevoked)
    return answer
  }

  /** Without a thief no loss of frames or answers, and no restart, may cost the device its pairing. */
  checkReachable(): void {
    if (this.#wasRobbed) return
    assert(!this.#isRevoked, 'an honest device was revoked')
    const behind = this.#tokens.length - 1 - this.#tokens.indexOf(this.held)
    assert(behind === 0 || (behind === 1 && !this.#isAcknowledged), 'an honest device is locked out')
  }

  #given(issued: Issued): void {
    assert(!this.#tokens.includes(issued.refreshToken), 'a token was given out twice')
    this.#answers.push(issued)
    this.#tokens.push(issued.refreshToken)
    this.#accesses.push({ token: issued.accessToken, expiresAtMs: issued.accessExpiresAtMs })
    this.#isAcknowledged = false
  }

  #acknowledge(rotationId: string): void {
    const isNewest = this.#answers.at(-1)?.rotationId === rotationId
    const does = isNewest && !this.#isAcknowledged && !this.#isRevoked
    assert.equal(this.#server.acknowledge(rotationId), does)
    if (does) this.#isAcknowledged = true
  }

  #ageOf(token: string): number {
    return this.#tokens.length - this.#tokens.indexOf(token)
  }
}
