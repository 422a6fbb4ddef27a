import { expect, test } from 'vitest'
import { clientCall, inject, Machine, results } from '../../../support/core/run-machine.ts'

test('[D01] events name the run as their turn, over pauses and injected words; the next prompt has another', () => {
  const machine = new Machine()
  const told = () => [
    ...new Set(machine.events.flatMap((event) => ('turnId' in event ? [event.turnId] : []))),
  ]
  machine.execute('first')
  const first = `turn:${machine.state?.runId}`
  machine.round({ calls: [clientCall('read_file')] })
  machine.continue(results(machine.waiting))
  machine.round({ calls: [clientCall('read_file')] })
  machine.continue(inject('and more'))
  machine.round({ text: 'done' })
  expect(told()).toEqual([first])
  machine.execute('second')
  expect(told()).toEqual([first, `turn:${machine.state?.runId}`])
  expect(machine.state?.runId).not.toBe(first.slice('turn:'.length))
})
