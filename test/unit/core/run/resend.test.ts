import { describe, expect, test } from 'vitest'
import type { RunInputEvent } from '../../../../src/core/run/inputs.ts'
import { LEASE_MS } from '../../../../src/core/run/state.ts'
import {
  BREAK,
  clientCall,
  decision,
  effectsOf,
  inject,
  Machine,
  makeRecord,
  makeReport,
  refusedCall,
  results,
} from '../../../support/core/run-machine.ts'
import { machineIn, opening } from '../../../support/core/run-phases.ts'

const said = (machine: Machine): string[] => machine.store.messages.map(({ text }) => text)
const told = (machine: Machine): string[] => machine.events.map(({ type }) => type)

describe('[EC 5.8][U06] a crash', () => {
  test('frees the lock, keeps the phase, and closes the turn that it cut off', () => {
    const machine = machineIn('AwaitingTool')
    machine.continue(results(machine.waiting))
    machine.resolve()
    const { phase } = machine
    expect(effectsOf(machine.accept({ type: 'object_started' }))).toEqual(['cancel_turn'])
    expect(machine.state).toMatchObject({ active: null, phase })
    const last = [...machine.store.turns.values()].at(-1)
    // What the call used is unknown, and says so (D23).
    expect(last).toMatchObject({
      status: 'interrupted',
      outcome: null,
      calls: [{ status: 'lost', usage: null }],
    })
    expect(told(machine).at(-1)).toBe('turn_interrupted')
  })

  test('of an object that served nothing changes nothing', () => {
    const machine = machineIn('AwaitingTool')
    const before = machine.state
    expect(machine.crash()).toEqual({ dropped: true })
    expect(machine.state).toBe(before)
  })
})

describe('[D20] the same request sent again after a crash goes on and stores nothing twice', () => {
  test('execute: the same run, its prompt once, a new turn under the same number', () => {
    const machine = new Machine()
    machine.execute('prompt', { digest: 'same' })
    machine.round({ calls: [refusedCall('teleport')] })
    const runId = machine.state?.runId
    machine.crash()
    machine.execute('prompt', { digest: 'same' })
    expect(machine.state).toMatchObject({ runId, turn: 1, driverEpoch: 1, unattendedRounds: 1 })
    expect(said(machine)).toEqual(['prompt', ''])
    expect(machine.store.runInputs).toBe(1)
    machine.round({ text: 'answer' })
    expect(said(machine)).toEqual(['prompt', '', 'answer'])
    expect(told(machine)).toEqual([
      'turn_started',
      'tool_started',
      'tool_finished',
      'turn_interrupted',
      'turn_finished',
    ])
    expect([...machine.store.turns.values()].map(({ turn, status }) => [turn, status])).toEqual([
      [1, 'interrupted'],
      [1, 'done'],
    ])
  })

  test('as often as it crashes', () => {
    const machine = new Machine()
    for (let i = 0; i < 3; i++) {
      machine.execute('prompt', { digest: 'same' })
      machine.crash()
    }
    machine.execute('prompt', { digest: 'same' })
    machine.round({ text: 'answer' })
    expect(said(machine)).toEqual(['prompt', 'answer'])
  })

  test('also where only the lease of the turn ran out; the old one is cut', () => {
    const machine = new Machine()
    machine.execute('prompt', { digest: 'same' })
    const old = machine.state?.active?.turnId
    machine.nowMs += LEASE_MS
    const again = machine.execute('prompt', { digest: 'same' })
    expect(again).toMatchObject({ effects: [{ e: 'cancel_turn', turnId: old }, { e: 'serve_turn' }] })
    expect(said(machine)).toEqual(['prompt'])
  })

  test('after a checkpoint it is a new run: the first one was answered', () => {
    const machine = new Machine()
    machine.execute('prompt', { digest: 'same' })
    machine.round({ text: 'answer' })
    machine.execute('prompt', { digest: 'same' })
    expect(said(machine)).toEqual(['prompt', 'answer', 'prompt'])
  })

  test('another execute is a new run; the one that was cut off is told to be over', () => {
    const machine = new Machine()
    machine.execute('prompt')
    machine.crash()
    machine.execute('other')
    expect(said(machine)).toEqual(['prompt', 'other'])
    expect(told(machine)).toEqual(['turn_started', 'turn_interrupted', 'turn_cancelled', 'turn_started'])
  })

  test('tool results: stored once, told once, and the turn that they started is served again', () => {
    const machine = machineIn('AwaitingTool')
    const answer = results(machine.waiting, { content: 'first', decision: 'approved' })
    machine.continue(answer, { digest: 'same' })
    machine.crash()
    machine.continue(answer, { digest: 'same' })
    expect(machine.state?.turn).toBe(2)
    expect(told(machine).filter((type) => type === 'tool_finished')).toHaveLength(2)
    expect(machine.store.approvals).toHaveLength(2)
    machine.round({ text: 'answer' })
    expect(said(machine)).toEqual(['prompt', '', 'answer'])
  })

  test('[U21][U24] other results for the same calls are accepted and ignored: the first stand', () => {
    const machine = machineIn('AwaitingTool')
    const [first = ''] = machine.waiting
    machine.continue(results(machine.waiting, { content: 'first' }))
    machine.crash()
    expect(machine.continue(results(machine.waiting, { content: 'second', is_error: true }))).toMatchObject({
      state: { turn: 2 },
    })
    expect(machine.store.calls.get(first)).toMatchObject({ status: 'completed', result: 'first' })
    expect(told(machine).filter((type) => type === 'tool_finished')).toHaveLength(2)
  })

  test('[U21] an approved plan: approved once, and stays so whatever comes after the crash', () => {
    const machine = machineIn('AwaitingApproval: plan')
    const id = machine.approvalId
    machine.continue(decision(id, 'approved'), { digest: 'same' })
    machine.crash()
    machine.continue(decision(id, 'approved'), { digest: 'same' })
    expect(machine.state).toMatchObject({ turn: 2, planning: false, planApproved: true })
    machine.crash()
    machine.continue(decision(id, 'rejected'))
    expect(machine.state?.active).not.toBe(null)
    expect(machine.store.approvals).toMatchObject([{ decision: 'approved' }])
    expect([...machine.store.plans.values()]).toMatchObject([{ status: 'approved' }])
    expect(told(machine).filter((type) => type === 'approval_resolved')).toHaveLength(1)
  })

  test('a declined disclosure stays declined', () => {
    const machine = machineIn('AwaitingApproval: disclosure')
    const id = machine.approvalId
    machine.continue(decision(id, 'rejected'))
    machine.crash()
    machine.continue(decision(id, 'approved'))
    expect(machine.state).toMatchObject({ remoteDeclined: true, disclosed: [] })
  })

  test('inject: the words once', () => {
    const machine = machineIn('AwaitingTool')
    machine.continue(inject('stop'), { digest: 'same' })
    machine.crash()
    machine.continue(inject('stop'), { digest: 'same' })
    expect(said(machine)).toEqual(['prompt', '', 'stop'])
    expect(machine.state?.turn).toBe(2)
    expect(told(machine).filter((type) => type === 'input_injected')).toHaveLength(1)
  })

  test('inject into an idle session: one run, its words once', () => {
    const machine = machineIn('Idle')
    machine.continue(inject('more'), { digest: 'same' })
    const runId = machine.state?.runId
    machine.crash()
    machine.continue(inject('more'), { digest: 'same' })
    expect(machine.state).toMatchObject({ runId, turn: 1 })
    expect(machine.store.runInputs).toBe(2)
  })

  test('opened records: opened once more, sealed no second time', () => {
    const machine = machineIn('AwaitingDecrypt')
    const message = opening(machine)
    const opened = Object.keys(message.data.plaintext)
    machine.continue(message, { digest: 'same' })
    machine.crash()
    const again = machine.continue(message, { digest: 'same' })
    expect(again).toMatchObject({ state: { turn: 1 }, effects: [{ e: 'serve_turn' }] })
    expect('writes' in again && again.writes.map(({ w }) => w)).toEqual(['open_turn'])
    expect([...(machine.sealed?.held.keys() ?? [])].sort()).toEqual(opened.sort())
  })
})

describe('[EC 5.8] after a crash the user may also do something else', () => {
  test('inject goes on in the run that was cut off: its prompt and files are still what it is about', () => {
    const machine = new Machine()
    machine.execute('prompt')
    const runId = machine.state?.runId
    machine.crash()
    machine.continue(inject('and this'))
    expect(machine.state).toMatchObject({ runId, turn: 2 })
    expect(machine.store.runInputs).toBe(1)
    expect(told(machine)).toEqual(['turn_started', 'turn_interrupted', 'input_injected'])
  })

  test('break ends it, and says so once', () => {
    const machine = new Machine()
    machine.execute('prompt', { digest: 'same' })
    machine.crash()
    expect(machine.continue(BREAK)).toMatchObject({ reply: { by: 'outcome', outcome: { status: 'idle' } } })
    machine.continue(BREAK)
    expect(told(machine)).toEqual(['turn_started', 'turn_interrupted', 'turn_cancelled'])
    // The request that was cut off has no claim to go on any more.
    machine.execute('prompt', { digest: 'same' })
    expect(said(machine)).toEqual(['prompt', 'prompt'])
  })

  test('calls whose results had been accepted are not cancelled by it', () => {
    const machine = machineIn('AwaitingTool')
    machine.continue(results(machine.waiting))
    machine.crash()
    machine.continue(BREAK)
    expect([...machine.store.calls.values()].map(({ status }) => status)).toEqual(['completed', 'completed'])
  })
})

describe('[D22] ids', () => {
  test('all come from outside, each is used once, and the same ids give the same step', () => {
    const machine = new Machine()
    machine.execute('prompt')
    machine.resolve()
    const input: RunInputEvent = {
      type: 'model_responded',
      ending: null,
      lease: machine.lease,
      text: 'x',
      report: makeReport(),
      calls: [clientCall('shell'), refusedCall('y')],
      call: makeRecord('answered'),
      usage: {},
    }
    const foreseen = machine.peek(input)
    expect(machine.send(input)).toEqual(foreseen)
  })
})
