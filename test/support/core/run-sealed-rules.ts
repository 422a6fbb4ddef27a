/** The rules of a sealed session (EC 17): nothing that was said is stored in clear, and nothing is stored half. */

import { isDeepStrictEqual } from 'node:util'
import { factText } from '../../../src/core/run/contents.ts'
import type { RunInputEvent } from '../../../src/core/run/inputs.ts'
import { isOver, type RunState } from '../../../src/core/run/state.ts'
import type { Step } from '../../../src/core/run/step.ts'
import type { TraceEntry, TracePayload, Write } from '../../../src/core/run/writes.ts'
import {
  callsRef,
  factRef,
  messageRef,
  resultRef,
  traceRef,
} from '../../../src/protocol/execution/content-refs.ts'
import type { ContentRef } from '../../../src/protocol/execution/ids.ts'
import type { PlainMap } from '../../../src/protocol/execution/sealed.ts'
import { must } from './run-grant-rules.ts'
import type { Machine } from './run-machine.ts'
import { isKeptInject, toEncryptOf, toldBy } from './run-vault.ts'

/** What the inputs of a walk say: words, facts and their keys, arguments and answers of calls. */
const SAID = /text \d|fact \d|key \d|tool\d\.ts|is not available|(?:record|forget): /

/** Facts about the user stay in clear (EC 17.2). */
const isClear = (write: Write): boolean => write.w === 'memory' && write.op.scope === 'user'

/** The payload of a trace entry: of a sealed session as the step gives it to memory. */
export function payloadOf({ id, payload }: TraceEntry, contents: PlainMap = {}): TracePayload {
  const text = contents[traceRef(id)]
  return payload.type === 'sealed' && text !== undefined ? JSON.parse(text) : payload
}

type Continuation = Extract<RunInputEvent, { type: 'continuation_received' }>

export class SealedRules {
  readonly #machine: Machine
  /** Texts that went with the memory before anybody sealed them. */
  #lost = new Set<ContentRef>()
  /** What the client was told is kept. */
  readonly #kept = new Map<ContentRef, string>()
  /** Everything that ever had to be sealed and was not given up. */
  readonly #expected = new Set<ContentRef>()

  constructor(machine: Machine) {
    this.#machine = machine
  }

  /** What was said under this id, wherever it is by now. */
  readonly texts = new Map<string, string>()

  /** The object is gone. */
  evicted(): void {
    this.#lost = new Set(this.#machine.state?.unsealed?.refs)
  }

  after(input: RunInputEvent, done: Step | null): void {
    const { state, sealed } = this.#machine
    if (state === null || sealed === null) return
    if (done !== null) {
      this.#follow(done)
      const stored = JSON.stringify([done.writes.filter((write) => !isClear(write)), done.state])
      must(!SAID.test(stored), `stored in clear: ${SAID.exec(stored)?.[0]} in ${stored}`)
      this.#checkTold(input, done)
    }
    const refs: ContentRef[] = state.unsealed?.refs ?? []
    const told = state.unsealed?.told ?? 0
    must(new Set(refs).size === refs.length, 'content is to be sealed twice')
    must(told <= refs.length, 'more was asked for than there is')
    for (const ref of refs)
      must(sealed.held.has(ref) || this.#lost.has(ref), `${ref} is to be sealed and nobody has its text`)
    if (isOver(state)) {
      const left = [...sealed.held.keys()].filter((ref) => !refs.includes(ref))
      must(left.length === 0, `the run is over and ${left} are in memory`)
    }
    this.#checkWhole(refs)
    this.#checkKept()
  }

  #follow({ writes, contents = {}, state }: Step): void {
    for (const [ref, text] of Object.entries(contents)) {
      this.#lost.delete(ref)
      if (ref.startsWith('message:')) this.texts.set(ref.slice('message:'.length), text)
    }
    for (const write of writes) {
      if (write.w === 'sealed') {
        this.#kept.set(write.ref, write.payload.ciphertext)
        this.#expected.add(write.ref)
      }
      if (write.w === 'run_input') this.#kept.delete(`run_input:${this.#machine.sealed?.session.sessionId}`)
      if (write.w === 'dropped') for (const ref of write.refs) this.#expected.delete(ref)
      if (write.w === 'memory' && write.op.scope === 'session' && write.op.op === 'record')
        must(contents[factRef(write.id)] !== undefined, `fact ${write.id} is told to nobody`)
    }
    for (const ref of state.unsealed?.refs ?? []) this.#expected.add(ref)
  }

  /** Words that came with their ciphertext, and whose turn came to a pause that is lost: they are there already (D20). */
  isKept(before: RunState | null, { digest, message }: Continuation): boolean {
    const { refs, told, answered } = before?.unsealed ?? { refs: [], told: 0, answered: null }
    const isSealed = message.type === 'inject' && isKeptInject(message)
    return (
      isSealed &&
      before?.active === null &&
      answered?.digest === digest &&
      refs.slice(0, told).some((ref) => this.#lost.has(ref))
    )
  }

  /** Of what a model asked to remember or forget, the session's facts: what they say goes to memory. */
  checkFacts(ops: readonly { key: string; content: string }[], { writes, contents = {} }: Step): void {
    const recorded = writes.flatMap((write) =>
      write.w === 'memory' && write.op.scope === 'session' && write.op.op === 'record' ? [write.id] : [],
    )
    must(
      isDeepStrictEqual(
        recorded.map((id) => contents[factRef(id)]),
        ops.map(({ key, content }) => factText(key, content)),
      ),
      'what is remembered is not what was said',
    )
  }

  /** What an outcome asks to seal is what the state says it was asked, with its texts (EC 5.5). */
  #checkTold(input: RunInputEvent, done: Step): void {
    const outcome = toldBy(done)
    if (outcome === null) return
    const { state, sealed } = this.#machine
    const texts = toEncryptOf(outcome)
    if (outcome.status !== 'error')
      must(
        isDeepStrictEqual(Object.keys(texts), this.#machine.asked),
        `${outcome.status} after ${input.type} asks for ${Object.keys(texts)}, the state for ${this.#machine.asked}`,
      )
    for (const [ref, text] of Object.entries(texts))
      must(sealed?.held.get(ref) === text, `${ref} is told and not held`)
    const left = (state?.unsealed?.refs ?? []).filter((ref) => !ref.startsWith('trace:'))
    const ends = outcome.status === 'idle' || outcome.status === 'error'
    if (ends && state?.phase.k === 'Idle') must(left.length === 0, `idle, and ${left} are unsealed`)
    if (!ends)
      must(
        isDeepStrictEqual(this.#machine.asked, state?.unsealed?.refs),
        `${outcome.status} leaves out content`,
      )
  }

  /** A row has its envelope, or waits for it. */
  #checkWhole(refs: readonly ContentRef[]): void {
    const { store } = this.#machine
    const unsealed = new Set(refs)
    const mustStand = (ref: ContentRef) =>
      must(store.sealed.has(ref) || unsealed.has(ref), `${ref} is neither sealed nor waited for`)
    for (const { id, calls } of store.messages) {
      mustStand(messageRef(id))
      if (calls.length > 0 || this.#expected.has(callsRef(id))) mustStand(callsRef(id))
      for (const call of calls) {
        if (call.recordsDiff) mustStand(`diff:${call.id}`)
        if (call.status !== 'pending' && call.answer === undefined && call.result === '')
          mustStand(resultRef(call.id))
      }
    }
    for (const id of store.plans.keys()) mustStand(`plan:${id}`)
    for (const id of store.facts.keys()) mustStand(factRef(id))
  }

  /** What was taken is kept, but for facts that were forgotten or replaced. */
  #checkKept(): void {
    const { store } = this.#machine
    for (const [ref, ciphertext] of this.#kept) {
      const [kind, id = ''] = ref.split(':')
      if (kind === 'memory' && !store.facts.has(id)) continue
      must(store.sealed.get(ref)?.ciphertext === ciphertext, `${ref} was taken and is not kept`)
    }
  }
}
