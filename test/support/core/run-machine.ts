/** A run machine with its rows, events and effects in memory: what the shell of a session does, without a platform. */

import type { MediatedCall } from '../../../src/core/mediate.ts'
import type { MemoryOp } from '../../../src/core/memory.ts'
import type { RunEvent } from '../../../src/core/run/events.ts'
import type {
  Gate,
  Partial as PartialAnswer,
  RunInputEvent,
  TurnReport,
} from '../../../src/core/run/inputs.ts'
import { openQuestion, pendingBatchId } from '../../../src/core/run/pending.ts'
import type { Driver, RunState } from '../../../src/core/run/state.ts'
import { type Effect, type Step, type StepContext, step } from '../../../src/core/run/step.ts'
import type { CallRecord } from '../../../src/core/run/writes.ts'
import { inputRef } from '../../../src/protocol/execution/content-refs.ts'
import type { ApprovalDecision, ContinueRequest } from '../../../src/protocol/execution/continue.ts'
import type { ContentRef, Provider } from '../../../src/protocol/execution/ids.ts'
import type { TaskIntent } from '../../../src/protocol/execution/policy.ts'
import type { SealedMap } from '../../../src/protocol/execution/sealed.ts'
import type { AnswerEnding, TurnResponse } from '../../../src/protocol/execution/turn.ts'
import { RunStore } from './run-store.ts'
import { type SealedSession, SealedSide, seal, toldBy } from './run-vault.ts'

/** Freezes everything below a value: a machine that writes into its input throws. */
export function freeze<T>(value: T): T {
  if (typeof value === 'object' && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value)
    for (const part of Object.values(value)) freeze(part)
  }
  return value
}

export const makeReport = (model = 'm', intent: TaskIntent = 'chat'): TurnReport => ({
  classification: { intent, source: 'inferred', reason: 'a test says so', confidence: 'low' },
  routing: {
    intent,
    provider: 'ollama',
    model,
    fallback_used: false,
    override_used: false,
    reason: 'default route',
  },
  context: { included: [], excluded: [] },
})

export const makeRecord = (
  status: CallRecord['status'],
  usage: CallRecord['usage'] = null,
  model = 'm',
): CallRecord => ({ provider: 'ollama', model, taskType: 'chat', chosenBy: 'default route', status, usage })

export const makePartial = (text: string): PartialAnswer => ({
  text,
  call: makeRecord('cancelled', { inputTokens: 3 }),
})

export const clientCall = (name: string, requiresApproval: 'allow' | 'ask' = 'allow'): MediatedCall => ({
  call: { name, arguments: { path: `${name}.ts` } },
  to: 'client',
  requiresApproval,
  recordsDiff: false,
})

/** A call that asks the user so many questions. */
export const askCall = (questions = 1): MediatedCall => ({
  call: { name: 'ask_user', arguments: { questions: [] } },
  to: 'client',
  requiresApproval: 'allow',
  recordsDiff: false,
  questions,
})

export const refusedCall = (name: string): MediatedCall => ({
  call: { name, arguments: {} },
  to: 'model',
  result: `${name} is not available`,
  isError: true,
  refused: true,
})

/** A call that the router answered itself, with what it has to remember. */
export const memoryCall = (op: MemoryOp): MediatedCall => ({
  call: { name: 'memory', arguments: { ...op } },
  to: 'model',
  result: `${op.op}: ${op.key}`,
  isError: false,
  refused: false,
  memory: op,
})

export type Answered = {
  text?: string
  ending?: AnswerEnding | null
  calls?: MediatedCall[]
}

export class Machine {
  state: RunState | null = null
  readonly store: RunStore
  readonly events: RunEvent[] = []
  /** Of a sealed session: the texts that are in memory, and its client. */
  readonly sealed: SealedSide | null
  /** What the client was told last. */
  outcome: TurnResponse | null = null
  nowMs = 1_000_000
  #ids = 0
  #digests = 0

  constructor(session: SealedSession | null = null) {
    this.store = new RunStore(session && inputRef(session.sessionId))
    this.sealed = session && new SealedSide(session, this.store)
  }

  newId = (): string => `id-${++this.#ids}`

  #context(input: RunInputEvent, newId: () => string): StepContext {
    const sealing = this.sealed?.sealing(input)
    return { nowMs: this.nowMs, newId, ...(sealing === undefined ? {} : { sealing }) }
  }

  /** Gives one input to the machine and commits what it says. */
  send(input: RunInputEvent): ReturnType<typeof step> {
    const result = step(this.state, freeze(input), this.#context(input, this.newId))
    if ('state' in result) {
      this.state = freeze(result.state)
      this.store.apply(result.writes)
      this.events.push(...result.events)
      this.sealed?.remember(input, result, result.state)
      this.outcome = toldBy(result) ?? this.outcome
    }
    return result
  }

  /** What the machine would say to an input now; nothing is committed. */
  peek(input: RunInputEvent): ReturnType<typeof step> {
    let ids = this.#ids
    return step(
      this.state,
      freeze(input),
      this.#context(input, () => `id-${++ids}`),
    )
  }

  /** Gives an input that must be accepted. */
  accept(input: RunInputEvent): Step {
    const result = this.send(input)
    if (!('state' in result)) throw new Error(`not accepted: ${JSON.stringify(result)}`)
    return result
  }

  execute(
    text: string,
    { command = null, digest, ...fields }: { command?: TaskIntent | null; digest?: string } & RunFields = {},
  ) {
    return this.send(executeRequested(text, command, digest ?? this.newDigest(), fields))
  }

  continue(
    message: ContinueRequest,
    { digest, partial = null, localOnly = false, keyed }: ContinueOptions = {},
  ) {
    return this.send({
      type: 'continuation_received',
      digest: digest ?? this.newDigest(),
      message,
      partial,
      localOnly,
      ...(keyed === undefined ? {} : { keyed }),
    })
  }

  /** A device decides what waits for a decision, or what it takes for that. */
  deviceDecides(decision: ApprovalDecision, batchId = this.batchId) {
    return this.send({ type: 'device_decided', digest: this.newDigest(), batchId, decision, partial: null })
  }

  /** A device answers the question that is asked now, or another one. */
  answerQuestion(answer: string, questionId = this.questionId) {
    return this.send({ type: 'question_answered', digest: this.newDigest(), questionId, answer })
  }

  cancelQuestion(questionId = this.questionId) {
    return this.send({ type: 'question_cancelled', questionId, partial: null })
  }

  newDigest(): string {
    return `digest-${++this.#digests}`
  }

  /** The lease under which the current turn is served. */
  get lease(): string {
    const lease = this.state?.active?.lease
    if (lease === undefined) throw new Error('no turn is being served')
    return lease
  }

  /** The turn that is being served is decided; the model is called, or a gate stands before it. */
  resolve(gate: Gate | null = null): Step {
    return this.accept({
      type: 'turn_resolved',
      lease: this.lease,
      report: makeReport(),
      traces: [{ type: 'classification', ...makeReport().classification }],
      gate,
      call: makeRecord('lost'),
      failedCall: null,
    })
  }

  /** The model that was called answers. */
  answer({ text = '', ending = null, calls = [] }: Answered = {}): Step {
    return this.accept({
      type: 'model_responded',
      lease: this.lease,
      text,
      ending,
      report: makeReport(),
      calls,
      call: makeRecord('answered', { inputTokens: 1, outputTokens: 1 }),
      usage: { input_tokens: 1, output_tokens: 1 },
    })
  }

  /** One whole round: decided, called, answered. */
  round(answered: Answered = {}): Step {
    this.resolve()
    return this.answer(answered)
  }

  fail(code: 'provider_error' | 'no_route' = 'provider_error', partial: PartialAnswer | null = null): Step {
    return this.accept({
      type: 'turn_failed',
      lease: this.lease,
      failure: { code, message: 'it failed' },
      partial,
      call: makeRecord('failed'),
    })
  }

  /** The object is gone and comes up again; what was in its memory alone is lost. */
  crash() {
    this.sealed?.evict()
    return this.send({ type: 'object_started' })
  }

  /** Of a sealed session: asks for what the turn that begins has to have opened; false where all of it is in memory. */
  pauseToOpen(): boolean {
    const toDecrypt = this.sealed?.closed() ?? {}
    if (Object.keys(toDecrypt).length === 0) return false
    this.accept({ type: 'decryption_needed', lease: this.lease, toDecrypt })
    return true
  }

  /** What the client has been asked to seal. */
  get asked(): ContentRef[] {
    const { refs, told } = this.state?.unsealed ?? { refs: [], told: 0 }
    return refs.slice(0, told)
  }

  /** The envelopes of what the client has been asked to seal, and of these. */
  seals(...more: ContentRef[]): SealedMap {
    return seal([...this.asked, ...more], this.sealed?.session.keyId)
  }

  get phase() {
    return this.state?.phase
  }

  /** The ids of the calls that the client has to answer. */
  get waiting(): string[] {
    return this.phase?.k === 'AwaitingTool' ? this.phase.calls.map(({ callId }) => callId) : []
  }

  /** The id of what waits for a decision; of no use when nothing does. */
  get batchId(): string {
    return (this.phase && pendingBatchId(this.phase)) ?? 'nothing waits'
  }

  /** The id of the question that is asked now; of no use when none is. */
  get questionId(): string {
    return (this.phase && openQuestion(this.phase)?.question.id) ?? 'nothing is asked'
  }

  get approvalId(): string {
    if (this.phase?.k !== 'AwaitingApproval') throw new Error('no approval is pending')
    return this.phase.approvalId
  }
}

type ContinueOptions = {
  digest?: string
  partial?: PartialAnswer | null
  localOnly?: boolean
  keyed?: readonly Provider[]
}

/** Who starts a run, and with what. */
type RunFields = {
  localOnly?: boolean
  policyDigest?: string | null
  driver?: Driver
  keyed?: readonly Provider[]
}

export const executeRequested = (
  text: string,
  command: TaskIntent | null,
  digest: string,
  { localOnly = false, policyDigest = 'sha256:p', driver = { kind: 'http' }, keyed }: RunFields = {},
): RunInputEvent => ({
  type: 'execute_requested',
  digest,
  text,
  command,
  driver,
  policyDigest,
  localOnly,
  ...(keyed === undefined ? {} : { keyed }),
})

type ResultFields = {
  content?: string
  is_error?: boolean
  decision?: 'approved' | 'rejected'
  driver_epoch?: number
}

const sealedWith = (encrypted: SealedMap | undefined) => (encrypted === undefined ? {} : { encrypted })

/** The same result for each call. */
export const results = (
  callIds: readonly string[],
  fields: ResultFields = {},
  encrypted?: SealedMap,
): ContinueRequest => ({
  type: 'tool_results',
  data: {
    results: callIds.map((id) => ({ call_id: id, content: 'out', is_error: false, ...fields })),
    ...sealedWith(encrypted),
  },
})

export const decision = (
  approvalId: string,
  decided: 'approved' | 'rejected',
  { reason, encrypted }: { reason?: string; encrypted?: SealedMap } = {},
): ContinueRequest => ({
  type: 'approval_decisions',
  data: {
    decisions: [{ approval_id: approvalId, decision: decided, ...(reason === undefined ? {} : { reason }) }],
    ...sealedWith(encrypted),
  },
})

export const revocation = (grantId: string): RunInputEvent => ({ type: 'grant_revoked', grantId })

export const inject = (...texts: string[]): ContinueRequest => ({
  type: 'inject',
  data: { messages: texts.map((text) => ({ text })) },
})

export const BREAK: ContinueRequest = { type: 'break' }

export const effectsOf = (result: { effects: Effect[] }): Effect['e'][] => result.effects.map(({ e }) => e)
