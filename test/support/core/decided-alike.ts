/** Has the router decide on the same turn several times, and asks whether each decision is the same to the byte. */

import fc from 'fast-check'
import { estimateCost } from '../../../src/core/gates.ts'
import { boundaryBreach } from '../../../src/core/privacy/boundary.ts'
import type { PromptMessage } from '../../../src/core/prompt.ts'
import { decisionTraces, reportOf } from '../../../src/core/report.ts'
import { planTurn, prepareCall, seenBy } from '../../../src/core/resolve.ts'
import { chooseModel, type Lookup } from '../../../src/core/select.ts'
import type { TurnView } from '../../../src/core/turn-view.ts'
import { Decimal } from '../../../src/protocol/execution/ids.ts'
import type { ModelDescriptor } from '../../../src/protocol/execution/models.ts'
import { makeCatalogue } from './builders.ts'
import { madeAtRandom, type Random } from './random.ts'
import { freeze } from './run-machine.ts'

export type Decided = {
  view: TurnView
  models: ModelDescriptor[]
  lookups?: Record<string, Lookup>
  without?: string[]
}

/** The whole decision on a turn, with every model of its route in turn and what the trace tells of each, as text. */
function decide(
  { models, lookups = {}, without = [] }: Decided,
  view: TurnView,
): { text: string; requests: PromptMessage[][] } {
  const planned = planTurn(view)
  if (!planned.ok) return { text: JSON.stringify(planned), requests: [] }
  const { view: _, ...plan } = planned.value
  const catalogue = makeCatalogue(models, { lookups, without })
  const parts: unknown[] = [plan]
  const requests: PromptMessage[][] = []
  const failed = new Set<string>()
  for (;;) {
    const choice = chooseModel(plan.demands, catalogue, failed)
    parts.push(choice)
    if (choice.k !== 'use') return { text: JSON.stringify(parts), requests }
    const call = prepareCall(planned.value, choice.model)
    const cost = estimateCost(choice.model, call)
    const report = reportOf(planned.value, call, choice.model, choice.fallbackUsed)
    const scene = { catalogue, failed, used: choice.reference, policyDigest: 'sha256:p' }
    const traces = decisionTraces(planned.value, call, report, scene)
    parts.push(call, cost, seenBy(planned.value, call), boundaryBreach(planned.value, call), report, traces)
    if (cost !== null) for (const money of Object.values(cost)) Decimal.parse(money)
    requests.push(call.request.messages)
    failed.add(choice.reference)
  }
}

/** Decides as it came, frozen, in a copy, and after a way through storage; gives the requests that came of it. */
function decideOften(given: Decided): PromptMessage[][] {
  const first = decide(given, freeze(given.view))
  const ways: [string, TurnView][] = [
    ['again', given.view],
    ['of a copy', structuredClone(given.view)],
    ['of what JSON keeps of it', JSON.parse(JSON.stringify(given.view))],
  ]
  for (const [what, view] of ways) {
    const again = decide(given, view).text
    if (again !== first.text) throw new Error(`decided differently ${what}:\n${first.text}\n${again}`)
  }
  const faults = first.requests.map(faultOf).filter((fault) => fault !== null)
  if (faults.length > 0) throw new Error(faults.join('; '))
  return first.requests
}

/** What every provider asks of a conversation. */
function faultOf(messages: PromptMessage[]): string | null {
  const roles = messages.map(({ role }) => role)
  if (roles[0] !== 'system' || roles.lastIndexOf('system') !== 0) return `one system message, first: ${roles}`
  if (roles[1] === 'assistant' || roles[1] === 'tool') return 'the user begins'
  for (const [index, message] of messages.entries()) {
    const next = messages[index + 1]
    if (message.role === next?.role) return `two in a row: ${roles}`
    if (message.role === 'assistant' && message.toolCalls.length > 0) {
      if (next?.role !== 'tool') return 'calls without results'
      const ids = message.toolCalls.map(({ callId }) => callId)
      if (next.results.map(({ callId }) => callId).join() !== ids.join()) return 'results of other calls'
    }
    const before = messages[index - 1]
    if (message.role === 'tool' && !(before?.role === 'assistant' && before.toolCalls.length > 0))
      return 'results without calls'
  }
  return null
}

/** Decides on `count` turns of a kind. Throws, with what repeats the case, where two decisions differ. */
export function checkAlike(make: (random: Random) => Decided, count: number, seed: number): void {
  const seen = { requests: 0, refusals: 0 }
  const decided = fc.property(madeAtRandom(make), (given) => {
    const requests = decideOften(given)
    seen.requests += requests.length
    if (requests.length === 0) seen.refusals++
  })
  fc.assert(decided, { numRuns: count, seed })
  // A property that only ever meets refusals, or none, proves nothing.
  if (seen.requests < count / 8 || seen.refusals < count / 20)
    throw new Error(`too few of a kind: ${JSON.stringify(seen)}`)
}
