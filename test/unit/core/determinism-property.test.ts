import { expect, test } from 'vitest'
import { estimateCost } from '../../../src/core/gates.ts'
import type { PromptMessage } from '../../../src/core/prompt.ts'
import { planTurn, prepareCall } from '../../../src/core/resolve.ts'
import { chooseModel } from '../../../src/core/select.ts'
import type { TurnView } from '../../../src/core/turn-view.ts'
import { Decimal } from '../../../src/protocol/execution/ids.ts'
import { makeCatalogue } from '../../support/core/builders.ts'
import { makeRandom } from '../../support/core/random.ts'
import { freeze } from '../../support/core/run-machine.ts'
import { makeWeirdTurn } from '../../support/core/weird-turns.ts'

type Weird = ReturnType<typeof makeWeirdTurn>

/** The whole decision on a turn, with every model of its route in turn, as text. */
function decide(
  { models, lookups, without }: Weird,
  view: TurnView,
): { text: string; requests: PromptMessage[][] } {
  const planned = planTurn(view)
  if (!planned.ok) return { text: JSON.stringify(planned), requests: [] }
  const { view: _, ...plan } = planned.value
  const parts: unknown[] = [plan]
  const requests: PromptMessage[][] = []
  const failed = new Set<string>()
  for (;;) {
    const choice = chooseModel(plan.demands, makeCatalogue(models, { lookups, without }), failed)
    parts.push(choice)
    if (choice.k !== 'use') return { text: JSON.stringify(parts), requests }
    const call = prepareCall(planned.value, choice.model)
    const cost = estimateCost(choice.model, call)
    parts.push(call, cost)
    if (cost !== null) for (const money of Object.values(cost)) Decimal.parse(money)
    requests.push(call.request.messages)
    failed.add(choice.reference)
  }
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

test('600 strange but valid turns: nothing throws, nothing is written to, the same turn is decided alike byte for byte', () => {
  const seen = { requests: 0, refusals: 0 }
  for (let seed = 1; seed <= 600; seed++) {
    const weird = makeWeirdTurn(makeRandom(seed))
    try {
      const first = decide(weird, freeze(weird.view))
      const again = decide(weird, structuredClone(weird.view))
      if (again.text !== first.text) throw new Error(`decided in two ways: ${first.text} and ${again.text}`)
      const faults = first.requests.map(faultOf).filter((fault) => fault !== null)
      if (faults.length > 0) throw new Error(faults.join('; '))
      seen.requests += first.requests.length
      if (first.requests.length === 0) seen.refusals++
    } catch (error) {
      throw new Error(`seed ${seed}`, { cause: error })
    }
  }
  expect(seen.requests).toBeGreaterThan(240)
  expect(seen.refusals).toBeGreaterThan(60)
}, 60_000)
