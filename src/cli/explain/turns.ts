import { createHash } from 'node:crypto'
import { type Check, type ReplayedTurn, type RoutingPayload, replayTurn } from '../../core/replay.ts'
import type { ModelReference } from '../../protocol/execution/ids.ts'
import { ExecutePolicy, type TaskIntent } from '../../protocol/execution/policy.ts'
import type { Payload, Trace, TraceEvent } from '../../protocol/execution/trace.ts'

/** A policy of a trace. It is kept under the digest of its text, which tells when it is another. */
export type KeptPolicy = { policy: ExecutePolicy; altered: boolean }

/** The policies of a trace by their keys. */
export type Policies = ReadonlyMap<string, KeptPolicy>

/** One turn of a session as the trace tells of it, its events in order. */
export type Turn = {
  /** From 1, in the session. */
  number: number
  /** From 1, in the session; absent where the trace names no runs. */
  run?: number
  events: TraceEvent[]
}

/**
 * A route that was taken in a turn, and what comes of deciding it again. Further ones follow a model that failed or an
 * answer of the user.
 */
export type Decision = {
  event: TraceEvent
  routing: RoutingPayload
  /** The key of its policy, and the policy; null where the trace does not hold it. */
  key: string
  kept: KeptPolicy | null
  check: ReplayedTurn
}

/**
 * Splits a trace into turns: each begins with its classification. What comes before it, such as the results and decisions
 * that it answers, belongs to the turn before. A turn that asks its model again is classified again under the same id.
 */
export function turnsOf(events: readonly TraceEvent[]): Turn[] {
  const turns: Turn[] = []
  const runs = new Map<string, number>()
  for (const event of events) {
    const last = turns.at(-1)
    if (last === undefined || (event.event_type === 'classification' && !goesOn(last, event))) {
      if (event.run_id !== undefined && !runs.has(event.run_id)) runs.set(event.run_id, runs.size + 1)
      const run = event.run_id === undefined ? undefined : runs.get(event.run_id)
      turns.push({ number: turns.length + 1, ...(run === undefined ? {} : { run }), events: [event] })
    } else last.events.push(event)
  }
  return turns
}

/** Whether the turn was decided under this event's id already. */
const goesOn = ({ events }: Turn, { turn_id: id }: TraceEvent): boolean =>
  id !== undefined && events.some((event) => event.turn_id === id && DECISIONS.has(event.event_type))

const DECISIONS: ReadonlySet<TraceEvent['event_type']> = new Set(['classification', 'routing_decision'])

/** What a turn was for, and the model that served it in the end or was meant to. */
export function servedBy({ events }: Turn): { intent: TaskIntent; model: ModelReference } {
  const [first] = events
  if (first === undefined) throw new Error('invariant broken: a turn without events')
  const routed = events.findLast(({ event_type }) => event_type === 'routing_decision') ?? first
  // What is checked is what the payload says; the clear fields beside it stand in for a sealed one.
  const payload = 'plaintext' in routed.payload ? routed.payload.plaintext : null
  if (payload?.type === 'routing_decision' && payload.failure !== undefined)
    return { intent: routed.task_type, model: `nobody (${payload.failure.code})` }
  const { provider, model } = payload?.type === 'routing_decision' ? payload : routed
  return { intent: routed.task_type, model: `${provider}/${model}` }
}

/** Takes in the policies that come with a page of a trace. What is no policy is left out: nothing is decided by it. */
export function keepPolicies({ policies = {} }: Trace, kept: Map<string, KeptPolicy>): void {
  for (const [key, value] of Object.entries(policies)) {
    // Pages of one run come with the same policy.
    const policy = kept.has(key) ? undefined : ExecutePolicy.safeParse(value).data
    if (policy === undefined) continue
    const altered = key !== `sha256:${createHash('sha256').update(JSON.stringify(value)).digest('hex')}`
    kept.set(key, { policy, altered })
  }
}

/** Every route of a turn that can be read, each decided again under the policy that it names. */
export function decisionsOf({ events }: Turn, policies: Policies): Decision[] {
  let classification: Extract<Payload, { type: 'classification' }> | null = null
  return events.flatMap((event) => {
    const payload = 'plaintext' in event.payload ? event.payload.plaintext : null
    if (event.event_type === 'classification')
      classification = payload?.type === 'classification' ? payload : null
    if (payload?.type !== 'routing_decision' || isBrokenOff(payload)) return []
    const key = payload.inputs?.policy ?? ''
    const kept = policies.get(key) ?? null
    const policy = kept?.policy ?? null
    const check = replayTurn({ classification, routing: payload, taskType: event.task_type, policy })
    return [{ event, routing: payload, key, kept, check }]
  })
}

/** A model failed, and the turn with it: that is told, and was no decision. */
export const isBrokenOff = ({ failure, inputs }: RoutingPayload): boolean =>
  failure !== undefined && inputs?.models.some(({ verdict }) => verdict === 'failed') === true

/** What the checks of a turn come to: one that differs weighs most, then one that cannot be made. */
export function verdictOf(decisions: readonly Decision[]): Check<unknown>['k'] {
  const kinds = decisions.flatMap(({ check }) => [check.classification.k, check.routing.k])
  if (kinds.includes('differs') || decisions.some(({ kept }) => kept?.altered)) return 'differs'
  return kinds.length === 0 || kinds.includes('unknown') ? 'unknown' : 'same'
}
