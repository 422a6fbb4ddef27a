import { describe, expect, test } from 'vitest'
import type { Disclosure } from '../../../../src/core/run/state.ts'
import { decision, effectsOf, inject, Machine } from '../../../support/core/run-machine.ts'
import { DISCLOSURE, machineIn } from '../../../support/core/run-phases.ts'

const IDLE = { reply: { by: 'outcome', outcome: { status: 'idle' } } }

const decide = (machine: Machine, decided: 'approved' | 'rejected', reason?: string) =>
  machine.continue(decision(machine.approvalId, decided, reason === undefined ? {} : { reason }))

const envelope = (machine: Machine) => machine.store.turns.get(machine.state?.checkpointTurnId ?? '')?.outcome

describe('[EC 13] a gate stands before the model', () => {
  test('no call leaves and none is noted; what it is about is told', () => {
    const machine = new Machine()
    machine.execute('prompt')
    const step = machine.resolve({ kind: 'remote_disclosure', disclosure: DISCLOSURE })
    expect(effectsOf(step)).toEqual(['answer'])
    expect([...machine.store.turns.values()]).toMatchObject([{ status: 'done', calls: [] }])
    expect(envelope(machine)).toMatchObject({
      data: { approval: { approval_id: machine.approvalId, kind: 'remote_disclosure', detail: DISCLOSURE } },
    })
    expect(machine.events.at(-1)).toEqual({
      type: 'approval_requested',
      approvalId: machine.approvalId,
      kind: 'remote_disclosure',
    })
  })

  test('a cost limit tells its estimate', () => {
    const machine = new Machine()
    machine.execute('prompt')
    machine.resolve({ kind: 'cost_limit', detail: { limit: '1', estimated_max: '2' } })
    expect(envelope(machine)).toMatchObject({
      data: { approval: { kind: 'cost_limit', detail: { limit: '1', estimated_max: '2' } } },
    })
  })

  test.each(['AwaitingApproval: disclosure', 'AwaitingApproval: cost'] as const)(
    '%s, approved: the same turn goes on, and the decision is kept with its reason',
    (situation) => {
      const machine = machineIn(situation)
      const id = machine.approvalId
      expect(decide(machine, 'approved', 'go')).toMatchObject({ effects: [{ e: 'serve_turn' }] })
      expect(machine.state?.turn).toBe(1)
      expect(machine.store.approvals).toMatchObject([
        { targetType: 'gate', targetId: id, decision: 'approved', reason: 'go' },
      ])
      expect(machine.events.at(-1)).toEqual({
        type: 'approval_resolved',
        approvalId: id,
        decision: 'approved',
      })
    },
  )

  test('a disclosure that is declined: the turn is decided again, without remote models', () => {
    const machine = machineIn('AwaitingApproval: disclosure')
    expect(decide(machine, 'rejected')).toMatchObject({ effects: [{ e: 'serve_turn' }] })
    expect(machine.state).toMatchObject({ remoteDeclined: true, disclosed: [], turn: 1 })
  })

  test('a cost that is declined: idle, and the run has its end', () => {
    const machine = machineIn('AwaitingApproval: cost')
    expect(decide(machine, 'rejected')).toMatchObject(IDLE)
    expect(machine.state).toMatchObject({ phase: { k: 'Idle' }, active: null, costAccepted: false })
    expect(machine.events.at(-1)?.type).toBe('turn_finished')
  })
})

describe('[EC 13] what has been disclosed in a run', () => {
  const approve = (machine: Machine, disclosure: Disclosure) => {
    machine.resolve({ kind: 'remote_disclosure', disclosure })
    decide(machine, 'approved')
  }

  test('is kept for each model, its paths added up, and no other model gains by it', () => {
    const machine = new Machine()
    machine.execute('prompt')
    approve(machine, { provider: 'openai', model: 'a', paths: ['x', 'y'] })
    approve(machine, { provider: 'openai', model: 'b', paths: ['x'] })
    approve(machine, { provider: 'openai', model: 'a', paths: ['y', 'z'] })
    expect(machine.state?.disclosed).toEqual([
      { provider: 'openai', model: 'b', paths: ['x'] },
      { provider: 'openai', model: 'a', paths: ['x', 'y', 'z'] },
    ])
  })

  test('is forgotten with the run', () => {
    const machine = machineIn('AwaitingApproval: disclosure')
    decide(machine, 'approved')
    machine.round({ text: 'done' })
    machine.execute('next')
    expect(machine.state).toMatchObject({ disclosed: [], remoteDeclined: false, costAccepted: false })
  })
})

describe('[EC 14] plan mode', () => {
  test('only the command enters it', () => {
    for (const [command, planning] of [
      ['plan', true],
      ['edit', false],
      [null, false],
    ] as const) {
      const machine = new Machine()
      machine.execute('prompt', { command })
      expect(machine.state?.planning).toBe(planning)
    }
  })

  test('a turn that ends without calls is a plan: stored, told in whole, and waiting for a yes', () => {
    const machine = machineIn('AwaitingApproval: plan')
    const [[planId, plan] = ['', undefined]] = [...machine.store.plans]
    expect(plan).toEqual({ content: '1. do it', status: 'draft', version: 1 })
    expect(envelope(machine)).toMatchObject({
      data: { approval: { kind: 'plan', detail: { plan: planId, version: 1, content: '1. do it' } } },
    })
    // The next turn has to see it.
    expect(machine.store.messages.map(({ role, text }) => [role, text])).toEqual([
      ['user', 'prompt'],
      ['assistant', '1. do it'],
    ])
  })

  test('what is said while a plan waits makes the next version of it; another run counts anew', () => {
    const machine = machineIn('AwaitingApproval: plan')
    machine.continue(inject('with tests, too'))
    machine.round({ text: '1. do it 2. test it' })
    expect([...machine.store.plans.values()]).toEqual([
      { content: '1. do it', status: 'rejected', version: 1 },
      { content: '1. do it 2. test it', status: 'draft', version: 2 },
    ])
    machine.execute('plan something else', { command: 'plan' })
    machine.round({ text: 'other' })
    expect([...machine.store.plans.values()].at(-1)).toMatchObject({ version: 1, content: 'other' })
  })

  test('a planning that ends without a word has made no plan: the run fails', () => {
    const machine = new Machine()
    machine.execute('plan it', { command: 'plan' })
    machine.round({ text: ' \n' })
    expect(envelope(machine)).toMatchObject({ status: 'error', data: { error: { code: 'provider_error' } } })
    expect(machine.state).toMatchObject({ phase: { k: 'Idle' }, planning: false })
    expect(machine.store.plans.size).toBe(0)
  })

  test('approved: planning ends, and the next turn runs at once', () => {
    const machine = machineIn('AwaitingApproval: plan')
    const [planId = ''] = machine.store.plans.keys()
    expect(decide(machine, 'approved')).toMatchObject({ effects: [{ e: 'serve_turn' }] })
    expect(machine.state).toMatchObject({ planning: false, planApproved: true, turn: 2 })
    expect(machine.store.plans.get(planId)?.status).toBe('approved')
    expect(machine.store.approvals).toMatchObject([{ targetType: 'plan', targetId: planId }])
  })

  test('rejected: idle', () => {
    const machine = machineIn('AwaitingApproval: plan')
    expect(decide(machine, 'rejected')).toMatchObject(IDLE)
    expect(machine.state).toMatchObject({ phase: { k: 'Idle' }, planning: false, planApproved: false })
    expect([...machine.store.plans.values()]).toMatchObject([{ status: 'rejected' }])
  })

  test('in a sealed session the plan travels to be sealed, not in the approval', () => {
    const machine = new Machine()
    machine.execute('plan it', { command: 'plan' })
    machine.round({ text: '1. do it', toEncrypt: { 'plan:1': '1. do it' } })
    const told = envelope(machine)
    expect(told).toMatchObject({ data: { to_encrypt: { 'plan:1': '1. do it' } } })
    expect(JSON.stringify(told?.status === 'awaiting_approval' && told.data.approval)).not.toContain('do it')
  })
})
