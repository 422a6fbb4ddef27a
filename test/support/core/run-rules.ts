/** The rules that hold after every input to a run, checked on what was stored and told. */

import { isDeepStrictEqual } from 'node:util'
import type { MemoryOp } from '../../../src/core/memory.ts'
import type { RunEvent } from '../../../src/core/run/events.ts'
import type { RunInputEvent } from '../../../src/core/run/inputs.ts'
import { openQuestion, pendingBatchId } from '../../../src/core/run/pending.ts'
import type { AskedCost, Disclosure, RunPhase, RunState } from '../../../src/core/run/state.ts'
import type { Step } from '../../../src/core/run/step.ts'
import type { ContinueKind } from '../../../src/protocol/execution/continue.ts'
import type { TurnResponse } from '../../../src/protocol/execution/turn.ts'
import { GrantRules, must } from './run-grant-rules.ts'
import type { Machine } from './run-machine.ts'
import { payloadOf, SealedRules } from './run-sealed-rules.ts'
import { bareFailureOf } from './run-store.ts'

/** What an outcome leaves the run waiting in, and what may be sent then (EC 5.5). */
const AFTER: Record<TurnResponse['status'], { phase: RunPhase['k']; next: ContinueKind[] | undefined }> = {
  completed: { phase: 'Idle', next: undefined },
  awaiting_tool: { phase: 'AwaitingTool', next: ['tool_results', 'inject', 'break'] },
  awaiting_approval: { phase: 'AwaitingApproval', next: ['approval_decisions', 'break'] },
  awaiting_decrypt: { phase: 'AwaitingDecrypt', next: ['decrypted', 'break'] },
  awaiting_encrypt: { phase: 'AwaitingEncrypt', next: ['sealed', 'break'] },
  idle: { phase: 'Idle', next: undefined },
  error: { phase: 'Idle', next: undefined },
}

/** Stands for a request that was cut off and whose words are lost: no other is the same. */
const ANEW = ''

/** A run as those see it who only follow the events. */
type Told = {
  turnId: string
  ended: boolean
  tools: Map<string, 'started' | 'finished'>
  approvals: Map<string, 'requested' | 'resolved'>
  questions: Map<string, 'requested' | 'resolved'>
}

/** Those that somebody is asked about and that are not settled. */
const openOf = (asked: ReadonlyMap<string, 'requested' | 'resolved'>): string[] =>
  [...asked].flatMap(([id, how]) => (how === 'requested' ? [id] : []))

/** Ids that were settled in this run, or never asked about. */
const settledOf = (asked: ReadonlyMap<string, 'requested' | 'resolved'>): string[] =>
  [...asked].flatMap(([id, how]) => (how === 'resolved' ? [id] : []))

export class RunRules {
  readonly #machine: Machine
  /** Every message that must be stored, in order. */
  #messages: string[] = []
  readonly #told: Told[] = []
  /** Everything that must have been remembered or forgotten, in order. */
  readonly #memory: MemoryOp[] = []
  readonly #grants: GrantRules
  readonly #sealed: SealedRules | null
  #eventsSeen = 0
  /** The request that a crash cut off and nothing has replaced since. */
  #cutOff: string | null = null
  #serving: string | null = null
  /** No model has been called with what the user said last. */
  #untold = false
  #before: RunState | null = null
  /** The messages that were stored before the input. */
  #stored: string[] = []

  constructor(machine: Machine) {
    this.#machine = machine
    this.#grants = new GrantRules(machine)
    this.#sealed = machine.sealed === null ? null : new SealedRules(machine)
  }

  /** All calls of the pause get an answer by these, or have one already. */
  answersAll(callIds: readonly string[]): boolean {
    const { store, waiting } = this.#machine
    return (
      callIds.every((id) => waiting.includes(id)) &&
      waiting.every((id) => callIds.includes(id) || store.calls.get(id)?.status !== 'pending')
    )
  }

  allows(shown: Disclosure): boolean {
    return this.#grants.allows(shown)
  }

  accepts(cost: AskedCost): boolean {
    return this.#grants.accepts(cost)
  }

  /** What devices were told to decide or to answer, and what was of it before. */
  get asked(): { approval: string | null; question: string | null; settled: string[] } {
    const current = this.#told.at(-1)
    if (current === undefined) return { approval: null, question: null, settled: [] }
    const { approvals, questions } = current
    return {
      approval: openOf(approvals)[0] ?? null,
      question: openOf(questions)[0] ?? null,
      settled: [...settledOf(approvals), ...settledOf(questions)],
    }
  }

  holdsGrant(grantId: string): boolean {
    return !this.#over && this.#grants.holds(grantId)
  }

  /** The object is gone, and its memory with it. */
  evicted(): void {
    this.#sealed?.evicted()
  }

  before(input: RunInputEvent): void {
    const { state, nowMs } = this.#machine
    this.#stored = this.#machine.store.messages.map(({ id }) => id)
    this.#before = state
    // To whoever sends the same request again, a turn whose lease ran out is as good as crashed.
    const lapsed = state?.active && nowMs >= state.active.leaseUntilMs
    if (lapsed && 'digest' in input && input.digest === this.#serving) this.#cutOff = this.#serving
  }

  after(input: RunInputEvent, done: Step | null): void {
    if (done !== null) {
      this.#forgetDropped(done)
      this.#expectMessages(input, done)
      this.#checkWords(input)
      this.#checkPrompt(input, done)
      this.#followServing(input)
      const isAgain = input.type === 'continuation_received' && this.#sealed?.isKept(this.#before, input)
      if (!isAgain) this.#grants.follow(input, this.#before)
      this.#checkReplies(input, done)
    }
    this.#sealed?.after(input, done)
    this.#checkMessages()
    this.#checkMemory()
    this.#checkCalls()
    this.#checkTurns()
    this.#checkCheckpoint()
    this.#grants.check(this.#over)
    if (done !== null) this.#forgetLostPause(input)
    for (const event of this.#machine.events.slice(this.#eventsSeen)) this.#hear(event)
    this.#eventsSeen = this.#machine.events.length
    this.#checkRuns()
    this.#checkClock()
  }

  /** What nobody sealed and nobody holds is not there any more. */
  #forgetDropped({ writes }: Step): void {
    const dropped = new Set(writes.flatMap((write) => (write.w === 'dropped' ? write.refs : [])))
    if (dropped.size === 0) return
    this.#messages = this.#messages.filter((_, index) => !dropped.has(`message:${this.#stored[index]}`))
  }

  #expectMessages(input: RunInputEvent, done: Step): void {
    const expected = this.#messages
    switch (input.type) {
      case 'execute_requested':
        if (this.#cutOff !== input.digest) expected.push(`user: ${input.text}`)
        else must(expected.includes(`user: ${input.text}`), 'a run goes on and what it was asked is lost')
        return
      case 'continuation_received': {
        const { message, partial, digest } = input
        if (message.type !== 'inject' && message.type !== 'break') return
        if (this.#before?.active && partial && partial.text.trim() !== '')
          expected.push(`cut off: ${partial.text}`)
        const isKnown = this.#cutOff === digest || this.#sealed?.isKept(this.#before, input)
        if (message.type === 'inject' && !isKnown)
          expected.push(`user: ${message.data.messages.map(({ text }) => text).join('\n')}`)
        return
      }
      case 'model_responded':
        // A planning that ends without a word has made no plan: the run has failed.
        if (this.#before?.planning && input.calls.length === 0 && input.text.trim() === '') return
        expected.push(`assistant: ${input.text}`)
        this.#expectMemory(
          input.calls.flatMap((call) => (call.to === 'model' && call.memory ? [call.memory] : [])),
          done,
        )
        return
      case 'turn_failed':
        if (input.partial && input.partial.text.trim() !== '') expected.push(`cut off: ${input.partial.text}`)
        return
      default:
    }
  }

  #expectMemory(ops: readonly MemoryOp[], done: Step): void {
    if (this.#sealed === null) {
      this.#memory.push(...ops)
      return
    }
    this.#memory.push(...ops.filter(({ scope }) => scope === 'user'))
    this.#sealed.checkFacts(
      ops.flatMap((op) => (op.scope === 'session' && op.op === 'record' ? [op] : [])),
      done,
    )
  }

  /** The user's words are marked where the request, or the user's own refusal in this run, keeps them from remote models. */
  #checkWords(input: RunInputEvent): void {
    const { state, store } = this.#machine
    const before = this.#before
    const adds =
      input.type === 'execute_requested' ||
      (input.type === 'continuation_received' && input.message.type === 'inject')
    if (!adds || this.#cutOff === input.digest) return
    if (input.type === 'continuation_received' && this.#sealed?.isKept(before, input)) return
    const declined = before?.runId === state?.runId && before?.remoteDeclined === true
    must(
      (store.messages.at(-1)?.localOnly === true) === (input.localOnly || declined),
      'what the user said is marked wrongly',
    )
  }

  /** The trace tells of what the user said last once a model is called with it, and which model that is. */
  #checkPrompt(input: RunInputEvent, { writes, contents }: Step): void {
    if (writes.some(({ w }) => w === 'user_message')) this.#untold = true
    const told = writes
      .flatMap((write) => (write.w === 'trace' ? write.entries : []))
      .map((entry) => payloadOf(entry, contents))
      .flatMap((payload) => (payload.type === 'message' && payload.role === 'user' ? payload.model : []))
    const called = input.type === 'turn_resolved' && input.gate === null ? [input.call.model] : []
    must(
      isDeepStrictEqual(told, this.#untold ? called : []),
      `the prompt is told of ${told}, called are ${called}`,
    )
    if (told.length > 0) this.#untold = false
  }

  #followServing(input: RunInputEvent): void {
    const { state } = this.#machine
    const begins = state?.active != null && this.#before?.active == null && 'digest' in input
    if (input.type === 'execute_requested' || input.type === 'continuation_received' || begins) {
      this.#cutOff = null
      this.#serving = state?.active ? input.digest : null
    } else if (input.type === 'object_started') {
      must(state?.active === null, 'the lock outlived a crash')
      // A request whose words are lost begins anew when it comes again.
      const isAnew = this.#sealed !== null && state?.unsettled?.digest !== this.#serving
      this.#cutOff = isAnew ? ANEW : this.#serving
      this.#serving = null
    } else if (state?.active === null) this.#serving = null
  }

  #checkReplies(input: RunInputEvent, { reply, effects, writes, state }: Step): void {
    const asked = input.type === 'execute_requested' || input.type === 'continuation_received'
    const byDevice =
      input.type === 'device_decided' ||
      input.type === 'question_answered' ||
      input.type === 'question_cancelled'
    if (byDevice) {
      const expected = state.active !== null ? 'turn' : this.#over ? 'outcome' : undefined
      must(reply?.by === expected, `a device is answered by ${reply?.by}, not by ${expected}`)
    } else must(asked === (reply !== undefined), 'a request and nothing else is replied to')
    if (reply?.by === 'turn') must(reply.turnId === state.active?.turnId, 'the reply waits for another turn')
    if (reply?.by === 'outcome') must(state.active === null, 'answered at once, and still serving')
    for (const effect of effects) {
      if (effect.e === 'serve_turn')
        must(effect.lease === state.active?.lease, `${effect.e} for another lease`)
    }
    const closed = writes.flatMap((write) => (write.w === 'close_turn' ? [write] : []))
    const answers = effects.flatMap((effect) => (effect.e === 'answer' ? [effect] : []))
    const told = closed.filter(({ status }) => status === 'done' || status === 'failed')
    must(
      isDeepStrictEqual(
        told.map(({ turnId, outcome }) => ({ turnId, outcome })),
        answers.map(({ turnId, outcome }) => ({
          turnId,
          outcome: this.#sealed === null ? outcome : bareFailureOf(outcome),
        })),
      ),
      'a turn that ended was not answered with what was stored',
    )
    const cut = effects.flatMap((effect) => (effect.e === 'cancel_turn' ? [effect.turnId] : []))
    const superseded = closed.filter(({ status }) => status === 'superseded').map(({ turnId }) => turnId)
    must(
      superseded.every((turnId) => cut.includes(turnId)),
      'a superseded turn is not cut',
    )
  }

  #checkMessages(): void {
    const stored = this.#machine.store.messages.map(({ id, role, interrupted, text: clear }) => {
      const text = this.#sealed === null ? clear : this.#sealed.texts.get(id)
      return interrupted ? `cut off: ${text}` : `${role}: ${text}`
    })
    // The start was compared after earlier inputs.
    const tail = stored.length - 3
    must(
      stored.length === this.#messages.length &&
        isDeepStrictEqual(stored.slice(Math.max(0, tail)), this.#messages.slice(Math.max(0, tail))),
      `messages: stored ${JSON.stringify(stored)}, expected ${JSON.stringify(this.#messages)}`,
    )
  }

  /** What is remembered is stored with the message that asked for it: once, in order, and never told to the client. */
  #checkMemory(): void {
    const { calls } = this.#machine.store
    const memory = this.#machine.store.memory.filter(({ scope }) => this.#sealed === null || scope === 'user')
    must(
      memory.length === this.#memory.length && isDeepStrictEqual(memory.slice(-3), this.#memory.slice(-3)),
      `memory: stored ${JSON.stringify(memory)}, expected ${JSON.stringify(this.#memory)}`,
    )
    must(
      this.#machine.waiting.every((id) => calls.get(id)?.name !== 'memory'),
      'the client is asked to run memory',
    )
  }

  #checkCalls(): void {
    const { store, phase } = this.#machine
    const waits = phase?.k === 'AwaitingTool' ? phase.calls : []
    for (const { callId, settled } of waits) {
      const status = store.calls.get(callId)?.status
      must(status !== undefined, `the phase waits for a call that is not stored`)
      must(
        settled === (status !== 'pending'),
        `call ${callId} is ${status}, the phase says settled: ${settled}`,
      )
    }
    const open = [...store.calls.values()].filter(({ status }) => status === 'pending').map(({ id }) => id)
    const waitedFor = waits.filter(({ settled }) => !settled).map(({ callId }) => callId)
    must(isDeepStrictEqual(open, waitedFor), `open calls ${open}, waited for ${waitedFor}`)
  }

  #checkTurns(): void {
    const { store, state } = this.#machine
    for (const { turnId, status, calls, outcome } of store.turns.values()) {
      must(
        (status === 'running') === (turnId === state?.active?.turnId),
        `turn ${turnId} is ${status} and ${state?.active?.turnId} is being served`,
      )
      const isTold = status === 'failed' || (this.#sealed === null && status === 'done')
      must((outcome !== null) === isTold, `turn ${turnId}: its outcome`)
      if (status === 'done' || status === 'failed')
        must(
          calls.every((call) => call.status !== 'lost'),
          `turn ${turnId} ended and a call is unaccounted for`,
        )
      must(
        calls.slice(0, -1).every((call) => call.status !== 'lost'),
        `turn ${turnId}: a call was followed by another and never accounted for`,
      )
    }
  }

  #checkCheckpoint(): void {
    const { state, store } = this.#machine
    if (!state?.checkpointTurnId) return
    const stored = store.turns.get(state.checkpointTurnId)?.outcome
    const outcome = this.#sealed === null ? stored : this.#machine.outcome
    must(outcome, 'the current envelope is not stored')
    const { phase, next } = AFTER[outcome.status]
    const sealing = outcome.status === 'completed' && outcome.data.to_encrypt !== undefined
    const leaves = outcome.status === 'error' && state.phase.k === 'AwaitingEncrypt'
    must(
      leaves || state.phase.k === (sealing ? 'AwaitingEncrypt' : phase),
      `${outcome.status} and ${state.phase.k}`,
    )
    const allowed = sealing ? AFTER.awaiting_encrypt.next : next
    must(isDeepStrictEqual(outcome.allowed_continuations, allowed), `${outcome.status}: what may come next`)
    if (outcome.status === 'awaiting_tool')
      must(
        isDeepStrictEqual(
          outcome.data.tool_requests.map(({ call_id: id }) => id),
          this.#machine.waiting,
        ),
        'the calls told and the calls waited for differ',
      )
  }

  /** A pause that was lost is forgotten, with what it asked for: its turn is served again, and asks anew (D20). */
  #forgetLostPause(input: RunInputEvent): void {
    const { phase, active } = this.#before ?? { phase: undefined, active: null }
    if (this.#sealed === null || active !== null || input.type !== 'continuation_received') return
    const { message } = input
    if (message.type === 'break') return
    if (message.type === 'inject' && !this.#sealed.isKept(this.#before, input)) return
    if (this.#machine.state?.active == null || this.#machine.phase?.k !== 'Idle') return
    const current = this.#told.at(-1)
    if (current === undefined || phase?.k === 'Idle' || phase?.k === 'AwaitingDecrypt') return
    current.tools.clear()
    current.approvals.clear()
    current.questions.clear()
    current.ended = false
  }

  #hear(event: RunEvent): void {
    const current = this.#told.at(-1)
    if (event.type === 'turn_started') {
      must(current === undefined || current.ended, 'a run starts and the one before it never ended')
      must(
        this.#told.every(({ turnId }) => turnId !== event.turnId),
        'a run starts twice',
      )
      this.#told.push({
        turnId: event.turnId,
        ended: false,
        tools: new Map(),
        approvals: new Map(),
        questions: new Map(),
      })
      return
    }
    must(current && !current.ended, `${event.type} outside a run`)
    if ('turnId' in event) must(event.turnId === current.turnId, `${event.type} of another run`)
    switch (event.type) {
      case 'tool_started':
        must(!current.tools.has(event.id), 'a call starts twice')
        current.tools.set(event.id, 'started')
        return
      case 'tool_finished':
        must(current.tools.get(event.id) === 'started', 'a call finishes that is not under way')
        current.tools.set(event.id, 'finished')
        return
      case 'approval_requested':
        must(!current.approvals.has(event.approvalId), 'an approval is asked twice')
        current.approvals.set(event.approvalId, 'requested')
        return
      case 'approval_resolved':
        must(
          current.approvals.get(event.approvalId) === 'requested',
          'an approval is resolved that is not open',
        )
        current.approvals.set(event.approvalId, 'resolved')
        return
      case 'decision_moved':
        must(current.approvals.get(event.approvalId) === 'resolved', 'a decision moves that nobody made')
        return
      case 'question_requested':
        must(!current.questions.has(event.questionId), 'a question is asked twice')
        must(openOf(current.questions).length === 0, 'two questions are asked at once')
        current.questions.set(event.questionId, 'requested')
        return
      case 'question_resolved':
        must(
          current.questions.get(event.questionId) === 'requested',
          'a question is resolved that is not open',
        )
        current.questions.set(event.questionId, 'resolved')
        return
      case 'turn_finished':
      case 'turn_cancelled':
        must(openOf(current.questions).length === 0, 'a run ends and a question of it is open')
        this.#checkEnding(event)
        must(![...current.tools.values()].includes('started'), 'a run ends and a call of it is open')
        must(
          ![...current.approvals.values()].includes('requested'),
          'a run ends and an approval of it is open',
        )
        current.ended = true
        return
      default:
    }
  }

  /** Its last turn says how a run ended, and no other does; a sealed one may have been served again since. */
  #checkEnding(event: Extract<RunEvent, { type: 'turn_finished' | 'turn_cancelled' }>): void {
    if (this.#machine.sealed !== null) return
    const outcomes = [...this.#machine.store.turns.values()]
      .filter(({ runId }) => `turn:${runId}` === event.turnId)
      .flatMap(({ runOutcome }) => runOutcome ?? [])
    const outcome = event.type === 'turn_cancelled' ? 'cancelled' : event.outcome
    must(
      outcomes.every((kept) => kept === outcome) && outcomes.length <= 1,
      `a run is ${outcome}, kept is ${outcomes}`,
    )
  }

  /** The clock of a run never runs back, and runs no longer than the run is old. */
  #checkClock(): void {
    const { state, nowMs } = this.#machine
    if (state === null) return
    must(state.clock, 'a run without a clock')
    const { startedAtMs, workMs } = state.clock
    must(workMs >= 0 && startedAtMs + workMs <= nowMs, `worked for ${workMs} since ${startedAtMs}`)
    const before = this.#before
    if (before?.runId !== state.runId) return
    must(startedAtMs === before.clock?.startedAtMs, 'a run begins anew')
    must(workMs >= (before.clock?.workMs ?? 0), 'the clock of a run runs back')
  }

  get #over(): boolean {
    const { state } = this.#machine
    return (
      state !== null &&
      state.active === null &&
      this.#cutOff === null &&
      (state.phase.k === 'Idle' || state.phase.k === 'AwaitingEncrypt')
    )
  }

  /** A run has its end told exactly when it is over. */
  #checkRuns(): void {
    const { state } = this.#machine
    const current = this.#told.at(-1)
    if (!state || !current) return
    must(current.turnId === `turn:${state.runId}`, 'the events are of another run than the state')
    const over = this.#over
    must(current.ended === over, `the run ${over ? 'is over' : 'goes on'}, told ended: ${current.ended}`)
    const { phase } = state
    const waits = [pendingBatchId(phase) ?? []].flat()
    must(
      isDeepStrictEqual(openOf(current.approvals), waits),
      `told to be decided: ${openOf(current.approvals)}, waiting: ${waits}`,
    )
    const asks = [openQuestion(phase)?.question.id ?? []].flat()
    must(
      isDeepStrictEqual(openOf(current.questions), asks),
      `told to be answered: ${openOf(current.questions)}, waiting: ${asks}`,
    )
  }
}
