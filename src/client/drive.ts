import type { ContinueRequest, ToolResult } from '../protocol/execution/continue.ts'
import type { ExecuteRequest } from '../protocol/execution/execute.ts'
import type { TurnEvent } from '../protocol/execution/stream.ts'
import type { CompletedTurn, PendingApproval, ToolRequest } from '../protocol/execution/turn.ts'
import { err, ok, type Result } from '../protocol/result.ts'
import type { SwitchyardClient } from './client.ts'
import type { ClientFailure } from './failure.ts'
import type { Approver, Decision, ToolOutcome, ToolRunner } from './tool-runner.ts'
import type { OnReconnect, StreamEvent } from './turn-stream.ts'

/** How a run ended. `stopped` = by our own signal; without it a gate was rejected or another device stopped it. */
export type RunOutcome =
  | { status: 'completed'; turn: CompletedTurn }
  | { status: 'idle'; stopped: boolean }
  | { status: 'error'; failure: ClientFailure }

type TurnEnd = Extract<TurnEvent, { type: 'turn_end' }>

/** The progress of a run: the wire's own events, what is done on this machine, and exactly one `run_ended` at the end. */
export type RunEvent =
  | Exclude<StreamEvent, { type: 'failed' }>
  | { type: 'tool_started'; call: ToolRequest }
  | { type: 'tool_finished'; call: ToolRequest; result: ToolResult; summary?: string }
  | { type: 'gate_decided'; approval: PendingApproval; decision: Decision }
  | { type: 'run_ended'; outcome: RunOutcome }

export type DriveOptions = {
  client: Pick<SwitchyardClient, 'executeStream' | 'continueStream' | 'currentRunStream'>
  sessionId: string
  request: ExecuteRequest
  tools: ToolRunner
  approver: Approver
  /** Stops the run: the tool at work is ended and the router told to `break`. */
  signal?: AbortSignal
  onReconnect?: OnReconnect
}

/** A router that lost a turn asks for the same results again; one that never takes them is broken. */
const MAX_RESENDS = 3
/** How long the router may take to confirm a `break`; stopping must not hang. */
const BREAK_TIMEOUT_MS = 10_000

const NO_KEY = 'this session is end-to-end encrypted and this client holds no key for it'

/**
 * Carries one prompt to its end (execution protocol, "The turn loop"): starts the run, answers its pauses, and never
 * runs a call twice, whether it comes in an event, in `turn_end` or again after a crash (EC 29.7, U24).
 */
export async function* driveRun(options: DriveOptions): AsyncGenerator<RunEvent, void, undefined> {
  const outcome = yield* new Drive(options).run()
  yield { type: 'run_ended', outcome }
}

/** What the driver does after a pause: send a message, or end. */
type Next = { send: ContinueRequest } | { outcome: RunOutcome }

class Drive {
  readonly #options: DriveOptions
  readonly #signal: AbortSignal
  readonly #results = new Map<string, ToolResult>()
  readonly #decisions = new Map<string, Decision>()
  #resends = 0
  /** Whether text was shown since the last `turn_end`. */
  #midText = false

  constructor(options: DriveOptions) {
    this.#options = options
    this.#signal = options.signal ?? new AbortController().signal
  }

  async *run(): AsyncGenerator<RunEvent, RunOutcome, undefined> {
    const { client, sessionId, request } = this.#options
    if (this.#signal.aborted) return { status: 'idle', stopped: true }
    let stream = client.executeStream(sessionId, request, this.#streamOptions())
    /** The refusal of a continuation, while the run's present state is being looked up. */
    let refusal: ClientFailure | undefined
    for (let continued = false; ; continued = true) {
      const followed = yield* this.#follow(stream)
      // A run that is over needs no stopping, whenever the signal came.
      if (this.#signal.aborted && !(followed.ok && isOver(followed.value))) return yield* this.#stop()
      if (!followed.ok) {
        if (!continued || refusal || !maySettle(followed.error)) return failedWith(followed.error)
        // Another device may have moved the run on: its present state decides, not our refused message (D05).
        refusal = followed.error
        stream = client.currentRunStream(sessionId, this.#streamOptions())
        continue
      }
      if (refusal && this.#isRepeatedPause(followed.value)) return failedWith(refusal)
      refusal = undefined
      if (this.#isRepeatedPause(followed.value) && ++this.#resends > MAX_RESENDS)
        return failedWith({
          kind: 'network',
          message: 'the router keeps asking for answers that it was given',
        })
      const next = yield* this.#answer(followed.value)
      if (this.#signal.aborted && !('outcome' in next)) return yield* this.#stop()
      if ('outcome' in next) return next.outcome
      stream = client.continueStream(sessionId, next.send, this.#streamOptions())
    }
  }

  #streamOptions() {
    const { onReconnect } = this.#options
    return { signal: this.#signal, ...(onReconnect ? { onReconnect } : {}) }
  }

  async *#follow(
    stream: AsyncGenerator<StreamEvent>,
  ): AsyncGenerator<RunEvent, Result<TurnEnd, ClientFailure>, undefined> {
    for await (const event of stream) {
      if (event.type === 'failed') return err(event.failure)
      if (event.type === 'text_delta' || event.type === 'reasoning_delta') this.#midText = true
      if (event.type === 'turn_restarted') this.#midText = false
      if (event.type === 'turn_end') {
        if (this.#midText && this.#isRepeatedPause(event)) yield { type: 'turn_restarted' }
        this.#midText = false
        yield event
        return ok(event)
      }
      yield event
    }
    return err({ kind: 'network', message: 'the stream ended without turn_end' })
  }

  async *#answer(end: TurnEnd): AsyncGenerator<RunEvent, Next, undefined> {
    switch (end.status) {
      case 'completed':
        if (end.data.to_encrypt) return { outcome: failedWith({ kind: 'unsupported', message: NO_KEY }) }
        return { outcome: { status: 'completed', turn: end.data } }
      case 'idle':
        return { outcome: { status: 'idle', stopped: this.#signal.aborted } }
      case 'error': {
        const { code, message, details } = end.data.error
        return { outcome: failedWith({ kind: 'turn', code, message, ...(details ? { details } : {}) }) }
      }
      case 'awaiting_tool':
        return yield* this.#runTools(end)
      case 'awaiting_approval':
        return yield* this.#decideGate(end.data.approval)
      case 'awaiting_decrypt':
      case 'awaiting_encrypt':
        return { outcome: failedWith({ kind: 'unsupported', message: NO_KEY }) }
    }
  }

  async *#runTools(
    end: Extract<TurnEnd, { status: 'awaiting_tool' }>,
  ): AsyncGenerator<RunEvent, Next, undefined> {
    const calls = uniqueCalls(end.data.tool_requests)
    const results: ToolResult[] = []
    for (const call of calls) {
      const known = this.#results.get(call.call_id)
      const result = known ? withEpoch(known, call) : yield* this.#runTool(call)
      if (this.#signal.aborted) break
      this.#results.set(call.call_id, result)
      results.push(result)
    }
    return { send: { type: 'tool_results', data: { results } } }
  }

  async *#runTool(call: ToolRequest): AsyncGenerator<RunEvent, ToolResult, undefined> {
    const { tools, approver } = this.#options
    const decision = await this.#decisionOn(call, approver)
    if (decision?.decision === 'rejected') {
      const content = decision.reason ?? 'The user declined this call.'
      const result: ToolResult = withEpoch(
        { call_id: call.call_id, content, is_error: true, decision: 'rejected' },
        call,
      )
      yield { type: 'tool_finished', call, result }
      return result
    }
    if (!this.#signal.aborted) yield { type: 'tool_started', call }
    const outcome: ToolOutcome = this.#signal.aborted
      ? { content: 'Stopped before it ran.', isError: true }
      : await tools.run(call, this.#signal)
    const result: ToolResult = withEpoch(
      {
        call_id: call.call_id,
        content: outcome.content,
        is_error: outcome.isError,
        ...(decision ? { decision: decision.decision } : {}),
      },
      call,
    )
    const { summary } = outcome
    yield { type: 'tool_finished', call, result, ...(summary === undefined ? {} : { summary }) }
    return result
  }

  /** A device's `rejected` stands; its `approved` does not spare the question on this machine (D46). */
  async #decisionOn(call: ToolRequest, approver: Approver): Promise<Decision | undefined> {
    if (call.decision === 'rejected') return { decision: 'rejected', reason: 'Declined on another device.' }
    if (call.requires_approval === 'allow') return undefined
    return approver.approveTool(call, this.#signal)
  }

  async *#decideGate(approval: PendingApproval): AsyncGenerator<RunEvent, Next, undefined> {
    const known = this.#decisions.get(approval.approval_id)
    const decision = known ?? (await this.#options.approver.decideGate(approval, this.#signal))
    if (!known && !this.#signal.aborted) {
      this.#decisions.set(approval.approval_id, decision)
      yield { type: 'gate_decided', approval, decision }
    }
    const entry = { approval_id: approval.approval_id, ...decision }
    return { send: { type: 'approval_decisions', data: { decisions: [entry] } } }
  }

  /** Tells the router to stop. A run that it never heard of is stopped as well. */
  async *#stop(): AsyncGenerator<RunEvent, RunOutcome, undefined> {
    const { client, sessionId } = this.#options
    const signal = AbortSignal.timeout(BREAK_TIMEOUT_MS)
    const followed = yield* this.#follow(client.continueStream(sessionId, { type: 'break' }, { signal }))
    if (followed.ok) {
      if (followed.value.status === 'awaiting_encrypt')
        return failedWith({ kind: 'unsupported', message: NO_KEY })
      return { status: 'idle', stopped: true }
    }
    const { error } = followed
    if (error.kind === 'http' && error.code === 'invalid_request') return { status: 'idle', stopped: true }
    return failedWith(
      error.kind === 'aborted' ? { kind: 'network', message: 'the router did not confirm the stop' } : error,
    )
  }

  /**
   * A pause that was answered before: the router lost the turn that followed, or refused the answer and still stands
   * where it stood.
   */
  #isRepeatedPause(end: TurnEnd): boolean {
    if (end.status === 'awaiting_approval') return this.#decisions.has(end.data.approval.approval_id)
    return (
      end.status === 'awaiting_tool' &&
      end.data.tool_requests.every((call) => this.#results.has(call.call_id))
    )
  }
}

const failedWith = (failure: ClientFailure): RunOutcome => ({ status: 'error', failure })

const isOver = ({ status }: TurnEnd): boolean =>
  status === 'completed' || status === 'idle' || status === 'error'

/** Refusals that another device's doing explains: a turn is being served, or the pause was settled. */
const maySettle = (failure: ClientFailure): boolean =>
  failure.kind === 'http' && (failure.code === 'run_in_flight' || failure.code === 'invalid_request')

/** Results carry the epoch of the request that they answer, so that an older driver can be told (D05, U17). */
function withEpoch(result: ToolResult, call: ToolRequest): ToolResult {
  return call.driver_epoch === undefined ? result : { ...result, driver_epoch: call.driver_epoch }
}

function uniqueCalls(calls: readonly ToolRequest[]): ToolRequest[] {
  return [...new Map(calls.map((call) => [call.call_id, call])).values()]
}
