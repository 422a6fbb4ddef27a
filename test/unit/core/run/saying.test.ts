import { expect, test } from 'vitest'
import type { Write } from '../../../../src/core/run/writes.ts'
import {
  clientCall,
  Machine,
  makePartial,
  makeRecord,
  makeReport,
} from '../../../support/core/run-machine.ts'

const BOUND = { ...makeRecord('answered'), localOnly: true as const }

/** The messages that a step stores, by what they are bound to. */
const boundTo = (writes: readonly Write[]) =>
  writes.flatMap((write) => (write.w === 'assistant_message' ? [write.localOnly] : []))

function served(): Machine {
  const machine = new Machine()
  machine.execute('what is in @secrets/key?')
  machine.resolve()
  return machine
}

test.each([
  ['an answer', []],
  ['a round of calls', [clientCall('shell')]],
])('[U37] %s over constrained content stays bound to local models', (_, calls) => {
  const machine = served()
  const { writes } = machine.accept({
    type: 'model_responded',
    ending: null,
    lease: machine.lease,
    text: 'It says 42.',
    report: makeReport(),
    calls,
    call: BOUND,
    usage: {},
  })
  expect(boundTo(writes)).toEqual([true])
})

test('[U37] so does what was said before it was cut or failed', () => {
  const partial = { ...makePartial('It says'), call: BOUND }
  const cut = served().continue({ type: 'break' }, { partial })
  expect(boundTo('writes' in cut ? cut.writes : [])).toEqual([true])
  expect(boundTo(served().fail('provider_error', partial).writes)).toEqual([true])
})

test('[U37] the paths that the prompt held stay with what was said, whole or cut', () => {
  const seen = { under: 'a policy', root: '/code', files: ['secrets/key', 'a.ts'] }
  const record = { ...makeRecord('answered'), seen }
  const seenBy = (writes: readonly Write[]) =>
    writes.flatMap((write) => (write.w === 'assistant_message' ? [write.seen] : []))
  const machine = served()
  const { writes } = machine.accept({
    type: 'model_responded',
    ending: null,
    lease: machine.lease,
    text: 'It says 42.',
    report: makeReport(),
    calls: [],
    call: record,
    usage: {},
  })
  expect(seenBy(writes)).toEqual([seen])
  const cut = served().continue({ type: 'break' }, { partial: { ...makePartial('It'), call: record } })
  expect(seenBy('writes' in cut ? cut.writes : [])).toEqual([seen])
})

test('[EC 19] the trace tells of each thing that a model said, also of what was cut or is a plan', () => {
  const messagesIn = (writes: readonly Write[]) =>
    writes.flatMap((write) =>
      write.w === 'trace' ? write.entries.filter(({ payload }) => payload.type === 'message') : [],
    ).length
  const cut = served().continue({ type: 'break' }, { partial: makePartial('It says') })
  expect(messagesIn('writes' in cut ? cut.writes : [])).toBe(1)
  expect(messagesIn(served().fail('provider_error', makePartial('It says')).writes)).toBe(1)
  const planner = new Machine()
  planner.execute('plan it', { command: 'plan' })
  planner.resolve()
  expect(messagesIn(planner.answer({ text: 'first this, then that' }).writes)).toBe(1)
})
