import type { ApprovalDecision, ToolResult } from '../protocol/execution/continue.ts'
import type { ToolRequest } from '../protocol/execution/turn.ts'
import type { RunEvent } from './drive.ts'
import type { Asked, PauseWatch } from './pause-watch.ts'
import type { Approver, Decision, ToolOutcome, ToolRunner } from './tool-runner.ts'

/** Runs the calls of one run, each once, and remembers what came of them (EC 29.7, U24). */
export class CallRunner {
  readonly #tools: ToolRunner
  readonly #approver: Approver
  readonly #signal: AbortSignal
  readonly #results = new Map<string, ToolResult>()

  constructor(tools: ToolRunner, approver: Approver, signal: AbortSignal) {
    this.#tools = tools
    this.#approver = approver
    this.#signal = signal
  }

  /** Whether every one of the calls has been answered. */
  hasAnswered(calls: readonly ToolRequest[]): boolean {
    return calls.every((call) => this.#results.has(call.call_id))
  }

  /**
   * The results of all calls of a pause in their order; when the signal fires, or the run has moved on without them, of
   * those before it.
   * @param shorten to what can be sent together; the same is sent when they are asked for again
   * @param watch what devices do about the pause meanwhile
   */
  async *answer(
    calls: readonly ToolRequest[],
    shorten: (results: readonly ToolResult[]) => ToolResult[],
    watch?: PauseWatch,
  ): AsyncGenerator<RunEvent, ToolResult[], undefined> {
    const results: ToolResult[] = []
    for (const call of uniqueCalls(calls)) {
      const known = this.#results.get(call.call_id)
      const result = known ? withEpoch(known, call) : yield* this.#run(call, watch)
      if (this.#signal.aborted || watch?.moved.aborted || result === undefined) break
      this.#results.set(call.call_id, result)
      results.push(result)
    }
    const sent = shorten(results)
    for (const result of sent) this.#results.set(result.call_id, result)
    return sent
  }

  /** Undefined: the run does not wait for it any more. */
  async *#run(
    call: ToolRequest,
    watch: PauseWatch | undefined,
  ): AsyncGenerator<RunEvent, ToolResult | undefined, undefined> {
    const asked = await this.#decisionOn(call, watch)
    if (asked.by === 'device') {
      if (asked.decision === 'moved') return undefined
      // Of a decline the end of the call tells.
      if (asked.decision !== 'rejected')
        yield { type: 'settled_elsewhere', what: 'call', decision: asked.decision }
    }
    if (asked.by === 'device' && asked.decision === 'answered') return yield* answeredElsewhere(call)
    const decision = asked.by === 'here' ? asked.value : DEVICE_DECISIONS[asked.decision]
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
    const done = await this.#carryOut(call, watch)
    if (done.by === 'device') {
      if (done.decision !== 'answered') return undefined
      yield { type: 'settled_elsewhere', what: 'call', decision: 'answered' }
      return yield* answeredElsewhere(call)
    }
    const outcome = done.value
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

  async #carryOut(call: ToolRequest, watch: PauseWatch | undefined): Promise<Asked<ToolOutcome>> {
    if (this.#signal.aborted)
      return { by: 'here', value: { content: 'Stopped before it ran.', isError: true } }
    if (!watch) return { by: 'here', value: await this.#tools.run(call, this.#signal) }
    const isQuestion = this.#tools.asksUser?.(call) ?? false
    let ended: Promise<unknown> = Promise.resolve()
    const asked = await watch.ask(
      call.call_id,
      (signal) => {
        const outcome = this.#tools.run(call, AbortSignal.any([this.#signal, signal]))
        ended = outcome.catch(() => undefined)
        return outcome
      },
      { accepts: () => false, isQuestion },
    )
    // A tool that is cut has ended before the next thing is done.
    await ended
    return asked
  }

  /** A device's `rejected` stands; whether its `approved` spares the question here, this machine says (D46). */
  async #decisionOn(call: ToolRequest, watch: PauseWatch | undefined): Promise<Asked<Decision | undefined>> {
    if (call.decision === 'rejected') return { by: 'device', decision: 'rejected' }
    if (call.requires_approval === 'allow') return { by: 'here', value: undefined }
    const suffices = this.#approver.acceptsDevice?.(call) ?? false
    if (call.decision === 'approved' && suffices) return { by: 'device', decision: 'approved' }
    const approve = (signal: AbortSignal) =>
      this.#approver.approveTool(call, AbortSignal.any([this.#signal, signal]))
    if (!watch) return { by: 'here', value: await this.#approver.approveTool(call, this.#signal) }
    return watch.ask(call.call_id, approve, {
      accepts: (decision) => decision === 'rejected' || suffices,
    })
  }
}

/** What a device has decided, as an answer of this machine. */
export const DEVICE_DECISIONS: Readonly<Record<ApprovalDecision, Decision>> = {
  approved: { decision: 'approved' },
  rejected: { decision: 'rejected', reason: 'Declined on another device.' },
}

/** The router has the answer, and ignores what is said of it here (D05). */
async function* answeredElsewhere(call: ToolRequest): AsyncGenerator<RunEvent, ToolResult, undefined> {
  const content = 'Answered on another device.'
  const result = withEpoch({ call_id: call.call_id, content, is_error: false }, call)
  yield { type: 'tool_finished', call, result, summary: 'answered on another device' }
  return result
}

/** Results carry the epoch of the request that they answer, so that an older driver can be told (D05, U17). */
function withEpoch(result: ToolResult, call: ToolRequest): ToolResult {
  return call.driver_epoch === undefined ? result : { ...result, driver_epoch: call.driver_epoch }
}

function uniqueCalls(calls: readonly ToolRequest[]): ToolRequest[] {
  return [...new Map(calls.map((call) => [call.call_id, call])).values()]
}
