import { failure } from '../../protocol/execution/errors.ts'
import type { Payload } from '../../protocol/execution/trace.ts'
import type { ToolRequest, TurnResponse } from '../../protocol/execution/turn.ts'
import type { MediatedCall } from '../mediate.ts'
import { withTraces } from './begin.ts'
import { costPayloads } from './costs.ts'
import { awaitingApproval, awaitingDecrypt, awaitingTool, completed, failed, gateDetail } from './envelope.ts'
import { eventTurnId, type RunEvent } from './events.ts'
import type { RunInputEvent, TurnReport } from './inputs.ts'
import { isUndecided, openQuestion } from './pending.ts'
import { saidBy, saying } from './saying.ts'
import { type LastRoute, passedGate, type RunState, type Serving, type ToolWait } from './state.ts'
import type { Step, StepContext } from './step.ts'
import type { NewCall, TracePayload, Write } from './writes.ts'

type Input<Type extends RunInputEvent['type']> = Extract<RunInputEvent, { type: Type }>

/** A model that only asks for what the router itself answers is stopped after this many rounds (EC 6). */
export const MAX_UNATTENDED_ROUNDS = 8

const routeOf = ({ classification, routing }: TurnReport): LastRoute => ({
  taskType: classification.intent,
  provider: routing.provider,
  model: routing.model,
  ...(routing.matched_rule == null ? {} : { matchedRule: routing.matched_rule }),
})

/** The turn is decided: it is written down, then either the model is called or somebody is asked first (EC 13). */
export function resolved(
  state: RunState,
  { turnId }: Serving,
  { report, traces, gate, failed, call, failedCall }: Input<'turn_resolved'>,
  context: StepContext,
): Step {
  // Behind a gate another model may be the one that the prompt goes to, or none.
  const sends = gate === null
  const decided: RunState = {
    ...state,
    lastRoute: routeOf(report),
    promptTraced: state.promptTraced || sends,
  }
  const { provider, model } = report.routing
  const told: TracePayload[] = [
    ...(failedCall ? costPayloads(failedCall) : []),
    ...traces,
    ...(sends && !state.promptTraced
      ? [{ type: 'message' as const, role: 'user' as const, provider, model }]
      : []),
  ]
  const before: Write[] = failedCall ? [{ w: 'call_settled', turnId, call: failedCall }] : []
  if (sends) {
    return withTraces(
      {
        state: decided,
        writes: [...before, { w: 'call', turnId, call }],
        events: [],
        effects: [],
      },
      turnId,
      told,
      context,
    )
  }
  const approvalId = context.newId()
  const paused: RunState = {
    ...decided,
    phase: {
      k: 'AwaitingApproval',
      approvalId,
      kind: gate.kind,
      ...(gate.kind === 'remote_disclosure' ? { disclosure: gate.disclosure } : { cost: gate.cost }),
      decided: null,
      ...(failed === undefined || failed.length === 0 ? {} : { failed }),
      resume: 'Invoke',
    },
    active: null,
    unsettled: null,
    checkpointTurnId: turnId,
  }
  const events: RunEvent[] = [{ type: 'approval_requested', approvalId }]
  const traced = withTraces({ state: paused, writes: before, events, effects: [] }, turnId, told, context)
  const approval = { approval_id: approvalId, kind: gate.kind, detail: gateDetail(gate) }
  return close(traced, turnId, 'done', awaitingApproval(approval, traced.state.traceId))
}

/** Sealed content has to be opened first: the lock goes, the pause names what is needed (EC 17.3). */
export function pauseForDecryption(
  state: RunState,
  { turnId }: Serving,
  { toDecrypt }: Input<'decryption_needed'>,
): Step {
  const gate = passedGate(state)
  const paused: RunState = {
    ...state,
    phase: {
      k: 'AwaitingDecrypt',
      records: Object.keys(toDecrypt),
      ...(gate === null ? {} : { gate }),
      resume: 'BuildPrompt',
    },
    active: null,
    unsettled: null,
    checkpointTurnId: turnId,
  }
  const outcome = awaitingDecrypt(toDecrypt, state.traceId)
  return close({ state: paused, writes: [], events: [], effects: [] }, turnId, 'done', outcome)
}

/** The model has answered: the run completes, waits for the client, or the model is asked again (EC 6). */
export function finishResponse(
  state: RunState,
  serving: Serving,
  input: Input<'model_responded'>,
  context: StepContext,
): Step {
  const { turnId } = serving
  const { report, call } = input
  const routed: RunState = { ...state, lastRoute: routeOf(report) }
  const answered: Write[] = [{ w: 'call_settled', turnId, call }]
  const costs = costPayloads(call)
  const says = saidBy(call)
  if (input.calls.length === 0) {
    return state.planning
      ? planMade(routed, serving, input, answered, [says, ...costs], context)
      : runCompleted(routed, serving, input, answered, [says, ...costs], context)
  }
  const calls = input.calls.map((mediated) => ({ mediated, id: context.newId() }))
  const message = saying(state.runId, input.text, call, context, {
    calls: calls.map(({ mediated, id }) => newCall(mediated, id)),
  })
  const writes: Write[] = [...answered, message, ...memoryWrites(input.calls, context)]
  const events = calls.flatMap(({ mediated, id }) => callEvents(mediated, id))
  const payloads: Payload[] = [says, ...calls.map(({ mediated }) => callPayload(mediated)), ...costs]
  const waits = calls.flatMap(({ mediated, id }) => toolWait(mediated, id, context))
  if (waits.length === 0) return askAgain(routed, serving, writes, events, payloads, context)
  const requests: ToolRequest[] = calls.flatMap(({ mediated, id }) =>
    mediated.to === 'client'
      ? [
          {
            call_id: id,
            name: mediated.call.name,
            arguments: mediated.call.arguments,
            requires_approval: mediated.requiresApproval,
            driver_epoch: state.driverEpoch,
          },
        ]
      : [],
  )
  const batchId = waits.some(isUndecided) ? context.newId() : undefined
  const phase: RunState['phase'] = {
    k: 'AwaitingTool',
    calls: waits,
    ...(batchId === undefined ? {} : { batchId }),
    resume: 'NextTurn',
  }
  if (batchId !== undefined) events.push({ type: 'approval_requested', approvalId: batchId })
  const asked = openQuestion(phase)
  if (asked !== null) events.push({ type: 'question_requested', questionId: asked.question.id })
  const paused: RunState = {
    ...routed,
    phase,
    active: null,
    unsettled: null,
    unattendedRounds: 0,
    checkpointTurnId: turnId,
  }
  const traced = withTraces({ state: paused, writes, events, effects: [] }, turnId, payloads, context)
  return close(traced, turnId, 'done', awaitingTool(requests, traced.state.traceId))
}

/** Every call was answered by the router: the model is invoked again in the same turn, a bounded number of times. */
function askAgain(
  state: RunState,
  { lease, turnId }: Serving,
  writes: Write[],
  events: RunEvent[],
  payloads: Payload[],
  context: StepContext,
): Step {
  const rounds = state.unattendedRounds + 1
  if (rounds >= MAX_UNATTENDED_ROUNDS) {
    const stuck = failure(
      'provider_error',
      `the model asked ${rounds} times in a row for nothing but what the router answers by itself`,
      {
        rounds,
      },
    )
    return ended(state, turnId, failed(stuck), writes, events, payloads, context)
  }
  return withTraces(
    { state: { ...state, unattendedRounds: rounds }, writes, events, effects: [{ e: 'serve_turn', lease }] },
    turnId,
    payloads,
    context,
  )
}

function runCompleted(
  state: RunState,
  { turnId }: Serving,
  { text, ending, report, call, usage }: Input<'model_responded'>,
  writes: Write[],
  payloads: Payload[],
  context: StepContext,
): Step {
  const message = saying(state.runId, text, call, context)
  const next: RunState = {
    ...state,
    phase: { k: 'Idle' },
    active: null,
    unsettled: null,
    unattendedRounds: 0,
    checkpointTurnId: turnId,
  }
  const events: RunEvent[] = [
    { type: 'turn_finished', turnId: eventTurnId(state.runId), outcome: 'completed' },
  ]
  const traced = withTraces(
    { state: next, writes: [...writes, message], events, effects: [] },
    turnId,
    payloads,
    context,
  )
  return close(traced, turnId, 'done', completed(text, ending, report, usage, traced.state.traceId))
}

/** A planning turn that ends without calls is a plan to be approved; it stays in the transcript as well (EC 14). */
function planMade(
  state: RunState,
  { turnId }: Serving,
  { text, ending, call }: Input<'model_responded'>,
  writes: Write[],
  payloads: Payload[],
  context: StepContext,
): Step {
  if (text.trim() === '') {
    const silent = failure('provider_error', 'the model ended its planning without a plan')
    return ended(state, turnId, failed(silent), writes, [], payloads, context)
  }
  const planId = context.newId()
  const approvalId = context.newId()
  const version = (state.planVersion ?? 0) + 1
  const message = saying(state.runId, text, call, context)
  const next: RunState = {
    ...state,
    phase: {
      k: 'AwaitingApproval',
      approvalId,
      kind: 'plan',
      planId,
      decided: null,
      resume: 'NextTurn',
    },
    active: null,
    unsettled: null,
    unattendedRounds: 0,
    planVersion: version,
    checkpointTurnId: turnId,
  }
  const traced = withTraces(
    {
      state: next,
      writes: [...writes, message, { w: 'plan', id: planId, version, content: text }],
      events: [{ type: 'approval_requested', approvalId }],
      effects: [],
    },
    turnId,
    payloads,
    context,
  )
  const detail = {
    plan: planId,
    version,
    content: text,
    ...(ending === null ? {} : { ending }),
  }
  const approval = { approval_id: approvalId, kind: 'plan' as const, detail }
  return close(traced, turnId, 'done', awaitingApproval(approval, traced.state.traceId))
}

/** A turn that failed ends its run (EC 5.7). What had been said is kept as interrupted (D24). */
export function finishFailure(
  state: RunState,
  { turnId }: Serving,
  { failure: cause, partial, call, told }: Input<'turn_failed'>,
  context: StepContext,
): Step {
  const writes: Write[] = []
  const payloads: TracePayload[] = []
  if (partial && partial.text.trim() !== '') {
    writes.push(saying(state.runId, partial.text, partial.call, context, { interrupted: true }))
    payloads.push(saidBy(partial.call))
  }
  if (call) {
    writes.push({ w: 'call_settled', turnId, call })
    payloads.push(...costPayloads(call))
  }
  if (told) payloads.push(...told.traces)
  const routed = told === undefined ? state : { ...state, lastRoute: told.route }
  return ended(routed, turnId, failed(cause), writes, [], payloads, context)
}

function ended(
  state: RunState,
  turnId: string,
  outcome: TurnResponse,
  writes: Write[],
  events: RunEvent[],
  payloads: TracePayload[],
  context: StepContext,
): Step {
  const next: RunState = {
    ...state,
    phase: { k: 'Idle' },
    active: null,
    unsettled: null,
    planning: false,
    unattendedRounds: 0,
    checkpointTurnId: turnId,
  }
  const finished: RunEvent = { type: 'turn_finished', turnId: eventTurnId(state.runId), outcome: 'failed' }
  const traced = withTraces(
    { state: next, writes, events: [...events, finished], effects: [] },
    turnId,
    payloads,
    context,
  )
  return close(traced, turnId, 'failed', outcome)
}

function close(result: Step, turnId: string, status: 'done' | 'failed', outcome: TurnResponse): Step {
  return {
    ...result,
    writes: [...result.writes, { w: 'close_turn', turnId, status, outcome }],
    effects: [...result.effects, { e: 'answer', turnId, outcome }],
  }
}

function newCall(mediated: MediatedCall, id: string): NewCall {
  const { providerCallId, name, arguments: args, opaque } = mediated.call
  return {
    id,
    ...(providerCallId === undefined ? {} : { providerCallId }),
    name,
    arguments: args,
    ...(opaque === undefined ? {} : { opaque }),
    recordsDiff: mediated.to === 'client' && mediated.recordsDiff,
    ...(mediated.to === 'client'
      ? {}
      : { answer: { result: mediated.result, isError: mediated.isError, refused: mediated.refused } }),
  }
}

/** What the router remembers is stored with the message that asked for it, or not at all (EC 16). */
const memoryWrites = (calls: readonly MediatedCall[], { newId }: StepContext): Write[] =>
  calls.flatMap((mediated) =>
    mediated.to === 'model' && mediated.memory !== undefined
      ? [{ w: 'memory' as const, id: newId(), op: mediated.memory }]
      : [],
  )

const toolWait = (mediated: MediatedCall, id: string, { newId }: StepContext): ToolWait[] =>
  mediated.to === 'client'
    ? [
        {
          callId: id,
          toolName: mediated.call.name,
          requiresApproval: mediated.requiresApproval,
          recordsDiff: mediated.recordsDiff,
          settled: false,
          ...(mediated.questions === undefined
            ? {}
            : {
                questions: Array.from({ length: mediated.questions }, () => ({ id: newId(), answer: null })),
              }),
        },
      ]
    : []

function callEvents(mediated: MediatedCall, id: string): RunEvent[] {
  const { name, arguments: args } = mediated.call
  if (mediated.to === 'client') {
    return [{ type: 'tool_started', id, name, arguments: args }]
  }
  return [
    { type: 'tool_started', id, name, arguments: args },
    { type: 'tool_finished', id, name, success: !mediated.isError, content: mediated.result },
  ]
}

/** Argument names and sizes, never their values (EC 19). */
function callPayload(mediated: MediatedCall): Payload {
  const { name, arguments: args } = mediated.call
  const sizes = Object.fromEntries(
    Object.entries(args).map(([key, value]) => [key, `${JSON.stringify(value)?.length ?? 0} characters`]),
  )
  const base = { type: 'tool_call' as const, tool_name: name, arguments: JSON.stringify(sizes) }
  if (mediated.to === 'client') return { ...base, status: 'pending' }
  return mediated.isError
    ? { ...base, status: 'failed', error: mediated.result }
    : { ...base, status: 'completed' }
}
