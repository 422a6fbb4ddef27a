import { describe, expect, test } from 'vitest'
import { LEASE_MS } from '../../../../src/core/run/state.ts'
import { BREAK, clientCall, decision, inject, Machine, results } from '../../../support/core/run-machine.ts'
import { machineIn, type Situation } from '../../../support/core/run-phases.ts'

const later = (machine: Machine, ms: number): Machine => {
  machine.nowMs += ms
  return machine
}

describe('[RF 14] the clock of a run', () => {
  test('begins with it, and counts the time in which turns are served, without pauses', () => {
    const machine = new Machine()
    machine.execute('prompt')
    expect(machine.state?.clock).toEqual({ startedAtMs: 1_000_000, workMs: 0 })
    later(machine, 3_000).resolve()
    later(machine, 2_000).answer({ calls: [clientCall('read_file')] })
    expect(machine.state?.clock).toEqual({ startedAtMs: 1_000_000, workMs: 5_000 })
    later(machine, 60_000).continue(results(machine.waiting))
    expect(machine.state?.clock?.workMs).toBe(5_000)
    later(machine, 1_000).round({ text: 'done' })
    expect(machine.state?.clock).toEqual({ startedAtMs: 1_000_000, workMs: 6_000 })
  })

  test('goes on through new words in the same run, and begins again with the next run', () => {
    const machine = new Machine()
    machine.execute('prompt')
    later(machine, 4_000).continue(inject('and this'))
    expect(machine.state?.clock).toEqual({ startedAtMs: 1_000_000, workMs: 4_000 })
    later(machine, 1_000).round({ text: 'done' })
    later(machine, 9_000).continue(inject('something else'))
    expect(machine.state?.clock).toEqual({ startedAtMs: 1_014_000, workMs: 0 })
  })

  test('does not count the time for which nothing served the turn that a crash cut off', () => {
    const machine = new Machine()
    machine.execute('prompt')
    later(machine, 10 * LEASE_MS).crash()
    expect(machine.state?.clock?.workMs).toBe(LEASE_MS)
  })
})

describe('[RF 14] how a run ended is kept with its last turn', () => {
  const outcomes = (machine: Machine) => [...machine.store.turns.values()].map(({ runOutcome }) => runOutcome)

  test('completed, failed, or cut while it was served', () => {
    const completed = new Machine()
    completed.execute('prompt')
    completed.round({ text: 'done' })
    expect(outcomes(completed)).toEqual(['completed'])
    const failed = new Machine()
    failed.execute('prompt')
    failed.resolve()
    failed.fail()
    expect(outcomes(failed)).toEqual(['failed'])
    const cut = new Machine()
    cut.execute('prompt')
    cut.continue(BREAK)
    expect(outcomes(cut)).toEqual(['cancelled'])
  })

  test('a pause is no end, nor are new words in the same run', () => {
    const machine = machineIn('AwaitingTool')
    expect(outcomes(machine)).toEqual([undefined])
    machine.continue(inject('rather this'))
    expect(outcomes(machine)).toEqual([undefined, undefined])
  })

  test.each<[string, Situation, (machine: Machine) => unknown, string]>([
    ['stopped', 'AwaitingTool', (machine) => machine.continue(BREAK), 'cancelled'],
    ['declined by a device', 'AwaitingTool', (machine) => machine.deviceDecides('rejected'), 'cancelled'],
    ['given up for another', 'AwaitingTool', (machine) => machine.execute('other'), 'cancelled'],
    [
      'declined',
      'AwaitingApproval: plan',
      (machine) => machine.continue(decision(machine.approvalId, 'rejected')),
      'completed',
    ],
  ])('in a pause: %s', (_, situation, ends, outcome) => {
    const machine = machineIn(situation)
    ends(machine)
    expect(outcomes(machine)[0]).toBe(outcome)
  })
})
