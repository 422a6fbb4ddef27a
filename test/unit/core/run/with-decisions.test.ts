import { describe, expect, test } from 'vitest'
import { withDecisions } from '../../../../src/core/run/with-decisions.ts'
import { RunResponse } from '../../../../src/protocol/execution/turn.ts'
import { askCall, clientCall, Machine, results } from '../../../support/core/run-machine.ts'
import { DISCLOSURE } from '../../../support/core/run-phases.ts'

/** What `GET …/run` shows, in the shape that goes over the wire. */
function shown(machine: Machine): RunResponse {
  if (machine.state === null || machine.outcome === null) throw new Error('there is no run')
  const envelope = withDecisions(machine.outcome, machine.state)
  expect(RunResponse.parse(envelope)).toEqual(envelope)
  return envelope
}

const requests = (machine: Machine) => {
  const envelope = shown(machine)
  return envelope.status === 'awaiting_tool' ? envelope.data.tool_requests : []
}

const AT = '1970-01-01T00:16:40.000Z'

describe('[D05][D10] the current envelope', () => {
  test('is what was told, while no device has decided anything', () => {
    const machine = new Machine()
    machine.execute('prompt')
    machine.round({ calls: [clientCall('read_file'), clientCall('shell', 'ask')] })
    expect(shown(machine)).toEqual(machine.outcome)
  })

  test('shows the same calls with the decision, and how far it has come', () => {
    const machine = new Machine()
    machine.execute('prompt')
    machine.round({ calls: [clientCall('read_file'), clientCall('shell', 'ask')] })
    const [read, shell] = requests(machine)
    machine.deviceDecides('approved')
    const decided = { decision: 'approved', decided_at: AT }
    expect(requests(machine)).toEqual([read, { ...shell, ...decided, decision_state: 'stored' }])
    machine.nowMs += 1_000
    machine.accept({ type: 'decision_delivered' })
    const delivered = { ...decided, delivered_at: '1970-01-01T00:16:41.000Z' }
    expect(requests(machine)).toEqual([read, { ...shell, ...delivered, decision_state: 'delivered' }])
    machine.continue(results(machine.waiting))
    machine.crash()
    expect(requests(machine).at(1)).toEqual({ ...shell, ...delivered, decision_state: 'acted_on' })
  })

  test('shows a gate with its decision', () => {
    const machine = new Machine()
    machine.execute('prompt', { keyed: ['openai'] })
    machine.resolve({ kind: 'remote_disclosure', disclosure: DISCLOSURE })
    machine.deviceDecides('rejected')
    expect(shown(machine)).toMatchObject({
      status: 'awaiting_approval',
      data: { approval: { decision: 'rejected', decision_state: 'stored', decided_at: AT } },
    })
  })

  test('asks for no call that devices have answered, and goes on asking for the others', () => {
    const machine = new Machine()
    machine.execute('prompt')
    machine.round({ calls: [askCall(2), clientCall('read_file')] })
    const [, read] = requests(machine)
    machine.answerQuestion('one')
    expect(requests(machine)).toHaveLength(2)
    machine.answerQuestion('two')
    expect(requests(machine)).toEqual([read])
  })
})
