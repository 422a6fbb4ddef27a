import type { Payload, TraceEvent } from '../../protocol/execution/trace.ts'
import { costLine } from '../run-summary.ts'

/** More labels of one kind than anybody reads; the JSON form has them all. */
const MAX_SHOWN = 20

type Selection = Extract<Payload, { type: 'context_selection' }>

/** The payloads of one type among events; what is sealed is not among them. */
export function payloadsOf<Type extends Payload['type']>(
  events: readonly TraceEvent[],
  type: Type,
): Extract<Payload, { type: Type }>[] {
  return events.flatMap(({ payload }) =>
    'plaintext' in payload && payload.plaintext.type === type
      ? [payload.plaintext as Extract<Payload, { type: Type }>]
      : [],
  )
}

/** The labels of what went in, in one entry. */
export function sayIncluded(selections: readonly Selection[]): string[] {
  const labels = counted(selections.filter(({ included }) => included).map(labelOf))
  return labels.length === 0 ? [] : [shorten(labels).join(', ')]
}

/** What stayed out, an entry for each thing that stayed out for one reason. */
export const sayLeftOut = (selections: readonly Selection[]): string[] =>
  shorten(
    counted(
      selections
        .filter(({ included }) => !included)
        .map((selection) => {
          const label = labelOf(selection)
          return label.one === selection.reason ? label : { ...label, reason: selection.reason }
        }),
    ),
  )

/** `many`: what stands behind a number; without it the number stands behind the name. */
type Label = { one: string; many?: string; reason?: string }

const KIND_WORDS = new Map<string, [one: string, many: string]>([
  ['message', ['earlier message', 'earlier messages']],
  ['memory', ['remembered fact', 'remembered facts']],
  ['git_diff', ['git diff', 'git diffs']],
  ['instruction', ['instruction', 'instructions']],
  ['skill', ['skill', 'skills']],
  ['boundary', ['the whole prompt', 'whole prompts']],
])

/** How the router tells of what it did not even look at: by a number (D28). */
const OLDER = /^\d+ older /

function labelOf({ path, kind, reason }: Selection): Label {
  if (path != null) return { one: path }
  if (OLDER.test(reason)) return { one: reason }
  const [one, many] = KIND_WORDS.get(kind) ?? [kind, kind]
  return { one, many }
}

/** Equal labels become one with their number, in the place of the first. */
function counted(labels: readonly Label[]): string[] {
  const counts = new Map<string, { label: Label; count: number }>()
  for (const label of labels) {
    const key = JSON.stringify(label)
    counts.set(key, { label, count: (counts.get(key)?.count ?? 0) + 1 })
  }
  return [...counts.values()].map(({ label: { one, many, reason }, count }) => {
    const name = count === 1 ? one : many === undefined ? `${one} (${count})` : `${count} ${many}`
    return reason === undefined ? name : `${name}: ${reason}`
  })
}

const shorten = (entries: string[]): string[] =>
  entries.length <= MAX_SHOWN
    ? entries
    : [...entries.slice(0, MAX_SHOWN), `… and ${entries.length - MAX_SHOWN} more`]

const ASKED_WORDS = {
  remote_disclosure: 'the disclosure',
  cost_limit: 'the cost above the limit',
  plan: 'the plan',
} as const

/** For traces that do not name the kind. */
const TARGET_WORDS = new Map([
  ['gate', 'the question before the call'],
  ['plan', 'the plan'],
  ['tool_call', 'the tool call'],
])

/** A decision of the user. */
export function sayApproval({
  target_type,
  target_id,
  decision,
  reason,
  kind,
}: Extract<Payload, { type: 'approval' }>): string {
  const target = kind === undefined ? (TARGET_WORDS.get(target_type) ?? target_type) : ASKED_WORDS[kind]
  return `${target} was ${decision}${reason ? `: ${reason}` : ''} (${target_id})`
}

/** The tool calls with what became of each. A report names its tool and no more: it is of the first that waits. */
export function sayCalls(events: readonly TraceEvent[]): string[] {
  const calls: { tool: string; state: string; waits: boolean }[] = []
  for (const { tool_name: tool, status, error } of payloadsOf(events, 'tool_call')) {
    const state = `${status}${error ? `: ${error}` : ''}`
    const waits = status === 'pending' || status === 'running'
    const open = waits ? undefined : calls.find((call) => call.waits && call.tool === tool)
    if (open) Object.assign(open, { state, waits })
    else calls.push({ tool, state, waits })
  }
  return shorten(
    counted(
      calls.map(({ tool, state, waits }) => ({
        one: tool,
        many: `× ${tool}`,
        reason: waits ? 'sent to the client' : state,
      })),
    ),
  )
}

/** What each call of a model used. */
export const sayCosts = (events: readonly TraceEvent[]): string[] =>
  payloadsOf(events, 'cost').map((cost) => `${cost.provider}/${cost.model}: ${costLine(cost)}`)
