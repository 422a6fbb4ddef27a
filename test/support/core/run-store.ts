/**
 * A session's rows in memory. It applies what the run machine tells it to store, as strictly as the machine promises:
 * whatever is stored twice, settled twice or closed twice is an error here, not overwritten.
 */

import { isDeepStrictEqual } from 'node:util'
import type { MemoryOp } from '../../../src/core/memory.ts'
import { DECLINED_NOTE, endingOf } from '../../../src/core/run/supersede.ts'
import type { CallRecord, NewCall, RunOutcome, TraceEntry, Write } from '../../../src/core/run/writes.ts'
import type { Seen } from '../../../src/core/transcript.ts'
import { assertNever } from '../../../src/protocol/assert.ts'
import { callsRef, factRef, resultRef } from '../../../src/protocol/execution/content-refs.ts'
import type { ContentRef } from '../../../src/protocol/execution/ids.ts'
import type { EncryptedPayload } from '../../../src/protocol/execution/sealed.ts'
import type { TurnResponse } from '../../../src/protocol/execution/turn.ts'

export type StoredCall = NewCall & {
  status: 'pending' | 'completed' | 'failed'
  result: string | null
}

export type StoredMessage = {
  id: string
  runId: string
  role: 'user' | 'assistant'
  text: string
  interrupted: boolean
  localOnly?: true
  seen?: Seen
  calls: StoredCall[]
}

export type StoredTurn = {
  turnId: string
  runId: string
  turn: number
  status: 'running' | 'done' | 'failed' | 'superseded' | 'interrupted'
  calls: CallRecord[]
  trace: TraceEntry[]
  outcome: TurnResponse | null
  runOutcome?: RunOutcome
}

const must = (condition: unknown, message: string): void => {
  if (!condition) throw new Error(`the store refuses: ${message}`)
}

export class RunStore {
  readonly messages: StoredMessage[] = []
  readonly calls = new Map<string, StoredCall>()
  readonly turns = new Map<string, StoredTurn>()
  readonly approvals: Extract<Write, { w: 'approval' }>[] = []
  readonly plans = new Map<
    string,
    { content: string; status: 'draft' | 'approved' | 'rejected'; version: number }
  >()
  /** What was to be remembered or forgotten, in order. */
  readonly memory: MemoryOp[] = []
  /** The envelopes of a sealed session. */
  readonly sealed = new Map<ContentRef, EncryptedPayload>()
  /** The facts of a sealed session: their rows, without what they say. */
  readonly facts = new Map<string, { replaces: string | null }>()
  /** How often a run's input was stored, whole or stripped. */
  runInputs = 0
  readonly #ids = new Set<string>()
  /** Ids of calls and plans whose rows were dropped: what ends them finds nothing. */
  readonly #dropped = new Set<string>()
  readonly #inputRef: ContentRef | null

  /** @param inputRef of a sealed session, where its input is kept: no text may come to such a store */
  constructor(inputRef: ContentRef | null = null) {
    this.#inputRef = inputRef
  }

  apply(writes: readonly Write[]): void {
    for (const write of writes) {
      if (this.#inputRef !== null) mustBeTextless(write)
      this.#apply(write)
    }
  }

  #fresh(id: string): void {
    must(!this.#ids.has(id), `the id ${id} is used twice`)
    this.#ids.add(id)
  }

  #turn(turnId: string): StoredTurn {
    const turn = this.turns.get(turnId)
    if (!turn) throw new Error(`the store refuses: no turn ${turnId}`)
    return turn
  }

  #apply(write: Write): void {
    switch (write.w) {
      case 'run_input':
        if (this.#inputRef !== null) this.sealed.delete(this.#inputRef)
        this.runInputs++
        return
      case 'injected_input':
        this.runInputs++
        return
      case 'user_message':
        this.#fresh(write.id)
        this.messages.push({
          id: write.id,
          runId: write.runId,
          role: 'user',
          text: write.text,
          interrupted: false,
          ...(write.localOnly ? { localOnly: true } : {}),
          calls: [],
        })
        return
      case 'keep_local': {
        const said = this.messages.filter(({ runId }) => runId === write.runId)
        must(said.length > 0, `${write.runId} has said nothing that could be kept local`)
        for (const message of said) message.localOnly = true
        return
      }
      case 'assistant_message': {
        this.#fresh(write.id)
        const calls = write.calls.map(
          (call): StoredCall => ({
            ...call,
            status: call.answer ? (call.answer.isError ? 'failed' : 'completed') : 'pending',
            result: call.answer?.result ?? null,
          }),
        )
        for (const call of calls) {
          this.#fresh(call.id)
          this.calls.set(call.id, call)
        }
        const { id, runId, text, interrupted, localOnly, seen } = write
        this.messages.push({
          id,
          runId,
          role: 'assistant',
          text,
          interrupted,
          ...(localOnly ? { localOnly } : {}),
          ...(seen ? { seen } : {}),
          calls,
        })
        return
      }
      case 'settle_call': {
        const call = this.calls.get(write.callId)
        if (this.#dropped.has(write.callId)) return
        if (!call) throw new Error(`the store refuses: no call ${write.callId}`)
        must(call.status === 'pending', `call ${write.callId} is settled twice`)
        call.status = write.isError ? 'failed' : 'completed'
        call.result = write.content
        return
      }
      case 'approval':
        this.#fresh(write.id)
        must(
          this.approvals.every(({ targetId }) => targetId !== write.targetId),
          `${write.targetId} is decided twice`,
        )
        this.approvals.push(write)
        return
      case 'plan':
        this.#fresh(write.id)
        this.plans.set(write.id, { content: write.content, status: 'draft', version: write.version })
        return
      case 'plan_status': {
        const plan = this.plans.get(write.id)
        if (this.#dropped.has(write.id)) return
        if (!plan) throw new Error(`the store refuses: no plan ${write.id}`)
        must(plan.status === 'draft', `plan ${write.id} is decided twice`)
        plan.status = write.status
        return
      }
      case 'open_turn':
        this.#fresh(write.turnId)
        this.turns.set(write.turnId, {
          turnId: write.turnId,
          runId: write.runId,
          turn: write.turn,
          status: 'running',
          calls: [],
          trace: [],
          outcome: null,
        })
        return
      case 'trace':
        for (const { id } of write.entries) this.#fresh(id)
        this.#turn(write.turnId).trace.push(...write.entries)
        return
      case 'call':
        this.#turn(write.turnId).calls.push(write.call)
        return
      case 'call_settled': {
        const { calls } = this.#turn(write.turnId)
        must(calls.at(-1)?.status === 'lost', `${write.turnId} settles a call that is not under way`)
        calls[calls.length - 1] = write.call
        return
      }
      case 'close_turn': {
        const turn = this.#turn(write.turnId)
        must(turn.status === 'running', `turn ${write.turnId} is closed twice`)
        turn.status = write.status
        turn.outcome = write.outcome
        if (write.runOutcome !== undefined) this.#runEnded(turn, write.runOutcome)
        return
      }
      case 'run_ended':
        this.#runEnded([...this.turns.values()].at(-1), write.outcome)
        return
      case 'memory':
        this.#fresh(write.id)
        this.memory.push(write.op)
        if (write.op.scope === 'user' || !write.op.sealed) return
        if (write.op.op === 'record') this.facts.set(write.id, { replaces: write.op.replaces ?? null })
        else if (write.op.factId !== undefined) this.#forget(write.op.factId)
        return
      case 'sealed':
        must(!this.sealed.has(write.ref), `${write.ref} is sealed twice`)
        this.sealed.set(write.ref, write.payload)
        this.#factSealed(write.ref)
        return
      case 'dropped':
        for (const ref of write.refs) this.#drop(ref)
        return
      default:
        assertNever(write)
    }
  }

  #runEnded(turn: StoredTurn | undefined, outcome: RunOutcome): void {
    if (turn === undefined) throw new Error('the store refuses: a run ends that was never served')
    must(turn.runOutcome === undefined, `the run of turn ${turn.turnId} ends twice`)
    turn.runOutcome = outcome
  }

  /** A fact has its envelope: those go in whose place it was recorded. */
  #factSealed(ref: ContentRef): void {
    const id = ref.slice(ref.indexOf(':') + 1)
    const fact = ref === factRef(id) ? this.facts.get(id) : undefined
    if (fact === undefined) return
    for (const gone of this.#earlier(id)) this.#removeFact(gone)
    this.facts.set(id, { replaces: null })
  }

  #earlier(id: string): string[] {
    const replaces = this.facts.get(id)?.replaces ?? null
    return replaces === null ? [] : [replaces, ...this.#earlier(replaces)]
  }

  #forget(id: string): void {
    const later = [...this.facts].flatMap(([other, { replaces }]) => (replaces === id ? [other] : []))
    const earlier = this.#earlier(id)
    this.#removeFact(id)
    for (const gone of earlier) this.#removeFact(gone)
    for (const gone of later) this.#forget(gone)
  }

  #removeFact(id: string): void {
    this.facts.delete(id)
    this.sealed.delete(factRef(id))
  }

  /** What nobody sealed and nobody holds any more. */
  #drop(ref: ContentRef): void {
    must(!this.sealed.has(ref), `${ref} is sealed, and dropped`)
    const [kind, id = ''] = ref.split(':')
    if (kind === 'plan') {
      this.plans.delete(id)
      this.#dropped.add(id)
    }
    if (kind === 'memory') {
      const replaces = this.facts.get(id)?.replaces ?? null
      for (const fact of this.facts.values()) if (fact.replaces === id) fact.replaces = replaces
      this.facts.delete(id)
    }
    const index = kind === 'message' ? this.messages.findIndex((message) => message.id === id) : -1
    if (index < 0) return
    const [message] = this.messages.splice(index, 1)
    this.sealed.delete(callsRef(id))
    for (const call of message?.calls ?? []) {
      this.calls.delete(call.id)
      this.#dropped.add(call.id)
      this.sealed.delete(resultRef(call.id))
      this.sealed.delete(`diff:${call.id}`)
    }
  }
}

/** What a sealed session may store: nothing that anybody said, was given or was asked. */
function mustBeTextless(write: Write): void {
  const problem = textIn(write)
  must(problem === null, `${write.w} of a sealed session with ${problem}: ${JSON.stringify(write)}`)
}

/** All that a sealed session keeps of what a turn came to: the code of a failure. */
export const bareFailureOf = (outcome: TurnResponse): TurnResponse | null =>
  outcome.status === 'error'
    ? { status: 'error', data: { error: { code: outcome.data.error.code, message: 'the run has failed' } } }
    : null

function textIn(write: Write): string | null {
  switch (write.w) {
    case 'user_message':
      return write.text === '' ? null : 'its text'
    case 'assistant_message': {
      if (write.text !== '') return 'its text'
      if (write.seen !== undefined) return 'what its prompt held'
      const open = write.calls.find(
        ({ name, arguments: args, opaque, providerCallId, answer }) =>
          (answer !== undefined && name !== '') ||
          Object.keys(args).length > 0 ||
          opaque !== undefined ||
          providerCallId !== undefined ||
          (answer !== undefined && answer.result !== ''),
      )
      return open === undefined ? null : 'a call'
    }
    case 'settle_call':
      return [DECLINED_NOTE, ''].includes(write.content) || endingOf(write.content) !== null
        ? null
        : 'a result'
    case 'approval':
      return write.reason === undefined ? null : 'a reason'
    case 'memory':
      if (write.op.scope === 'user') return null
      if (!write.op.sealed || write.op.key !== '') return 'a key'
      return write.op.op === 'record' && write.op.content !== '' ? 'a fact' : null
    case 'plan':
      return write.content === '' ? null : 'a plan'
    case 'trace':
      return write.entries.every(({ payload }) => payload.type === 'sealed') ? null : 'a trace'
    case 'call':
    case 'call_settled':
      return write.call.usage === null && write.call.cost === undefined && write.call.seen === undefined
        ? null
        : 'what a call used'
    case 'close_turn':
      return write.outcome === null || isDeepStrictEqual(write.outcome, bareFailureOf(write.outcome))
        ? null
        : 'an outcome'
    default:
      return null
  }
}
