import { describe, expect, test } from 'vitest'
import type { RunState } from '../../../src/core/run/state.ts'
import { isSettledByDevice } from '../../../src/session/settled.ts'
import {
  askCall,
  BREAK,
  clientCall,
  decision,
  inject,
  Machine,
  results,
} from '../../support/core/run-machine.ts'
import { machineIn } from '../../support/core/run-phases.ts'

/** A run whose question a device has answered, and that went on from there; with the call that asked it. */
function answered(): { state: RunState | null; call: string } {
  const machine = new Machine()
  machine.execute('prompt')
  machine.round({ calls: [askCall()] })
  const [call = ''] = machine.waiting
  machine.answerQuestion('User selected: a')
  return { state: machine.state, call }
}

describe('[D05] a message that answers what a device has settled meanwhile', () => {
  test('is one that names its gate, also when the run has gone on or ended', () => {
    const plan = machineIn('AwaitingApproval: plan')
    const id = plan.approvalId
    expect(isSettledByDevice(plan.state, decision(id, 'approved'))).toBe(false)
    plan.deviceDecides('approved')
    expect(isSettledByDevice(plan.state, decision(id, 'rejected'))).toBe(true)
    plan.round({ text: 'done' })
    expect(isSettledByDevice(plan.state, decision(id, 'approved'))).toBe(true)
    const cost = machineIn('AwaitingApproval: cost')
    const other = cost.approvalId
    cost.deviceDecides('rejected')
    expect(isSettledByDevice(cost.state, decision(other, 'approved'))).toBe(true)
  })

  test('is one whose results are all of calls that devices answered', () => {
    const { state, call } = answered()
    expect(isSettledByDevice(state, results([call]))).toBe(true)
    expect(isSettledByDevice(state, results([call, 'another']))).toBe(false)
    expect(isSettledByDevice(state, results([]))).toBe(false)
  })

  test('is none where the driver settled it, nor once another run began', () => {
    const own = machineIn('AwaitingApproval: plan')
    const id = own.approvalId
    own.continue(decision(id, 'approved'))
    expect(isSettledByDevice(own.state, decision(id, 'approved'))).toBe(false)
    const gone = machineIn('AwaitingApproval: plan')
    const old = gone.approvalId
    gone.deviceDecides('approved')
    gone.continue(BREAK)
    gone.execute('other')
    expect(isSettledByDevice(gone.state, decision(old, 'approved'))).toBe(false)
    expect(isSettledByDevice(null, decision(old, 'approved'))).toBe(false)
  })

  test('is none of those that stop or say something new, nor results of calls that a device declined', () => {
    const { state } = answered()
    for (const message of [BREAK, inject('x')]) expect(isSettledByDevice(state, message)).toBe(false)
    const declined = new Machine()
    declined.execute('prompt')
    declined.round({ calls: [clientCall('shell', 'ask')] })
    const { waiting } = declined
    declined.deviceDecides('rejected')
    expect(isSettledByDevice(declined.state, results(waiting))).toBe(false)
  })
})
