import { expect, it } from 'vitest'
import { clientCall, Machine, results } from '../../../support/core/run-machine.ts'

const GATE = {
  kind: 'cost_limit' as const,
  cost: { rule: 'r', provider: 'ollama' as const, model: 'm', limit: '0', estimate: null },
}

/** What is known of the newest decision, without its id. */
const known = ({ state }: Machine) => {
  const { batchId: _, ...rest } = state?.lastDecision ?? { batchId: '' }
  return rest
}

it('[U19] a decision on calls is remembered from when it was made until the run ends, with each of its times', () => {
  const machine = new Machine()
  machine.execute('go')
  expect(machine.state?.lastDecision).toBeUndefined()
  machine.round({ calls: [clientCall('shell', 'ask')] })
  machine.nowMs = 2_000_000
  const { batchId } = machine
  machine.deviceDecides('approved')
  expect(machine.state?.lastDecision).toEqual({ batchId, decision: 'approved', storedAtMs: 2_000_000 })
  machine.nowMs = 2_000_001
  machine.send({ type: 'decision_delivered' })
  expect(known(machine)).toEqual({ decision: 'approved', storedAtMs: 2_000_000, deliveredAtMs: 2_000_001 })
  machine.nowMs = 2_000_002
  machine.continue(results(machine.waiting))
  const acted = {
    decision: 'approved',
    storedAtMs: 2_000_000,
    deliveredAtMs: 2_000_001,
    actedOnAtMs: 2_000_002,
  }
  expect(known(machine)).toEqual(acted)
  machine.nowMs = 2_000_003
  machine.round({ text: 'done' })
  expect(known(machine)).toEqual(acted)
  machine.execute('again')
  expect(machine.state?.lastDecision).toBeUndefined()
})

it('[D10] a decision on a gate is acted on when the driver goes on with it', () => {
  const machine = new Machine()
  machine.execute('go', { keyed: ['ollama'] })
  machine.resolve(GATE)
  const { batchId } = machine
  machine.deviceDecides('approved')
  expect(known(machine)).toEqual({ decision: 'approved', storedAtMs: 1_000_000 })
  machine.nowMs = 1_000_007
  machine.continue({
    type: 'approval_decisions',
    data: { decisions: [{ approval_id: batchId, decision: 'approved' }] },
  })
  expect(known(machine)).toEqual({ decision: 'approved', storedAtMs: 1_000_000, actedOnAtMs: 1_000_007 })
})

it('[D10] new words in the same run leave it, those that begin another run do not', () => {
  const machine = new Machine()
  machine.execute('go')
  machine.round({ calls: [clientCall('shell', 'ask')] })
  machine.deviceDecides('approved')
  machine.continue({ type: 'inject', data: { messages: [{ text: 'more' }] } })
  expect(known(machine)).toEqual({ decision: 'approved', storedAtMs: 1_000_000 })
  machine.round({ text: 'done' })
  machine.continue({ type: 'inject', data: { messages: [{ text: 'more' }] } })
  expect(machine.state?.lastDecision).toBeUndefined()
})
