import { assertNever } from '../../protocol/assert.ts'
import type {
  ApprovalDecisionEntry,
  ContinueKind,
  ToolResult,
  UserMessage,
} from '../../protocol/execution/continue.ts'
import { failure } from '../../protocol/execution/errors.ts'
import type { PlainMap, SealedMap } from '../../protocol/execution/sealed.ts'
import type { Payload } from '../../protocol/execution/trace.ts'
import { acquire, isResend, isServing, withTraces } from './begin.ts'
import { idle } from './envelope.ts'
import { boundText, eventTurnId, type RunEvent } from './events.ts'
import type { Partial, RunInputEvent } from './inputs.ts'
import { type Disclosure, isOver, type PendingWrite, type RunPhase, type RunState } from './state.ts'
import type { Refusal, Step, StepContext } from './step.ts'
import { givenUp, recover, supersede } from './supersede.ts'
import type { Write } from './writes.ts'

const refuse = (message: string, details?: Record<string, unknown>): Refusal => ({
  refused: failure('invalid_request', message, details),
})

/**
 * `continue`: the admission table (EC 5.3), then one case per message. A message that does not fit the pause changes
 * nothing: the pause stays and can still be answered (EC 5.7).
 */
export function advance(
  before: RunState,
  { digest, message, partial }: Extract<RunInputEvent, { type: 'continuation_received' }>,
  context: StepContext,
): Step | Refusal {
  const serving = isServing(before, context.nowMs)
  const supersedes = message.type === 'inject' || message.type === 'break'
  if (serving && !supersedes) {
    return {
      refused: failure(
        'run_in_flight',
        'a turn of this session is being served; wait for it, inject, or break it',
      ),
    }
  }
  // A lock whose lease ran out is no turn any more; a superseding message ends that turn itself, unless it repeats the
  // request that the turn was started by.
  const lapsed = before.active !== null && !serving
  const expired = lapsed && (!supersedes || before.unsettled?.digest === digest) ? recover(before) : null
  const state = expired?.state ?? before
  const result = answer(state, digest, message, partial, context)
  if (expired === null || 'refused' in result) return result
  return {
    ...result,
    writes: [...expired.writes, ...result.writes],
    events: [...expired.events, ...result.events],
    effects: [...expired.effects, ...result.effects],
  }
}

function answer(
  state: RunState,
  digest: string,
  message: Extract<RunInputEvent, { type: 'continuation_received' }>['message'],
  partial: Partial | null,
  context: StepContext,
): Step | Refusal {
  switch (message.type) {
    case 'break':
      return stop(state, partial, context)
    case 'inject':
      return inject(state, digest, message.data.messages, partial, context)
    case 'tool_results':
      return toolResults(state, digest, message.data.results, message.data.encrypted, context)
    case 'approval_decisions':
      return decide(state, digest, message.data.decisions, message.data.encrypted, context)
    case 'decrypted':
      return decrypted(state, digest, message.data.plaintext, message.data.encrypted, context)
    case 'sealed':
      return sealed(state, message.data.encrypted)
    default:
      return assertNever(message)
  }
}

const doesNotFit = (kind: ContinueKind, phase: RunPhase): Refusal =>
  refuse(
    phase.k === 'Idle'
      ? `nothing is waiting for ${kind}: the run is idle`
      : `${kind} does not answer the current pause, ${phase.k}`,
    { phase: phase.k },
  )

/** `break`: always accepted; the run goes idle. */
function stop(state: RunState, partial: Partial | null, context: StepContext): Step {
  if (isOver(state) && state.phase.k === 'Idle') {
    const outcome = idle(state.traceId)
    return { state, writes: [], events: [], effects: [], reply: { by: 'outcome', outcome } }
  }
  const ended = supersede(state, partial, 'Cancelled by the user.', context)
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
  return { ...traced, reply: { by: 'outcome', outcome: idle(traced.state.traceId) } }
}

/** `inject`: always accepted; the texts become the newest user input and the next turn runs (EC 15). */
function inject(
  state: RunState,
  digest: string,
  messages: UserMessage[],
  partial: Partial | null,
  context: StepContext,
): Step {
  const active = acquire(context)
  if (state.unsettled?.kind === 'inject' && isResend(state, digest)) {
    return serveNext({ ...state, active }, [], [], state.turn)
  }
  const ended = supersede(state, partial, 'Cancelled: the user gave new input.', context)
  const fresh = isOver(state)
  const runId = fresh ? context.newId() : state.runId
  const messageId = context.newId()
  const text = messages.map((message) => message.text).join('\n')
  const turn = fresh ? 1 : state.turn + 1
  const next: RunState = {
    ...state,
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
          remoteDeclined: false,
          disclosed: [],
          costAccepted: false,
        }
      : {}),
  }
  const prompt = boundText(text)
  const result = serveNext(
    next,
    [
      ...ended.writes,
      ...(fresh ? [{ w: 'injected_input' as const }] : []),
      { w: 'user_message', id: messageId, runId, text },
    ],
    [
      ...ended.events,
      fresh
        ? { type: 'turn_started', turnId: eventTurnId(runId), messageId, prompt }
        : { type: 'input_injected', turnId: eventTurnId(runId), messageId, prompt },
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

/** Opens the turn that `state.active` locks. */
function serveNext(
  state: RunState,
  writes: Write[],
  events: RunEvent[],
  turn: number,
  plaintext?: PlainMap,
): Step {
  const { active } = state
  if (active === null) return { state, writes, events, effects: [] }
  return {
    state: { ...state, turn },
    writes: [...writes, { w: 'open_turn', turnId: active.turnId, runId: state.runId, turn }],
    events,
    effects: [{ e: 'serve_turn', lease: active.lease, ...(plaintext === undefined ? {} : { plaintext }) }],
    reply: { by: 'turn', turnId: active.turnId },
  }
}

/**
 * `tool_results`: every outstanding call exactly once (EC 12.4). A result that has been accepted stays as it is: what
 * repeats it after a crash is accepted and ignored (D05). The phase stays until the next checkpoint.
 */
function toolResults(
  state: RunState,
  digest: string,
  results: ToolResult[],
  encrypted: SealedMap | undefined,
  context: StepContext,
): Step | Refusal {
  const { phase } = state
  if (phase.k !== 'AwaitingTool') return doesNotFit('tool_results', phase)
  const answered = new Set<string>()
  for (const { call_id: callId, driver_epoch: epoch } of results) {
    if (answered.has(callId)) return refuse(`call ${callId} is answered twice`, { call_id: callId })
    answered.add(callId)
    if (!phase.calls.some((call) => call.callId === callId)) {
      return refuse(`call ${callId} is not outstanding`, { call_id: callId })
    }
    if (epoch !== undefined && epoch !== state.driverEpoch) {
      return refuse('the result comes from an earlier driver of this run', {
        call_id: callId,
        driver_epoch: state.driverEpoch,
      })
    }
  }
  const open = new Map(phase.calls.filter(({ settled }) => !settled).map((call) => [call.callId, call]))
  const missing = [...open.keys()].filter((callId) => !answered.has(callId))
  if (missing.length > 0) return refuse('every outstanding call needs a result', { missing })
  const unsealed = missingSeals(phase.pending, encrypted)
  if (unsealed.length > 0) return refuse('content is still unsealed', { missing: unsealed })
  const active = acquire(context)
  const writes: Write[] = sealedWrites(phase.pending, encrypted)
  const events: RunEvent[] = []
  const payloads: Payload[] = []
  for (const { call_id: callId, content, is_error: isError, decision } of results) {
    const name = open.get(callId)?.toolName
    if (name === undefined) continue
    writes.push({ w: 'settle_call', callId, isError, content })
    events.push({ type: 'tool_finished', id: callId, name, success: !isError, content: boundText(content) })
    payloads.push({ type: 'tool_call', tool_name: name, status: isError ? 'failed' : 'completed' })
    if (!decision) continue
    writes.push({ w: 'approval', id: context.newId(), targetType: 'tool_call', targetId: callId, decision })
    payloads.push({ type: 'approval', target_type: 'tool_call', target_id: callId, decision })
  }
  const next: RunState = {
    ...state,
    phase: { ...phase, calls: phase.calls.map((call) => ({ ...call, settled: true })) },
    active,
    unsettled: { digest, kind: 'tool_results' },
    unattendedRounds: 0,
  }
  // Results that were all known already are those of the turn that a crash cut off: it is served again.
  const turn = open.size === 0 ? state.turn : state.turn + 1
  return withTraces(serveNext(next, writes, events, turn), active.turnId, payloads, context)
}

/**
 * `approval_decisions`: the entry that names the pending approval counts, others are ignored (EC 13). The first decision
 * stands: what comes after a crash goes on with it, whatever it says (D05).
 */
function decide(
  state: RunState,
  digest: string,
  decisions: ApprovalDecisionEntry[],
  encrypted: SealedMap | undefined,
  context: StepContext,
): Step | Refusal {
  const { phase } = state
  if (phase.k !== 'AwaitingApproval') return doesNotFit('approval_decisions', phase)
  const entry = decisions.find(({ approval_id: id }) => id === phase.approvalId)
  if (!entry) return refuse('no decision names the pending approval', { approval_id: phase.approvalId })
  const unsealed = missingSeals(phase.pending, encrypted)
  if (unsealed.length > 0) return refuse('content is still unsealed', { missing: unsealed })
  const settled = phase.decided !== null
  const decision = phase.decided ?? entry.decision
  const reason = entry.reason ?? undefined
  const target =
    phase.planId === undefined
      ? ({ targetType: 'gate', targetId: phase.approvalId } as const)
      : ({ targetType: 'plan', targetId: phase.planId } as const)
  const withReason = reason === undefined ? {} : { reason }
  const writes: Write[] = sealedWrites(phase.pending, encrypted)
  if (!settled) {
    writes.push({ w: 'approval', id: context.newId(), ...target, decision, ...withReason })
    if (phase.planId !== undefined) writes.push({ w: 'plan_status', id: phase.planId, status: decision })
  }
  const events: RunEvent[] = settled
    ? []
    : [{ type: 'approval_resolved', approvalId: phase.approvalId, decision }]
  const payloads: Payload[] = settled
    ? []
    : [
        {
          type: 'approval',
          target_type: target.targetType,
          target_id: target.targetId,
          decision,
          ...withReason,
        },
      ]
  const endsRun = decision === 'rejected' && phase.kind !== 'remote_disclosure'
  if (endsRun) {
    const ended: Step = {
      state: { ...state, phase: { k: 'Idle' }, unsettled: null, planning: false, checkpointTurnId: null },
      writes,
      events: [...events, { type: 'turn_finished', turnId: eventTurnId(state.runId), outcome: 'completed' }],
      effects: [],
    }
    const traced =
      state.checkpointTurnId === null ? ended : withTraces(ended, state.checkpointTurnId, payloads, context)
    return { ...traced, reply: { by: 'outcome', outcome: idle(traced.state.traceId) } }
  }
  const active = acquire(context)
  const approved = decision === 'approved'
  const next: RunState = {
    ...state,
    phase: { ...phase, decided: decision },
    active,
    unsettled: { digest, kind: 'approval_decisions' },
    ...(phase.kind === 'plan' ? { planning: false, planApproved: true } : {}),
    ...(phase.kind === 'cost_limit' ? { costAccepted: true } : {}),
    ...(phase.disclosure === undefined
      ? {}
      : approved
        ? { disclosed: withDisclosure(state.disclosed, phase.disclosure) }
        : { remoteDeclined: true }),
  }
  // A gate stands before the call of the turn that raised it; an approved plan is the end of one.
  const turn = phase.kind === 'plan' && !settled ? state.turn + 1 : state.turn
  return withTraces(serveNext(next, writes, events, turn), active.turnId, payloads, context)
}

/** Adds to what one model may see; what others may see is their own. */
function withDisclosure(known: readonly Disclosure[], { provider, model, paths }: Disclosure): Disclosure[] {
  const same = (one: Disclosure) => one.provider === provider && one.model === model
  const before = known.find(same)?.paths ?? []
  return [
    ...known.filter((one) => !same(one)),
    { provider, model, paths: [...new Set([...before, ...paths])] },
  ]
}

/** `decrypted`: every record that was asked for (EC 17.3). The plaintext goes to the turn and nowhere else. */
function decrypted(
  state: RunState,
  digest: string,
  plaintext: PlainMap,
  encrypted: SealedMap | undefined,
  context: StepContext,
): Step | Refusal {
  const { phase } = state
  if (phase.k !== 'AwaitingDecrypt') return doesNotFit('decrypted', phase)
  const closed = phase.records.filter((ref) => plaintext[ref] === undefined)
  if (closed.length > 0) return refuse('content is still missing in plaintext', { missing: closed })
  const unsealed = missingSeals(phase.pending, encrypted)
  if (unsealed.length > 0) return refuse('content is still unsealed', { missing: unsealed })
  const active = acquire(context)
  const next: RunState = { ...state, active, unsettled: { digest, kind: 'decrypted' } }
  return serveNext(next, sealedWrites(phase.pending, encrypted), [], state.turn, plaintext)
}

/** `sealed`: the ciphertext of everything that the completed turn left open; the run goes idle. */
function sealed(state: RunState, encrypted: SealedMap): Step | Refusal {
  const { phase } = state
  if (phase.k !== 'AwaitingEncrypt') return doesNotFit('sealed', phase)
  const unsealed = missingSeals(phase.pending, encrypted)
  if (unsealed.length > 0) return refuse('content is still unsealed', { missing: unsealed })
  return {
    state: { ...state, phase: { k: 'Idle' }, unsettled: null, checkpointTurnId: null },
    writes: sealedWrites(phase.pending, encrypted),
    events: [],
    effects: [],
    reply: { by: 'outcome', outcome: idle(state.traceId) },
  }
}

const missingSeals = (pending: PendingWrite[], encrypted: SealedMap | undefined): string[] =>
  pending.filter(({ ref }) => encrypted?.[ref] === undefined).map(({ ref }) => ref)

const sealedWrites = (pending: PendingWrite[], encrypted: SealedMap | undefined): Write[] =>
  pending.flatMap(({ ref }) => {
    const payload = encrypted?.[ref]
    return payload === undefined ? [] : [{ w: 'sealed' as const, ref, payload }]
  })
