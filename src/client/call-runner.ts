import type { ToolResult } from '../protocol/execution/continue.ts'
import type { ToolRequest } from '../protocol/execution/turn.ts'
import type { RunEvent } from './drive.ts'
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
   * The results of all calls of a pause in their order; when the signal fires, of those before it.
   * @param shorten to what can be sent together; the same is sent when they are asked for again
   */
  async *answer(
    calls: readonly ToolRequest[],
    shorten: (results: readonly ToolResult[]) => ToolResult[],
  ): AsyncGenerator<RunEvent, ToolResult[], undefined> {
    const results: ToolResult[] = []
    for (const call of uniqueCalls(calls)) {
      const known = this.#results.get(call.call_id)
      const result = known ? withEpoch(known, call) : yield* this.#run(call)
      if (this.#signal.aborted) break
      this.#results.set(call.call_id, result)
      results.push(result)
    }
    const sent = shorten(results)
    for (const result of sent) this.#results.set(result.call_id, result)
    return sent
  }

  async *#run(call: ToolRequest): AsyncGenerator<RunEvent, ToolResult, undefined> {
    const decision = await this.#decisionOn(call)
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
      : await this.#tools.run(call, this.#signal)
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
  async #decisionOn(call: ToolRequest): Promise<Decision | undefined> {
    if (call.decision === 'rejected') return { decision: 'rejected', reason: 'Declined on another device.' }
    if (call.requires_approval === 'allow') return undefined
    return this.#approver.approveTool(call, this.#signal)
  }
}

/** Results carry the epoch of the request that they answer, so that an older driver can be told (D05, U17). */
function withEpoch(result: ToolResult, call: ToolRequest): ToolResult {
  return call.driver_epoch === undefined ? result : { ...result, driver_epoch: call.driver_epoch }
}

function uniqueCalls(calls: readonly ToolRequest[]): ToolRequest[] {
  return [...new Map(calls.map((call) => [call.call_id, call])).values()]
}
