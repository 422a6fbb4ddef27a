import { failure } from '../../protocol/execution/errors.ts'
import type { Provider } from '../../protocol/execution/ids.ts'
import { eventTurnId, type RunEvent } from './events.ts'
import type { RunInputEvent } from './inputs.ts'
import { LEASE_MS, type RunState, type Serving } from './state.ts'
import type { Refusal, Step, StepContext } from './step.ts'
import { givenUp, recover, supersede } from './supersede.ts'
import { traceEntries, traceIdOf } from './trace.ts'
import type { TracePayload, Write } from './writes.ts'

/** The lock is held: a turn is being served and its lease has not run out (EC 5.3). */
export const isServing = (state: RunState, nowMs: number): boolean =>
  state.active !== null && nowMs < state.active.leaseUntilMs

/** A repeat of the request that a crash cut off before its first checkpoint (D20). */
export const isResend = (state: RunState, digest: string): boolean =>
  state.active === null && state.unsettled?.digest === digest

/** A fresh lock. */
export function acquire({ nowMs, newId }: StepContext): Serving {
  return { lease: newId(), turnId: newId(), startedAtMs: nowMs, leaseUntilMs: nowMs + LEASE_MS }
}

/** `execute`: starts a run. A pause that is outstanding is given up; a turn that is being served is not (EC 5.3). */
export function beginRun(
  state: RunState | null,
  input: Extract<RunInputEvent, { type: 'execute_requested' }>,
  context: StepContext,
): Step | Refusal {
  if (state && isServing(state, context.nowMs)) {
    return {
      refused: failure('run_in_flight', 'a turn of this session is being served; wait for it, or break it'),
    }
  }
  const expired = state?.active ? recover(state) : null
  const previous = expired?.state ?? state
  const active = acquire(context)
  if (previous && previous.unsettled?.kind === 'execute' && isResend(previous, input.digest)) {
    return {
      state: withKeyed({ ...previous, active }, input.keyed),
      writes: [
        ...(expired?.writes ?? []),
        { w: 'open_turn', turnId: active.turnId, runId: previous.runId, turn: previous.turn },
      ],
      events: expired?.events ?? [],
      effects: [...(expired?.effects ?? []), { e: 'serve_turn', lease: active.lease }],
      reply: { by: 'turn', turnId: active.turnId },
    }
  }
  const given = previous ? supersede(previous, null, 'new_run', context) : null
  const runId = context.newId()
  const messageId = context.newId()
  const begun: RunState = {
    v: 1,
    runId,
    turn: 1,
    phase: { k: 'Idle' },
    active,
    driver: input.driver,
    driverEpoch: (previous?.driverEpoch ?? 0) + 1,
    unsettled: { digest: input.digest, kind: 'execute' },
    ...(input.policyDigest === null ? {} : { policyDigest: input.policyDigest }),
    planning: input.command === 'plan',
    planApproved: false,
    remoteDeclined: false,
    disclosed: [],
    unattendedRounds: 0,
    lastRoute: previous?.lastRoute ?? null,
    promptTraced: false,
    traceId: `trace:${active.turnId}`,
    checkpointTurnId: null,
  }
  const next = withKeyed(begun, input.keyed)
  return withTraces(
    {
      state: next,
      writes: [
        ...(expired?.writes ?? []),
        ...(given?.writes ?? []),
        { w: 'run_input' },
        userMessage(messageId, runId, input.text, input.localOnly),
        { w: 'open_turn', turnId: active.turnId, runId, turn: 1 },
      ],
      events: [
        ...(expired?.events ?? []),
        ...(given?.events ?? []),
        ...(previous ? givenUp(previous) : []),
        { type: 'turn_started', turnId: eventTurnId(runId), messageId, prompt: input.text },
      ],
      effects: [
        ...(expired?.effects ?? []),
        ...(given?.effects ?? []),
        { e: 'serve_turn', lease: active.lease },
      ],
      reply: { by: 'turn', turnId: active.turnId },
    },
    active.turnId,
    given?.payloads ?? [],
    context,
  )
}

/** Notes the providers whose keys came with a request: what needs them waits for the driver (D06). */
export function withKeyed(state: RunState, keyed: readonly Provider[] = []): RunState {
  const known = state.keyed ?? []
  const fresh = keyed.filter((provider) => !known.includes(provider))
  return fresh.length === 0 ? state : { ...state, keyed: [...new Set([...known, ...fresh])] }
}

/** The user's words; those that no remote model was to hear are marked. */
export const userMessage = (id: string, runId: string, text: string, localOnly: boolean): Write => ({
  w: 'user_message',
  id,
  runId,
  text,
  ...(localOnly ? { localOnly: true as const } : {}),
})

/** Adds trace events under the run's latest route to a step; without a route yet there is nothing to trace under. */
export function withTraces(
  result: Step,
  turnId: string,
  payloads: TracePayload[],
  context: StepContext,
): Step {
  const { lastRoute } = result.state
  if (lastRoute === null || payloads.length === 0) return result
  const entries = traceEntries(payloads, lastRoute, context)
  const write: Write = { w: 'trace', turnId, entries }
  return {
    ...result,
    state: { ...result.state, traceId: traceIdOf(entries, result.state.traceId) },
    writes: [...result.writes, write],
  }
}

/** Opens the turn that `state.active` locks. */
export function serveNext(state: RunState, writes: Write[], events: RunEvent[], turn: number): Step {
  const { active } = state
  if (active === null) return { state, writes, events, effects: [] }
  return {
    state: { ...state, turn },
    writes: [...writes, { w: 'open_turn', turnId: active.turnId, runId: state.runId, turn }],
    events,
    effects: [{ e: 'serve_turn', lease: active.lease }],
    reply: { by: 'turn', turnId: active.turnId },
  }
}
