import type { RoutingPayload } from '../../core/replay.ts'
import { assertNever } from '../../protocol/assert.ts'
import type { PolicyWarning } from '../../protocol/execution/preview.ts'
import type { RoutingInputs, TraceEvent } from '../../protocol/execution/trace.ts'
import type { Paint } from '../paint.ts'
import { oneLine } from '../printable.ts'
import { payloadsOf, sayApproval, sayCalls, sayCosts, sayIncluded, sayLeftOut } from './happenings.ts'
import { type Entry, labelled, WIDTH, wrap } from './lines.ts'
import { type Decision, isBrokenOff, servedBy, type Turn, verdictOf } from './turns.ts'
import { placeOf, sayClassification, sayConsidered, sayLocalReason, sayNarrowed, sayRoute } from './words.ts'

const MAX_NAME_CHARS = 120
/** A place, two sentences and a suggestion. */
const MAX_WARNING_CHARS = 1_000
/** A session goes to and fro between models; more steps than this are no overview. */
const MAX_STEPS = 40

/** The models of the turns in order, neighbours that are alike as one: `plan ollama/a → edit anthropic/b (3 turns)`. */
export function summaryLine(turns: readonly Turn[]): string {
  const steps: { step: string; count: number }[] = []
  for (const turn of turns) {
    const { intent, model } = servedBy(turn)
    const step = `${intent} ${oneLine(model, MAX_NAME_CHARS)}`
    const last = steps.at(-1)
    if (last?.step === step) last.count += 1
    else steps.push({ step, count: 1 })
  }
  const words = steps
    .slice(0, MAX_STEPS)
    .map(({ step, count }) => (count === 1 ? step : `${step} (${count} turns)`))
  if (steps.length > MAX_STEPS) words.push(`… ${steps.length - MAX_STEPS} more`)
  return wrap(words.join(' → '), WIDTH).join('\n')
}

/** Why events cannot be opened, of those that cannot (U35). */
export type Locked = ReadonlyMap<TraceEvent, string>

/** One turn for people: what was decided, why, what came of it, and whether it is decided alike again. */
export function turnText(
  turn: Turn,
  decisions: readonly Decision[],
  runs: number,
  paint: Paint,
  locked: Locked = new Map(),
): string {
  const { events } = turn
  const { intent, model } = servedBy(turn)
  const [first] = events
  const head = [
    `Turn ${turn.number}`,
    ...(turn.run === undefined || runs < 2 ? [] : [`run ${turn.run}`]),
    ...(first === undefined ? [] : [first.created_at.slice(0, 19).replace('T', ' ')]),
    `${intent} → `,
  ].join('  ')
  return [
    `${paint.bold(`${head}${oneLine(model, WIDTH - head.length)}`)}\n`,
    ...events.map(
      (event, index) => decisionText(event, decisions, paint) + contextText(events, index, paint),
    ),
    happeningsText(events, locked, paint),
    labelled('check', checkEntries(events, decisions, paint), paint.dim),
  ].join('')
}

/** The lines of an event that decides: as what the turn was taken, where it was sent, what the user said. */
function decisionText(event: TraceEvent, decisions: readonly Decision[], paint: Paint): string {
  const { event_type: type } = event
  if ('encrypted' in event.payload) {
    if (type === 'classification') return labelled('intent', [`${event.task_type} (encrypted)`], paint.dim)
    if (type !== 'routing_decision') return ''
    const rule = event.matched_rule == null ? '' : `, rule \`${event.matched_rule}\``
    return labelled('route', [`${event.provider}/${event.model}${rule} (encrypted)`], paint.dim)
  }
  const payload = event.payload.plaintext
  if (payload.type === 'classification')
    return labelled('intent', [`${payload.intent}: ${payload.reason}`], paint.dim)
  if (payload.type === 'approval') return labelled('asked', [sayApproval(payload)], paint.dim)
  if (payload.type === 'routing_decision' && isBrokenOff(payload))
    return failureText(payload, paint) + modelsText(payload, paint)
  const decision = decisions.find((one) => one.event === event)
  return decision === undefined ? '' : routeText(decision, paint)
}

/** What a turn ended with instead of an answer. */
function failureText(routing: RoutingPayload, paint: Paint): string {
  const { failure } = routing
  if (failure === undefined) return ''
  const label = isBrokenOff(routing) ? 'failed' : 'refused'
  return labelled(label, [{ text: `${failure.code}: ${failure.message}`, paint: paint.red }], paint.dim)
}

const modelsText = ({ provider, model, inputs }: RoutingPayload, paint: Paint): string =>
  labelled(
    'models',
    inputs?.models.map((considered): Entry => {
      const text = `${considered.model}: ${sayConsidered(considered, inputs)}`
      return considered.verdict === 'used' ? { text, paint: paint.green } : text
    }) ?? [`${provider}/${model}`],
    paint.dim,
  )

function routeText({ routing, kept }: Decision, paint: Paint): string {
  const policy = kept?.policy ?? null
  const { inputs, matched_rule: rule } = routing
  const narrowed = policy === null || rule == null ? [] : sayNarrowed(policy, rule)
  return [
    labelled(
      inputs?.models.some(({ verdict }) => verdict === 'failed') ? 'fallback' : 'route',
      [routing.reason, ...placeOf(routing, policy)],
      paint.dim,
    ),
    failureText(routing, paint),
    modelsText(routing, paint),
    labelled('locality', locality(inputs), paint.dim),
    labelled('narrowed', narrowed, paint.dim),
  ].join('')
}

const locality = (inputs: RoutingInputs | undefined): string[] => [
  ...(inputs?.local_because ?? []).map((reason) => `only local models: ${sayLocalReason(reason)}`),
  ...(inputs?.local_denied ? ['no local models, by privacy.local.mode or by the user'] : []),
]

/** The context that was selected in a row of events, told at its first. */
function contextText(events: readonly TraceEvent[], from: number, paint: Paint): string {
  const isSelection = (event: TraceEvent | undefined) => event?.event_type === 'context_selection'
  if (!isSelection(events[from]) || isSelection(events[from - 1])) return ''
  const end = events.findIndex((event, index) => index > from && !isSelection(event))
  const selections = payloadsOf(events.slice(from, end < 0 ? undefined : end), 'context_selection')
  const leftOut = sayLeftOut(selections).map((text): Entry => ({ text, paint: paint.yellow }))
  return labelled('context', sayIncluded(selections), paint.dim) + labelled('left out', leftOut, paint.dim)
}

function happeningsText(events: readonly TraceEvent[], locked: Locked, paint: Paint): string {
  const sealed = counts(events.filter(({ payload }) => 'encrypted' in payload))
  return [
    labelled('tools', sayCalls(events), paint.dim),
    labelled('used', sayCosts(events), paint.dim),
    labelled('encrypted', [...sealed, ...reasonsOf(events, locked)], paint.dim),
    labelled('answer', spoke(events) ? [] : ['none is told of'], paint.dim),
  ].join('')
}

/** How many events of each type cannot be read, besides the decisions, which have lines of their own. */
function counts(events: readonly TraceEvent[]): string[] {
  const others = events.filter(
    ({ event_type: type }) => type !== 'classification' && type !== 'routing_decision',
  )
  const types = [...new Set(others.map(({ event_type }) => event_type))]
  const words = types.map((type) => {
    const count = others.filter(({ event_type }) => event_type === type).length
    return `${count} ${type.replaceAll('_', ' ')}`
  })
  return words.length === 0 ? [] : [words.join(', ')]
}

const spoke = (events: readonly TraceEvent[]): boolean =>
  events.some(({ event_type, payload }) =>
    'plaintext' in payload
      ? payload.plaintext.type === 'message' && payload.plaintext.role === 'assistant'
      : event_type === 'message',
  )

function checkEntries(events: readonly TraceEvent[], decisions: readonly Decision[], paint: Paint): Entry[] {
  const verdict = verdictOf(decisions)
  switch (verdict) {
    case 'same':
      return [{ text: 'decided again from the trace: the same', paint: paint.green }]
    case 'unknown':
      return [`cannot be decided again: ${unknownReason(events, decisions)}`]
    case 'differs':
      return [
        { text: 'decided again from the trace: NOT the same', paint: paint.red },
        ...new Set(decisions.flatMap(differences)),
      ]
    default:
      return assertNever(verdict)
  }
}

/** Each reason once: as a rule they all lack the same key. */
const reasonsOf = (events: readonly TraceEvent[], locked: Locked): string[] => [
  ...new Set(events.flatMap((event) => locked.get(event) ?? [])),
]

function unknownReason(events: readonly TraceEvent[], decisions: readonly Decision[]): string {
  if (events.some(({ payload }) => 'encrypted' in payload)) return 'it is encrypted'
  const checks = decisions.flatMap(({ check }) => [check.classification, check.routing])
  const unknown = checks.find((check) => check.k === 'unknown')
  return unknown?.k === 'unknown' ? unknown.reason : 'the trace holds no route of it'
}

function differences({ check: { classification, routing }, kept }: Decision): string[] {
  return [
    ...(kept?.altered ? ['the policy in the trace is not the one that the route names'] : []),
    ...(classification.k === 'differs'
      ? [
          `intent: the trace says ${sayClassification(classification.was)}, it is ${sayClassification(classification.is)}`,
        ]
      : []),
    ...(routing.k === 'differs'
      ? [`route: the trace says ${sayRoute(routing.was)}, it is ${sayRoute(routing.is)}`]
      : []),
  ]
}

/** What is amiss in the policies that decided, each thing once (EC 24.2). */
export function warningsText(perPolicy: readonly (readonly PolicyWarning[])[], paint: Paint): string {
  const entries = perPolicy.flatMap((warnings) =>
    // A message says by itself what to write instead.
    warnings.map(({ path, message }) => `${path}: ${message}`),
  )
  const lines = [...new Set(entries)].flatMap((entry) => wrap(oneLine(entry, MAX_WARNING_CHARS), WIDTH - 2))
  if (lines.length === 0) return ''
  return `\n${paint.yellow('Warnings about the policy')}\n${lines.map((line) => `  ${line}\n`).join('')}`
}
