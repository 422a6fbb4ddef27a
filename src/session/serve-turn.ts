import { priceCall } from '../core/cost.ts'
import { gateFor } from '../core/gates.ts'
import { type ModelCall, mediate } from '../core/mediate.ts'
import type { MemoryFact } from '../core/memory.ts'
import { boundaryBreach } from '../core/privacy/boundary.ts'
import {
  chosenBy,
  type DecisionScene,
  decisionTraces,
  failureTraces,
  reportOf,
  routeTraces,
} from '../core/report.ts'
import {
  isPrivate,
  type PreparedCall,
  planTurn,
  prepareCall,
  remembersPrivately,
  seenBy,
  type TurnPlan,
} from '../core/resolve.ts'
import type { Partial, RunInputEvent, TurnReport } from '../core/run/inputs.ts'
import { passedGate, type RunState } from '../core/run/state.ts'
import type { AnswerClock, CallRecord, TracePayload } from '../core/run/writes.ts'
import { type Catalogue, type Choice, chooseModel } from '../core/select.ts'
import type { TurnView } from '../core/turn-view.ts'
import { turnUsage } from '../core/usage.ts'
import { type Failure, failure } from '../protocol/execution/errors.ts'
import type { ModelReference, Provider } from '../protocol/execution/ids.ts'
import type { ModelDescriptor } from '../protocol/execution/models.ts'
import type { SealedMap } from '../protocol/execution/sealed.ts'
import type { AnswerEnding } from '../protocol/execution/turn.ts'
import { makeEgress, type RouteRecord } from '../providers/egress.ts'
import { categoryToCode, isFallbackEligible } from '../providers/failures.ts'
import type { FinishReason, ProviderFailure, ProviderMap, ReportedUsage } from '../providers/provider.ts'
import type { LiveTurn } from './live-turn.ts'

/** What serving a turn needs of the object around it. */
export type ServeDeps = {
  providers: ProviderMap
  state(): RunState
  view(): TurnView
  /** Of a sealed session: what the client has to open first. */
  closed(): SealedMap | null
  /** What is remembered now, by the user and by the session. */
  memories(): readonly MemoryFact[]
  catalogue(): Catalogue
  list(provider: Provider, models: readonly string[], signal: AbortSignal, localOnly: boolean): Promise<void>
  /** Commits what happened; false when the turn no longer holds the lock. */
  dispatch(input: RunInputEvent): boolean
  /** A model is about to be called: its clocks begin. */
  callBegins(): void
  textArrived(type: 'text_delta' | 'reasoning_delta', text: string): void
  /** How long the call under way has taken so far. */
  clock(): AnswerClock
  routed(route: RouteRecord): void
}

/**
 * One round of a turn: decide, ask the model, report what it said to the machine. Between any two awaits the turn may
 * have been superseded; whatever it reports then is dropped.
 */
export async function serveTurn(live: LiveTurn, deps: ServeDeps): Promise<void> {
  const closed = deps.closed()
  if (closed !== null) {
    deps.dispatch({ type: 'decryption_needed', lease: live.lease, toDecrypt: closed })
    return
  }
  const planned = planTurn(deps.view())
  if (!planned.ok) return fail(live, deps, planned.error)
  const plan = planned.value
  // One view for the whole turn: what it learns of one provider may not grow old while it waits for the next.
  const catalogue = deps.catalogue()
  const resumed = live.calls.length === 0 ? passedGate(deps.state()) : null
  const failed = new Set<ModelReference>(resumed?.failed)
  let failedCall: CallRecord | null = null
  let lastFailure: Failure | null = null
  let classified = resumed !== null
  const policyDigest = deps.state().policyDigest ?? null
  const told = (cause: Failure) =>
    failureTraces(plan, cause, { catalogue, failed, used: null, policyDigest }, classified)
  for (;;) {
    const choice: Choice = chooseModel(plan.demands, catalogue, failed)
    if (choice.k === 'list') {
      const localOnly = plan.demands.localBecause !== null
      await deps.list(choice.provider, choice.models, live.abort.signal, localOnly)
      if (live.abort.signal.aborted) return
      continue
    }
    if (choice.k === 'none') {
      const cause = lastFailure ?? choice.failure
      return fail(live, deps, cause, failedCall, told(cause))
    }
    const { model, reference, fallbackUsed } = choice
    const prepared = prepareCall(plan, model)
    const report = reportOf(plan, prepared, model, fallbackUsed)
    const state = deps.state()
    const scene: DecisionScene = {
      catalogue,
      failed,
      used: reference,
      policyDigest,
    }
    const call: CallRecord = {
      provider: model.provider,
      model: model.model,
      taskType: plan.classification.intent,
      chosenBy: chosenBy(plan),
      status: 'lost',
      usage: null,
      ...(isPrivate(plan, prepared) ? { localOnly: true as const } : {}),
      seen: seenBy(plan, prepared),
    }
    const gate = gateFor(plan, model, prepared, state)
    const traces =
      failed.size > (resumed?.failed?.length ?? 0)
        ? routeTraces(plan, prepared, report, scene)
        : resumed === null
          ? decisionTraces(plan, prepared, report, scene)
          : isTold(report, state)
            ? []
            : routeTraces(plan, prepared, report, scene)
    const breach = boundaryBreach(plan, prepared)
    if (breach !== null) return refuseAtBoundary(live, deps, { report, traces, call, failedCall }, breach)
    const resolved = {
      type: 'turn_resolved',
      lease: live.lease,
      report,
      traces,
      gate,
      failed: [...failed],
      call,
      failedCall,
    } as const
    if (!deps.dispatch(resolved) || gate !== null) return
    classified = true
    live.channel.open()
    const answer = await invoke(live, deps, plan, prepared, call)
    if (live.abort.signal.aborted) return
    live.partial = null
    if (answer.failure === null) {
      const localOnly = remembersPrivately(plan, prepared)
      const calls = mediate(answer.calls, prepared.tools, plan.permissions, {
        facts: answer.calls.length === 0 ? [] : deps.memories(),
        localOnly,
      })
      // A fact that only local models may see stands in the call that recorded it as well (U37).
      const remembers = localOnly && calls.some((made) => made.to === 'model' && made.memory !== undefined)
      live.spoke ||= answer.text !== ''
      const answered = { ...call, clock: deps.clock(), ...(remembers ? { localOnly: true as const } : {}) }
      const settled = settle(answered, 'answered', answer.usage, model)
      live.calls.push(settled)
      deps.dispatch({
        type: 'model_responded',
        lease: live.lease,
        text: answer.text,
        ending: answer.ending,
        report,
        calls,
        call: settled,
        usage: turnUsage(live.calls),
      })
      return
    }
    const settled = settle(call, 'failed', answer.usage, model)
    live.calls.push(settled)
    const cause = toFailure(answer, answer.failure, model)
    failed.add(reference)
    if (answer.spoke || !isFallbackEligible(answer.failure.category)) {
      const partial = { text: answer.text, call: { ...settled, clock: deps.clock() } }
      const ended = {
        type: 'turn_failed',
        lease: live.lease,
        failure: cause,
        partial,
        call: settled,
      } as const
      deps.dispatch({ ...ended, told: told(cause) })
      return
    }
    failedCall = settled
    lastFailure = cause
  }
}

/** The trace of the turn tells of this decision already (EC 19: each resolved turn, once). */
const isTold = ({ routing }: TurnReport, { lastRoute }: RunState): boolean =>
  lastRoute?.provider === routing.provider && lastRoute.model === routing.model

/**
 * The last check said no: nothing is sent, the run ends, and the trace says what was about to happen. That is a fault of
 * the router, never of the request.
 */
function refuseAtBoundary(
  live: LiveTurn,
  deps: ServeDeps,
  turn: { report: TurnReport; traces: TracePayload[]; call: CallRecord; failedCall: CallRecord | null },
  breach: string,
): void {
  // Why, the trace says: it names what was about to leave.
  console.error(`turn ${live.turnId} was refused at the provider boundary`)
  const { provider, model } = turn.call
  const refused = { kind: 'boundary', included: false, reason: `refused at the provider boundary: ${breach}` }
  const traces = [...turn.traces, { type: 'context_selection' as const, ...refused }]
  if (!deps.dispatch({ type: 'turn_resolved', lease: live.lease, ...turn, traces, gate: null })) return
  const cause = failure('internal_error', 'the router refused to send this prompt to a remote model', {
    provider,
    model,
    reason: 'private_content',
  })
  fail(live, deps, cause, { ...turn.call, status: 'failed' })
}

function fail(
  live: LiveTurn,
  deps: ServeDeps,
  cause: Failure,
  call: CallRecord | null = null,
  told?: ReturnType<typeof failureTraces>,
): void {
  deps.dispatch({
    type: 'turn_failed',
    lease: live.lease,
    failure: cause,
    partial: null,
    call,
    ...(told === undefined ? {} : { told }),
  })
}

type Answer = {
  text: string
  calls: ModelCall[]
  usage: ReportedUsage | null
  failure: ProviderFailure | null
  ending: AnswerEnding | null
  /** Anything reached the reader: what was said cannot be taken back (D24). */
  spoke: boolean
}

async function invoke(
  live: LiveTurn,
  deps: ServeDeps,
  plan: TurnPlan,
  { request }: PreparedCall,
  call: CallRecord,
): Promise<Answer> {
  const { model } = request
  const provider = deps.providers.get(model.provider)
  if (!provider) throw new Error(`invariant broken: ${model.provider} was chosen and is not registered`)
  const credential = live.access.credentialFor(model.provider)
  const answer: Answer = { text: '', calls: [], usage: null, failure: null, ending: null, spoke: false }
  const partial: Partial = { text: '', call: { ...call, status: 'cancelled' } }
  deps.callBegins()
  live.partial = partial
  const egress = makeEgress({
    record: deps.routed,
    purpose: 'completion',
    provider: model.provider,
    chosenBy: call.chosenBy,
    remoteAllowed: plan.demands.localBecause === null,
  })
  const context = { ...(credential === undefined ? {} : { credential }), egress, signal: live.abort.signal }
  for await (const event of provider.invoke(request, context)) {
    if (live.abort.signal.aborted) return answer
    switch (event.type) {
      case 'text_delta':
      case 'reasoning_delta':
        if (event.delta === '') break
        answer.spoke = true
        if (event.type === 'text_delta') {
          // A second answer in one turn is a paragraph of its own; the first went to the router's own tools.
          if (answer.text === '' && live.spoke) live.channel.push({ type: 'text_delta', delta: '\n\n' })
          answer.text += event.delta
          partial.text = answer.text
        }
        partial.call = { ...partial.call, clock: deps.clock() }
        live.channel.push(event)
        deps.textArrived(event.type, event.delta)
        break
      case 'tool_call': {
        const { type: _, ...asked } = event
        answer.calls.push(asked)
        break
      }
      case 'usage_so_far':
      case 'usage':
        answer.usage = event.usage
        partial.call = settle(partial.call, 'cancelled', event.usage, model)
        break
      case 'failed':
        answer.failure = event.failure
        break
      case 'finished':
        finish(answer, event.reason)
        break
    }
  }
  return answer
}

/** Four endings that must not be mistaken for each other: finished, truncated, refused, and none at all (U42). */
function finish(answer: Answer, reason: FinishReason): void {
  if (reason === 'length') answer.ending = 'truncated'
  if (reason === 'refused') {
    answer.ending = 'refused'
    // What a refused answer asked for is not run.
    answer.calls = []
    if (answer.text === '') {
      answer.failure = { category: 'invalid_request', message: 'the provider refused to answer this request' }
    }
  }
  if (reason === 'other' && !answer.spoke && answer.calls.length === 0) {
    answer.failure = { category: 'unknown', message: 'the provider ended its answer without a word' }
  }
}

function settle(
  call: CallRecord,
  status: CallRecord['status'],
  usage: ReportedUsage | null,
  model: ModelDescriptor,
): CallRecord {
  const cost = usage === null ? undefined : priceCall(model, usage)
  return { ...call, status, usage, ...(cost === undefined ? {} : { cost }) }
}

const toFailure = (
  { ending }: Answer,
  { category, message, retryAfterMs }: ProviderFailure,
  model: ModelDescriptor,
): Failure =>
  failure(categoryToCode(category), message, {
    provider: model.provider,
    model: model.model,
    ...(ending === 'refused' ? { reason: 'refused' } : {}),
    ...(retryAfterMs === undefined ? {} : { retry_after_ms: retryAfterMs }),
  })
