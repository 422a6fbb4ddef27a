import type { UserMessage } from '../../protocol/execution/continue.ts'
import { failure } from '../../protocol/execution/errors.ts'
import type { EndedRun } from '../../protocol/execution/turn.ts'
import { acquire, isResend, serveNext, userMessage, withTraces } from './begin.ts'
import { idle } from './envelope.ts'
import { eventTurnId } from './events.ts'
import type { Partial, RunInputEvent } from './inputs.ts'
import { pendingBatchId } from './pending.ts'
import { isOver, type RunState } from './state.ts'
import type { Refusal, Step, StepContext } from './step.ts'
import { givenUp, supersede } from './supersede.ts'

type Continuation = Extract<RunInputEvent, { type: 'continuation_received' }>

/**
 * `break`: always accepted; the run goes idle, and the answer says what was ended. One that names a run ends that run
 * and no other (U26).
 */
export function stop(
  state: RunState,
  target: string | undefined,
  { partial }: Continuation,
  context: StepContext,
): Step | Refusal {
  if (target !== undefined && target !== state.runId) {
    return {
      refused: failure('invalid_request', 'the run to stop is not the run of this session any more', {
        run_id: state.runId,
      }),
    }
  }
  if (isOver(state) && state.phase.k === 'Idle') {
    const outcome = idle(state.traceId)
    return { state, writes: [], events: [], effects: [], reply: { by: 'outcome', outcome } }
  }
  return cancelRun(state, partial, context)
}

/**
 * Ends the run, whatever it does; the answer says what was ended. `declined`: by declining the calls that wait for a
 * decision (RF 19).
 */
export function cancelRun(
  state: RunState,
  partial: Partial | null,
  context: StepContext,
  { declined = false } = {},
): Step {
  const ended = supersede(state, partial, declined ? 'declined' : 'stopped', context)
  const turnId = state.active?.turnId ?? state.checkpointTurnId
  const next: Step = {
    state: {
      ...state,
      phase: { k: 'Idle' },
      active: null,
      unsettled: null,
      planning: false,
      checkpointTurnId: null,
    },
    writes: ended.writes,
    events: [...ended.events, ...givenUp(state)],
    effects: ended.effects,
  }
  const traced = turnId === null ? next : withTraces(next, turnId, ended.payloads, context)
  return { ...traced, reply: { by: 'outcome', outcome: idle(traced.state.traceId, endedBy(state)) } }
}

function endedBy({ runId, active, phase }: RunState): EndedRun {
  const calls = phase.k === 'AwaitingTool' ? phase.calls.filter(({ settled }) => !settled) : []
  return {
    run_id: runId,
    interrupted: active !== null,
    tool_calls: calls.map(({ callId }) => callId),
    ...(phase.k === 'AwaitingApproval' && pendingBatchId(phase) !== null
      ? { approval_id: phase.approvalId }
      : {}),
  }
}

/** `inject`: always accepted; the texts become the newest user input and the next turn runs (EC 15). */
export function inject(
  state: RunState,
  messages: UserMessage[],
  { digest, partial, localOnly }: Continuation,
  context: StepContext,
): Step {
  const active = acquire(context)
  if (state.unsettled?.kind === 'inject' && isResend(state, digest)) {
    return serveNext({ ...state, active }, [], [], state.turn)
  }
  const ended = supersede(state, partial, 'new_input', context)
  const fresh = isOver(state)
  const runId = fresh ? context.newId() : state.runId
  const messageId = context.newId()
  const text = messages.map((message) => message.text).join('\n')
  const turn = fresh ? 1 : state.turn + 1
  const { localDeclined, costs, keyed, deviceSettled, ...rest } = state
  const next: RunState = {
    ...rest,
    runId,
    turn,
    phase: { k: 'Idle' },
    active,
    unsettled: { digest, kind: 'inject' },
    planning: fresh ? false : state.planning,
    unattendedRounds: 0,
    promptTraced: false,
    checkpointTurnId: null,
    ...(fresh
      ? {
          driverEpoch: state.driverEpoch + 1,
          planApproved: false,
          planVersion: 0,
          remoteDeclined: false,
          disclosed: [],
        }
      : {
          ...(localDeclined === undefined ? {} : { localDeclined }),
          ...(costs === undefined ? {} : { costs }),
          ...(keyed === undefined ? {} : { keyed }),
          ...(deviceSettled === undefined ? {} : { deviceSettled }),
        }),
  }
  const result = serveNext(
    next,
    [
      ...ended.writes,
      ...(fresh ? [{ w: 'injected_input' as const }] : []),
      userMessage(messageId, runId, text, localOnly || next.remoteDeclined),
    ],
    [
      ...ended.events,
      fresh
        ? { type: 'turn_started', turnId: eventTurnId(runId), messageId, prompt: text }
        : { type: 'input_injected', turnId: eventTurnId(runId), messageId, prompt: text },
    ],
    turn,
  )
  return withTraces(
    { ...result, effects: [...ended.effects, ...result.effects] },
    active.turnId,
    ended.payloads,
    context,
  )
}
