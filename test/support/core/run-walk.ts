/**
 * A random walk of the run machine: clients that send what fits and what does not, again and twice; models that answer,
 * fail and answer too late; crashes between any two effects; leases that run out. After every input the rules of a run
 * are checked. A broken rule throws with the seed and the inputs so far.
 */

import type { MediatedCall } from '../../../src/core/mediate.ts'
import type { MemoryOp } from '../../../src/core/memory.ts'
import { isCostGranted } from '../../../src/core/run/cost-grants.ts'
import { grantsOf, isGranted } from '../../../src/core/run/grants.ts'
import type { Gate, RunInputEvent } from '../../../src/core/run/inputs.ts'
import { type AskedCost, type Disclosure, LEASE_MS } from '../../../src/core/run/state.ts'
import type { Step } from '../../../src/core/run/step.ts'
import type { ContinueRequest } from '../../../src/protocol/execution/continue.ts'
import type { SealedMap } from '../../../src/protocol/execution/sealed.ts'
import { makeRandom, type Random } from './random.ts'
import {
  BREAK,
  clientCall,
  decision,
  executeRequested,
  inject,
  Machine,
  makePartial,
  makeRecord,
  makeReport,
  memoryCall,
  refusedCall,
  results,
  revocation,
} from './run-machine.ts'
import { RunRules } from './run-rules.ts'

type Verdict = 'accepted' | 'refused' | 'dropped'

/** An input with what must become of it. */
type Move = { input: RunInputEvent; expect: Verdict; says: string }

/** A turn as the shell holds it while it serves it. */
type Served = { lease: string; called: boolean }

/** How often each kind of thing happened, so that a walk that never gets anywhere is noticed. */
export type Tally = Map<string, number>

export function walk(seed: number, inputs: number, tally: Tally = new Map()): void {
  const walker = new Walker(seed)
  try {
    for (let i = 0; i < inputs; i++) walker.move(tally)
  } catch (error) {
    const told = error instanceof Error ? error.message : String(error)
    throw new Error(`seed ${seed}: ${told}\n${walker.trace.join('\n')}`, { cause: error })
  }
}

const SEAL = { version: 1, algorithm: 'xchacha20poly1305', key_id: 'k', nonce: 'n', ciphertext: 'c' }

class Walker {
  readonly trace: string[] = []
  readonly #random: Random
  readonly #machine = new Machine()
  readonly #rules: RunRules
  readonly #sealed: boolean
  #served: Served | null = null
  readonly #leases: string[] = []
  /** The last request that was admitted, to be sent again. */
  #lastRequest: RunInputEvent | null = null
  #texts = 0

  constructor(seed: number) {
    this.#random = makeRandom(seed)
    this.#sealed = this.#random.chance(0.25)
    this.#rules = new RunRules(this.#machine)
  }

  move(tally: Tally): void {
    const machine = this.#machine
    const { input, expect, says } = this.#choose()
    this.trace.push(`${this.trace.length}. ${says} -> ${expect} [${machine.phase?.k ?? 'no run'}]`)
    const before = machine.state
    const foreseen = this.#random.chance(0.05) ? JSON.stringify(machine.peek(input)) : null
    this.#rules.before(input)
    const result = machine.send(input)
    if (foreseen !== null && foreseen !== JSON.stringify(result))
      throw new Error('the same input was decided in two ways')
    const verdict: Verdict = 'state' in result ? 'accepted' : 'refused' in result ? 'refused' : 'dropped'
    if (verdict !== expect) throw new Error(`${verdict}, not ${expect}: ${JSON.stringify(result)}`)
    if (machine.state !== before && verdict !== 'accepted')
      throw new Error('a refused input changed the state')
    this.#rules.after(input, 'state' in result ? result : null)
    if ('state' in result) this.#follow(input, result)
    const key = `${says.split(':')[0]} ${verdict}`
    tally.set(key, (tally.get(key) ?? 0) + 1)
  }

  #follow(input: RunInputEvent, { effects, writes }: Step): void {
    const active = this.#machine.state?.active ?? null
    if (active === null) this.#served = null
    else if (this.#served?.lease !== active.lease) {
      this.#served = { lease: active.lease, called: false }
      this.#leases.push(active.lease)
    } else {
      if (writes.some(({ w }) => w === 'call')) this.#served.called = true
      if (effects.some(({ e }) => e === 'serve_turn')) this.#served.called = false
    }
    if (input.type === 'execute_requested' || input.type === 'continuation_received')
      this.#lastRequest = input
  }

  #choose(): Move {
    const random = this.#random
    const machine = this.#machine
    if (random.chance(0.1)) machine.nowMs += random.int(LEASE_MS / 2)
    if (random.chance(0.01)) machine.nowMs += LEASE_MS
    if (random.chance(0.05)) return this.#revocation()
    const roll = random.next()
    if (machine.state?.active) {
      if (roll < 0.55) return this.#report(this.#served?.lease ?? machine.lease)
      if (roll < 0.63) return this.#crash()
      if (roll < 0.7) return this.#late()
      return this.#request()
    }
    if (roll < 0.05) return this.#late()
    if (roll < 0.08) return this.#crash()
    return this.#request()
  }

  #crash(): Move {
    const expect = this.#machine.state?.active ? 'accepted' : 'dropped'
    return { input: { type: 'object_started' }, expect, says: 'crash' }
  }

  /** The user takes back what was allowed: in this run, in an earlier one, or never. */
  #revocation(): Move {
    const { state } = this.#machine
    const held = state === null ? [] : grantsOf(state).map(({ id }) => id)
    const grantId = held.length > 0 && this.#random.chance(0.8) ? this.#random.pick(held) : 'nobody'
    const expect = this.#rules.holdsGrant(grantId) ? 'accepted' : 'refused'
    return { input: revocation(grantId), expect, says: 'grant revoked' }
  }

  /** What a turn would show to a model, if the policy asks about it. */
  #shown(model: string): Disclosure {
    const random = this.#random
    return {
      provider: random.pick(['openai', 'anthropic']),
      model,
      paths: ['a.ts', 'b.ts', 'c.ts'].filter(() => random.chance(0.4)),
      ...(random.chance(0.2) ? { local: true as const } : {}),
    }
  }

  /** The gate before a call that shows this: none where the rest of the run was allowed it. */
  #disclosureGate(shown: Disclosure): Gate | null {
    const allowed = isGranted(this.#machine.state?.disclosed ?? [], shown)
    if (allowed !== this.#rules.allows(shown))
      throw new Error(`${JSON.stringify(shown)} is ${allowed ? 'not asked for' : 'asked for again'}`)
    return allowed ? null : { kind: 'remote_disclosure', disclosure: shown }
  }

  /** What a call would cost by a rule that limits it, above that limit or at a price that nobody knows. */
  #cost(model: string): AskedCost {
    const random = this.#random
    const max = 2 + random.int(9)
    return {
      rule: random.pick(['cheap', 'cheaper']),
      provider: 'openai',
      model,
      limit: '1',
      estimate: random.chance(0.3) ? null : { min: '0.5', max: `${max}` },
    }
  }

  /** The gate before a call that costs this: none where the rest of the run may cost as much. */
  #costGate(cost: AskedCost): Gate | null {
    const accepted = isCostGranted(this.#machine.state?.costs ?? [], cost)
    if (accepted !== this.#rules.accepts(cost))
      throw new Error(`${JSON.stringify(cost)} is ${accepted ? 'not asked for' : 'asked for again'}`)
    return accepted ? null : { kind: 'cost_limit', cost }
  }

  /** Something that a turn reports which holds the lock no longer. */
  #late(): Move {
    const current = this.#machine.state?.active?.lease
    const old = this.#leases.filter((lease) => lease !== current)
    const lease = old.length > 0 && this.#random.chance(0.8) ? this.#random.pick(old) : 'a lease of nobody'
    const called = this.#random.chance(0.5)
    const served = this.#served
    this.#served = { lease, called }
    const { input, says } = this.#report(lease)
    this.#served = served
    return { input, expect: 'dropped', says: `late ${says}` }
  }

  #text(): string {
    return this.#random.chance(0.05) ? '' : `text ${++this.#texts}`
  }

  /** What the turn that is being served does next. */
  #report(lease: string): Move {
    const random = this.#random
    const roll = random.next()
    const accepted = (input: RunInputEvent, says: string): Move => ({ input, expect: 'accepted', says })
    if (roll < 0.08) return accepted({ type: 'lease_renewed', lease }, 'lease renewed')
    if (!this.#served?.called) {
      if (this.#sealed && roll < 0.2) return accepted(this.#decryption(lease), 'decryption needed')
      if (roll < 0.26) return accepted(this.#failure(lease, false), 'turn failed')
      return accepted(this.#resolution(lease, false), 'turn resolved')
    }
    if (roll < 0.16) return accepted(this.#resolution(lease, true), 'turn resolved: a fallback')
    if (roll < 0.28) return accepted(this.#failure(lease, true), 'turn failed')
    return accepted(this.#answer(lease), 'model responded')
  }

  #decryption(lease: string): RunInputEvent {
    const ref = `message:${++this.#texts}`
    return {
      type: 'decryption_needed',
      lease,
      toDecrypt: { [ref]: SEAL },
      toEncrypt: this.#random.chance(0.5) ? { 'run_input:1': 'x' } : null,
    }
  }

  #resolution(lease: string, fallback: boolean): RunInputEvent {
    const random = this.#random
    const model = `m${random.int(3)}`
    const gate = random.chance(0.25)
      ? this.#costGate(this.#cost(model))
      : random.chance(0.4)
        ? this.#disclosureGate(this.#shown(model))
        : null
    return {
      type: 'turn_resolved',
      lease,
      report: makeReport(model, random.pick(['chat', 'edit'])),
      traces: [{ type: 'classification', ...makeReport().classification }],
      gate,
      call: makeRecord('lost', null, model),
      failedCall: fallback ? makeRecord('failed') : null,
    }
  }

  #failure(lease: string, called: boolean): RunInputEvent {
    return {
      type: 'turn_failed',
      lease,
      failure: { code: 'provider_error', message: 'it failed' },
      partial: called && this.#random.chance(0.5) ? makePartial(this.#text()) : null,
      call: called ? makeRecord('failed') : null,
    }
  }

  #answer(lease: string): RunInputEvent {
    const random = this.#random
    const calls: MediatedCall[] = random.chance(0.6)
      ? random.list(3, (index) =>
          random.chance(0.6)
            ? clientCall(`tool${index}`, random.pick(['allow', 'ask']))
            : random.chance(0.5)
              ? refusedCall(`no${index}`)
              : memoryCall(this.#memoryOp()),
        )
      : []
    return {
      type: 'model_responded',
      ending: null,
      lease,
      text: this.#text(),
      report: makeReport(),
      calls,
      call: makeRecord('answered', random.chance(0.5) ? { inputTokens: 1, outputTokens: 2 } : null),
      usage: {},
      toEncrypt: this.#sealed ? { [`message:${++this.#texts}`]: 'x' } : null,
    }
  }

  #memoryOp(): MemoryOp {
    const random = this.#random
    const scope = random.pick(['user', 'session'] as const)
    const key = `key ${random.int(2)}`
    const content = `fact ${++this.#texts}`
    return random.chance(0.3)
      ? { op: 'forget', scope, key }
      : { op: 'record', scope, key, content, localOnly: random.chance(0.3) }
  }

  /** What a client may come with: a new prompt, an answer that fits or does not, the same again. */
  #request(): Move {
    const random = this.#random
    const { state } = this.#machine
    const roll = random.next()
    if (state === null && roll < 0.3)
      return {
        ...this.#continuation(this.#anyMessage()),
        expect: 'refused',
        says: 'continuation without a run',
      }
    if (state === null || roll < 0.12) {
      const input = executeRequested(
        this.#text(),
        random.chance(0.25) ? 'plan' : null,
        this.#machine.newDigest(),
        { localOnly: random.chance(0.2) },
      )
      return {
        input,
        expect: this.#locked ? 'refused' : 'accepted',
        says: `execute: ${JSON.stringify(input)}`,
      }
    }
    if (roll < 0.2) {
      const message = random.chance(0.6) ? inject(this.#text(), this.#text()) : BREAK
      return { ...this.#continuation(message), expect: 'accepted', says: message.type }
    }
    if (roll < 0.4 && this.#lastRequest) return this.#again(this.#lastRequest)
    if (this.#locked) {
      const message = this.#anyMessage()
      const supersedes = message.type === 'inject' || message.type === 'break'
      return {
        ...this.#continuation(message),
        expect: supersedes ? 'accepted' : 'refused',
        says: `while serving: ${message.type}`,
      }
    }
    if (roll < 0.55) return this.#misfit()
    return this.#fitting()
  }

  get #locked(): boolean {
    const active = this.#machine.state?.active
    return active != null && this.#machine.nowMs < active.leaseUntilMs
  }

  #continuation(message: ContinueRequest): { input: RunInputEvent } {
    const { state, newDigest } = this.#machine
    const spoke = state?.active && this.#served?.called && this.#random.chance(0.7)
    const partial = spoke ? makePartial(this.#text()) : null
    return {
      input: {
        type: 'continuation_received',
        digest: newDigest.call(this.#machine),
        message,
        partial,
        localOnly: this.#random.chance(0.2),
      },
    }
  }

  /** The client asks once more, not knowing what became of it. */
  #again(last: RunInputEvent): Move {
    const { phase } = this.#machine
    const says = `again: ${JSON.stringify(last)}`
    if (last.type === 'execute_requested')
      return { input: last, expect: this.#locked ? 'refused' : 'accepted', says }
    if (last.type !== 'continuation_received') throw new Error('not a request')
    const input = { ...last, partial: null }
    const { message } = last
    if (message.type === 'inject' || message.type === 'break') return { input, expect: 'accepted', says }
    const fits =
      !this.#locked &&
      ((message.type === 'tool_results' &&
        phase?.k === 'AwaitingTool' &&
        this.#rules.answersAll(message.data.results.map(({ call_id: id }) => id)) &&
        this.#sealsAll(message.data.encrypted)) ||
        (message.type === 'approval_decisions' &&
          phase?.k === 'AwaitingApproval' &&
          message.data.decisions[0]?.approval_id === phase.approvalId) ||
        (message.type === 'decrypted' &&
          phase?.k === 'AwaitingDecrypt' &&
          phase.records.every((ref) => message.data.plaintext[ref] !== undefined)) ||
        (message.type === 'sealed' &&
          phase?.k === 'AwaitingEncrypt' &&
          this.#sealsAll(message.data.encrypted)))
    return { input, expect: fits ? 'accepted' : 'refused', says }
  }

  #anyMessage(): ContinueRequest {
    return this.#random.pick<ContinueRequest>([
      results(['nobody']),
      decision('nobody', 'approved'),
      { type: 'decrypted', data: { plaintext: {} } },
      { type: 'sealed', data: { encrypted: {} } },
      ...(this.#machine.state === null ? [] : [inject(this.#text())]),
      BREAK,
    ])
  }

  /** The ciphertext of everything that the pause left open. */
  #seals(): SealedMap {
    const { phase } = this.#machine
    const pending = phase && 'pending' in phase ? phase.pending : []
    return Object.fromEntries(pending.map(({ ref }) => [ref, SEAL]))
  }

  #sealsAll(encrypted: SealedMap | undefined): boolean {
    return Object.keys(this.#seals()).every((ref) => encrypted?.[ref] !== undefined)
  }

  /** A message that does not answer the pause. */
  #misfit(): Move {
    const random = this.#random
    const { phase, waiting, state } = this.#machine
    const refused = (message: ContinueRequest, says: string): Move => ({
      ...this.#continuation(message),
      expect: 'refused',
      says: `misfit: ${says}`,
    })
    const encrypted = this.#seals()
    if (phase?.k === 'AwaitingTool') {
      const [first = '', ...rest] = waiting
      const report = (ids: string[], epoch?: number) =>
        results(ids, epoch === undefined ? {} : { driver_epoch: epoch }, encrypted)
      const choices: [ContinueRequest, string][] = [
        [report([first, ...waiting]), 'a call answered twice'],
        [report([...waiting, 'nobody']), 'an unknown call'],
        [report(waiting, (state?.driverEpoch ?? 0) - 1), 'an older driver'],
        [decision('nobody', 'approved'), 'a decision'],
      ]
      // After a crash the results are known already; leaving some out is then no fault.
      if (!this.#rules.answersAll(rest)) choices.push([report(rest), 'a call left out'])
      if (Object.keys(encrypted).length > 0) choices.push([results(waiting), 'unsealed'])
      const [message, says] = random.pick(choices)
      return refused(message, says)
    }
    if (phase?.k === 'AwaitingApproval') return refused(decision('nobody', 'approved'), 'an unknown approval')
    if (phase?.k === 'AwaitingDecrypt')
      return refused({ type: 'decrypted', data: { plaintext: {} } }, 'not opened')
    if (phase?.k === 'AwaitingEncrypt')
      return refused({ type: 'sealed', data: { encrypted: {} } }, 'not sealed')
    return refused(results(['nobody']), 'results for an idle run')
  }

  /** The message that answers the pause. */
  #fitting(): Move {
    const random = this.#random
    const { phase, waiting, state } = this.#machine
    const accepted = (message: ContinueRequest, says: string): Move => ({
      ...this.#continuation(message),
      expect: 'accepted',
      says: `fitting: ${says}`,
    })
    const encrypted = this.#seals()
    switch (phase?.k) {
      case 'AwaitingTool': {
        const fields = {
          content: this.#text(),
          is_error: random.chance(0.3),
          ...(random.chance(0.3) ? { decision: random.pick(['approved', 'rejected'] as const) } : {}),
          ...(random.chance(0.5) && state ? { driver_epoch: state.driverEpoch } : {}),
        }
        return accepted(results(waiting, fields, encrypted), 'tool results')
      }
      case 'AwaitingApproval': {
        const decided = random.chance(0.7) ? 'approved' : 'rejected'
        return accepted(decision(phase.approvalId, decided, { encrypted }), `decision on ${phase.kind}`)
      }
      case 'AwaitingDecrypt': {
        const plaintext = Object.fromEntries(phase.records.map((ref) => [ref, 'opened']))
        return accepted({ type: 'decrypted', data: { plaintext, encrypted } }, 'decrypted')
      }
      case 'AwaitingEncrypt':
        return accepted({ type: 'sealed', data: { encrypted } }, 'sealed')
      default: {
        const input = executeRequested(this.#text(), null, this.#machine.newDigest())
        return { input, expect: 'accepted', says: `execute: ${JSON.stringify(input)}` }
      }
    }
  }
}
