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
import { type AskedCost, type Disclosure, LEASE_MS, type RunState } from '../../../src/core/run/state.ts'
import type { Step } from '../../../src/core/run/step.ts'
import type { ContinueRequest } from '../../../src/protocol/execution/continue.ts'
import type { ContentRef, Provider } from '../../../src/protocol/execution/ids.ts'
import type { SealedMap } from '../../../src/protocol/execution/sealed.ts'
import { makeRandom, type Random } from './random.ts'
import {
  askCall,
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
import { opening } from './run-phases.ts'
import { RunRules } from './run-rules.ts'
import { BOUND, envelopeOf, isKeptInject, SEALED, seal } from './run-vault.ts'

type Verdict = 'accepted' | 'refused' | 'dropped'

/** An input with what must become of it. */
type Move = { input: RunInputEvent; expect: Verdict; says: string }

type Continuation = Extract<RunInputEvent, { type: 'continuation_received' }>

/** A turn as the shell holds it while it serves it. */
type Served = { lease: string; called: boolean }

/** How often each kind of thing happened, so that a walk that never gets anywhere is noticed. */
export type Tally = Map<string, number>

/** @param sealedShare how many of the seeds walk a sealed session */
export function walk(seed: number, inputs: number, tally: Tally = new Map(), sealedShare = 0.25): void {
  const walker = new Walker(seed, sealedShare)
  try {
    for (let i = 0; i < inputs; i++) walker.move(tally)
  } catch (error) {
    const told = error instanceof Error ? error.message : String(error)
    throw new Error(`seed ${seed}: ${told}\n${walker.trace.join('\n')}`, { cause: error })
  }
}

class Walker {
  readonly trace: string[] = []
  readonly #random: Random
  readonly #machine: Machine
  readonly #rules: RunRules
  #served: Served | null = null
  readonly #leases: string[] = []
  /** The last request that was admitted, to be sent again. */
  #lastRequest: RunInputEvent | null = null
  #texts = 0

  constructor(seed: number, sealedShare: number) {
    this.#random = makeRandom(seed)
    const session = this.#random.chance(sealedShare) ? this.#random.pick([SEALED, SEALED, BOUND]) : null
    this.#machine = new Machine(session)
    this.#rules = new RunRules(this.#machine)
  }

  move(tally: Tally): void {
    const machine = this.#machine
    const { input, expect, says } = this.#choose()
    this.trace.push(`${this.trace.length}. ${says} -> ${expect} [${machine.phase?.k ?? 'no run'}]`)
    if (input.type === 'object_started') {
      this.#rules.evicted()
      machine.sealed?.evict()
    }
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
    if (machine.sealed !== null) {
      const sealed = `sealed: ${machine.phase?.k ?? 'no run'}`
      if (machine.state?.active === null) tally.set(sealed, (tally.get(sealed) ?? 0) + 1)
    }
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
    const { approval, question } = this.#rules.asked
    const waits = approval !== null || question !== null || isUndelivered(machine.state)
    if (random.chance(waits ? 0.55 : 0.03)) return this.#device()
    const roll = random.next()
    if (machine.state?.active) {
      if (roll < 0.55) return this.#report(this.#served?.lease ?? machine.lease)
      if (roll < 0.63) return this.#crash()
      if (roll < 0.7) return this.#late()
      return this.#request()
    }
    if (roll < 0.05) return this.#late()
    if (roll < (machine.sealed === null ? 0.08 : 0.15)) return this.#crash()
    return this.#request()
  }

  /** A device decides, answers or dismisses: what waits, or what does not any more. */
  #device(): Move {
    const random = this.#random
    const { state, sealed } = this.#machine
    const { approval, question, settled } = this.#rules.asked
    const roll = random.next()
    if (roll < (isUndelivered(state) ? 0.5 : 0.15)) {
      const expect = isUndelivered(state) ? 'accepted' : 'dropped'
      return { input: { type: 'decision_delivered' }, expect, says: 'device: delivered' }
    }
    const stale = ['nobody', ...settled]
    const digest = this.#machine.newDigest()
    const isApproval = question === null || random.chance(0.3)
    const open = isApproval ? approval : question
    const id = open !== null && random.chance(0.8) ? open : random.pick(stale)
    const expect = id === open ? 'accepted' : 'refused'
    if (isApproval) {
      const decided = random.chance(0.75) ? 'approved' : 'rejected'
      return {
        input: { type: 'device_decided', digest, batchId: id, decision: decided, partial: null },
        expect,
        says: `device decides ${decided}: ${id}`,
      }
    }
    if (random.chance(0.2))
      return {
        input: { type: 'question_cancelled', questionId: id, partial: null },
        expect,
        says: `device dismisses: ${id}`,
      }
    return {
      input: { type: 'question_answered', digest, questionId: id, answer: this.#text() },
      expect: sealed === null ? expect : 'refused',
      says: `device answers: ${id}`,
    }
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
      const decryption = this.#decryption(lease)
      if (decryption !== null) return accepted(decryption, 'decryption needed')
      if (roll < 0.26) return accepted(this.#failure(lease, false), 'turn failed')
      return accepted(this.#resolution(lease, false), 'turn resolved')
    }
    if (roll < 0.16) return accepted(this.#resolution(lease, true), 'turn resolved: a fallback')
    if (roll < 0.28) return accepted(this.#failure(lease, true), 'turn failed')
    return accepted(this.#answer(lease), 'model responded')
  }

  /** What a turn of a sealed session asks for before anything else; null where all of it is in memory. */
  #decryption(lease: string): RunInputEvent | null {
    const toDecrypt = this.#machine.sealed?.closed() ?? {}
    return Object.keys(toDecrypt).length === 0 ? null : { type: 'decryption_needed', lease, toDecrypt }
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
            ? random.chance(0.45)
              ? askCall(1 + random.int(3))
              : clientCall(`tool${index}`, random.pick(['allow', 'ask']))
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
      call: {
        ...makeRecord('answered', random.chance(0.5) ? { inputTokens: 1, outputTokens: 2 } : null),
        ...(random.chance(0.5)
          ? { seen: { under: 'policy', root: '/', files: [`text ${++this.#texts}`] } }
          : {}),
      },
      usage: {},
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
        {
          localOnly: random.chance(0.2),
          ...(random.chance(0.3) ? { driver: { kind: 'none' } } : {}),
          ...this.#keyed(),
        },
      )
      return {
        input,
        expect: this.#locked ? 'refused' : 'accepted',
        says: `execute: ${JSON.stringify(input)}`,
      }
    }
    if (roll < 0.2) {
      const message = random.chance(0.6)
        ? inject(...[this.#text(), this.#text()].slice(random.int(2)))
        : BREAK
      return this.#sealing(this.#continuation(message), 'accepted', message.type)
    }
    if (roll < 0.4 && this.#lastRequest) return this.#again(this.#lastRequest)
    if (this.#locked) {
      const message = this.#anyMessage()
      const supersedes = message.type === 'inject' || message.type === 'break'
      return this.#sealing(
        this.#continuation(message),
        supersedes ? 'accepted' : 'refused',
        `while serving: ${message.type}`,
      )
    }
    if (roll < 0.55) return this.#misfit()
    return this.#fitting()
  }

  get #locked(): boolean {
    const active = this.#machine.state?.active
    return active != null && this.#machine.nowMs < active.leaseUntilMs
  }

  #continuation(message: ContinueRequest): { input: Continuation } {
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
        ...this.#keyed(),
      },
    }
  }

  /** Keys that come along with a request. */
  #keyed(): { keyed?: Provider[] } {
    return this.#random.chance(0.2) ? { keyed: [this.#random.pick(['openai', 'anthropic'])] } : {}
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
    if (this.#isServedAgain(last)) return { input, expect: 'accepted', says }
    if (message.type === 'inject' || message.type === 'break')
      return { input, expect: this.#sealsAll(message, last.digest) ? 'accepted' : 'refused', says }
    const fits =
      !this.#locked &&
      ((message.type === 'tool_results' &&
        phase?.k === 'AwaitingTool' &&
        this.#rules.answersAll(message.data.results.map(({ call_id: id }) => id)) &&
        this.#sealsAll(message, last.digest)) ||
        (message.type === 'approval_decisions' &&
          phase?.k === 'AwaitingApproval' &&
          message.data.decisions[0]?.approval_id === phase.approvalId &&
          this.#sealsAll(message, last.digest)) ||
        (message.type === 'decrypted' &&
          phase?.k === 'AwaitingDecrypt' &&
          phase.records.every((ref) => message.data.plaintext[ref] !== undefined) &&
          this.#sealsAll(message, last.digest)) ||
        (message.type === 'sealed' && phase?.k === 'AwaitingEncrypt' && this.#sealsAll(message, last.digest)))
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
    return this.#machine.seals()
  }

  /** The results that a message reports of calls that have none. */
  #unsettled(message: ContinueRequest): ContentRef[] {
    if (message.type !== 'tool_results' || this.#machine.sealed === null) return []
    const { calls } = this.#machine.store
    return message.data.results
      .filter(({ call_id: id }) => calls.get(id)?.status === 'pending')
      .map(({ call_id: id }) => `tool_call:${id}`)
  }

  /** The message brings all that has to be sealed now, and nothing that the session does not know. */
  #sealsAll(message: ContinueRequest, digest: string): boolean {
    const { sealed, state, store } = this.#machine
    if (sealed === null) return true
    if (message.type === 'inject' && message.data.messages.some(({ ciphertext }) => ciphertext))
      if (sealed.session.keyId === BOUND.keyId) return false
    const encrypted = message.type === 'break' ? message.data?.encrypted : message.data.encrypted
    if (encrypted === undefined && (message.type === 'inject' || message.type === 'break')) return true
    const given = new Set(Object.keys(encrypted ?? {}))
    // New words that come again because their answer is lost cannot bring what nobody has seen.
    const isAgain = message.type === 'inject' && state?.unsealed?.answered?.digest === digest
    const isLost = (ref: ContentRef) => !sealed.held.has(ref)
    const all = Object.keys(this.#seals())
    const hasNone = message.type === 'sealed' && !all.some((ref) => isLost(ref) && given.has(ref))
    const asked = all.filter((ref) => !(isAgain || hasNone) || !isLost(ref))
    const required = [...(state?.active ? [] : asked), ...this.#unsettled(message)]
    // What was good when it came first is good when it comes again.
    if (state?.unsettled?.digest === digest) return true
    const known = new Set([...required, ...(state?.unsealed?.refs ?? []), ...store.sealed.keys()])
    return required.every((ref) => given.has(ref)) && [...given].every((ref) => known.has(ref))
  }

  /** Of a sealed session: the answer to this request is lost, and its turn can be served again (D20). */
  #isServedAgain({ digest, message }: Continuation): boolean {
    const { sealed, state, asked } = this.#machine
    if (sealed === null || state === null || this.#locked) return false
    const { answered } = state.unsealed ?? { answered: null }
    if (message.type === 'sealed') {
      const given = Object.keys(message.data.encrypted)
      const isKept = given.length > 0 && given.every((ref) => this.#machine.store.sealed.has(ref))
      const isIdle = state.active === null && state.unsettled === null && state.phase.k === 'Idle'
      return isIdle && (answered?.digest === digest || isKept)
    }
    if (message.type === 'break' || state.active !== null) return false
    if (message.type === 'inject' && !isKeptInject(message)) return false
    const isLost = answered?.digest === digest && asked.some((ref) => !sealed.held.has(ref))
    return isLost || (state.phase.k === 'Idle' && state.unsettled?.digest === digest)
  }

  /**
   * Of a sealed session: the message with its ciphertext, mostly complete. What is left out, broken or foreign refuses the
   * message, whatever else it says.
   */
  #sealing({ input }: { input: Continuation }, expect: Verdict, says: string): Move {
    const random = this.#random
    const { sealed, state } = this.#machine
    if (sealed === null) return { input, expect, says }
    const { message } = input
    const supersedes = message.type === 'inject' || message.type === 'break'
    if (supersedes && random.chance(0.4)) {
      if (message.type !== 'inject' || random.chance(0.7)) return { input, expect, says }
      const [only, ...others] = message.data.messages
      if (only === undefined) throw new Error('nothing is injected')
      const ciphertext = envelopeOf(`injected:${++this.#texts}`, sealed.session.keyId)
      const messages = [{ ...only, ciphertext }, ...others]
      const isBound = sealed.session.keyId === BOUND.keyId
      return {
        input: { ...input, message: { type: 'inject', data: { messages } } },
        expect: isBound ? 'refused' : expect,
        says: `${says} that is sealed`,
      }
    }
    const required = [...(state?.active ? [] : Object.keys(this.#seals())), ...this.#unsettled(message)]
    const complete = seal(required, sealed.session.keyId)
    const [some] = required.length > 0 ? [random.pick(required)] : []
    const roll = random.next()
    const given = (encrypted: SealedMap, spoilt: string | null): Move => ({
      input: { ...input, message: withEncrypted(message, encrypted) },
      expect: spoilt === null ? expect : 'refused',
      says: spoilt === null ? says : `${says}: ${spoilt}`,
    })
    if (roll < 0.06)
      return given({ ...complete, 'message:nobody': envelopeOf('x', sealed.session.keyId) }, 'foreign')
    if (some === undefined || roll > 0.2) {
      const early =
        state?.active && random.chance(0.2)
          ? (state.unsealed?.refs ?? []).filter(() => random.chance(0.5))
          : []
      const known = [...this.#machine.store.sealed.keys()]
      const repeated =
        known.length > 0 && random.chance(0.1) ? seal([random.pick(known)], sealed.session.keyId) : {}
      return given({ ...repeated, ...complete, ...seal(early, sealed.session.keyId) }, null)
    }
    if (roll < 0.1) return given({ ...complete, [some]: envelopeOf(some, 'kf_other') }, 'another key')
    const { [some]: _, ...rest } = complete
    // Of a run that is over, what memory has lost may be missing.
    const isLost =
      message.type === 'sealed' &&
      !sealed.held.has(some) &&
      Object.keys(rest).every((ref) => sealed.held.has(ref))
    return given(rest, isLost ? null : 'not all sealed')
  }

  /** A message that does not answer the pause. */
  #misfit(): Move {
    const random = this.#random
    const { phase, waiting, state } = this.#machine
    const refused = (message: ContinueRequest, says: string): Move =>
      this.#sealing(this.#continuation(message), 'refused', `misfit: ${says}`)
    const encrypted = undefined
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
      const [message, says] = random.pick(choices)
      return refused(message, says)
    }
    if (phase?.k === 'AwaitingApproval') return refused(decision('nobody', 'approved'), 'an unknown approval')
    if (phase?.k === 'AwaitingDecrypt')
      return refused({ type: 'decrypted', data: { plaintext: {} } }, 'not opened')
    if (phase?.k === 'AwaitingEncrypt') return refused(results(['nobody']), 'results')
    return refused(results(['nobody']), 'results for an idle run')
  }

  /** The message that answers the pause. */
  #fitting(): Move {
    const random = this.#random
    const { phase, waiting, state } = this.#machine
    const accepted = (message: ContinueRequest, says: string): Move =>
      this.#sealing(this.#continuation(message), 'accepted', `fitting: ${says}`)
    switch (phase?.k) {
      case 'AwaitingTool': {
        const fields = {
          content: this.#text(),
          is_error: random.chance(0.3),
          ...(random.chance(0.3) ? { decision: random.pick(['approved', 'rejected'] as const) } : {}),
          ...(random.chance(0.5) && state ? { driver_epoch: state.driverEpoch } : {}),
        }
        return accepted(results(waiting, fields), 'tool results')
      }
      case 'AwaitingApproval': {
        const decided = random.chance(0.7) ? 'approved' : 'rejected'
        const reason = `text ${++this.#texts}`
        return accepted(decision(phase.approvalId, decided, { reason }), `decision on ${phase.kind}`)
      }
      case 'AwaitingDecrypt': {
        return accepted(opening(this.#machine), 'decrypted')
      }
      case 'AwaitingEncrypt':
        return accepted({ type: 'sealed', data: { encrypted: this.#seals() } }, 'sealed')
      default: {
        const input = executeRequested(this.#text(), null, this.#machine.newDigest())
        return { input, expect: 'accepted', says: `execute: ${JSON.stringify(input)}` }
      }
    }
  }
}

/** A device has decided something that the driver has neither been shown nor acted on. */
function isUndelivered(state: RunState | null): boolean {
  const phase = state?.phase
  if (phase?.k === 'AwaitingApproval')
    return (
      phase.decided === null && phase.byDevice !== undefined && phase.byDevice.deliveredAtMs === undefined
    )
  if (phase?.k !== 'AwaitingTool') return false
  return phase.calls.some(
    ({ settled, decision }) => !settled && decision !== undefined && decision.deliveredAtMs === undefined,
  )
}

function withEncrypted(message: ContinueRequest, encrypted: SealedMap): ContinueRequest {
  switch (message.type) {
    case 'break':
      return { type: 'break', data: { ...message.data, encrypted } }
    case 'inject':
      return { type: 'inject', data: { ...message.data, encrypted } }
    case 'tool_results':
      return { type: 'tool_results', data: { ...message.data, encrypted } }
    case 'approval_decisions':
      return { type: 'approval_decisions', data: { ...message.data, encrypted } }
    case 'decrypted':
      return { type: 'decrypted', data: { ...message.data, encrypted } }
    case 'sealed':
      return { type: 'sealed', data: { encrypted } }
  }
}
