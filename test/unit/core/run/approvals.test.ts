import { describe, expect, test } from 'vitest'
import { isCostGranted } from '../../../../src/core/run/cost-grants.ts'
import { grantsOf } from '../../../../src/core/run/grants.ts'
import type { AskedCost, CostGrant, Disclosure } from '../../../../src/core/run/state.ts'
import {
  BREAK,
  clientCall,
  decision,
  effectsOf,
  executeRequested,
  inject,
  Machine,
  revocation,
} from '../../../support/core/run-machine.ts'
import { COST, DISCLOSURE, machineIn } from '../../../support/core/run-phases.ts'

const IDLE = { reply: { by: 'outcome', outcome: { status: 'idle' } } }

const decide = (machine: Machine, decided: 'approved' | 'rejected', reason?: string) =>
  machine.continue(decision(machine.approvalId, decided, reason === undefined ? {} : { reason }))

const never = (): never => {
  throw new Error('there is no run')
}

const shownDetail = (machine: Machine) => {
  const outcome = envelope(machine)
  return outcome?.status === 'awaiting_approval' ? outcome.data.approval.detail : undefined
}

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
    })
  })

  test('a cost limit tells its estimate and what a yes allows, or that nobody knows the price', () => {
    const machine = new Machine()
    machine.execute('prompt')
    machine.resolve({ kind: 'cost_limit', cost: COST })
    const told = { rule: 'cheap', limit: '1', currency: 'USD', provider: 'openai', model: 'm' }
    const known = { estimated_min: '0.5', estimated_max: '2', up_to: '4' }
    expect(shownDetail(machine)).toEqual({ ...told, ...known })
    machine.continue(BREAK)
    machine.execute('another')
    machine.resolve({ kind: 'cost_limit', cost: { ...COST, estimate: null } })
    expect(shownDetail(machine)).toEqual({ ...told, reason: 'price_unknown' })
  })

  test.each(['AwaitingApproval: disclosure', 'AwaitingApproval: cost'] as const)(
    '%s, approved: the same turn goes on, and the decision is kept with its reason',
    (situation) => {
      const machine = machineIn(situation)
      const id = machine.approvalId
      expect(decide(machine, 'approved', 'go')).toMatchObject({ effects: [{ e: 'serve_turn' }] })
      expect(machine.state?.turn).toBe(1)
      expect(machine.store.approvals).toMatchObject([
        { id, targetType: 'gate', targetId: id, decision: 'approved', outcome: 'approved', reason: 'go' },
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
    expect(machine.state).toMatchObject({ phase: { k: 'Idle' }, active: null })
    expect(machine.state).not.toHaveProperty('costs')
    expect(machine.events.at(-1)?.type).toBe('turn_finished')
  })
})

describe('[EC 13] what has been disclosed in a run', () => {
  const approve = (machine: Machine, disclosure: Disclosure) => {
    machine.resolve({ kind: 'remote_disclosure', disclosure })
    decide(machine, 'approved')
  }

  test('[U23] is one grant per provider and locality: its paths add up, and its id stays', () => {
    const machine = new Machine()
    machine.execute('prompt')
    approve(machine, { provider: 'openai', model: 'a', paths: ['x', 'y'] })
    const [{ id } = { id: '' }] = grantsOf(machine.state ?? never())
    approve(machine, { provider: 'openai', model: 'b', paths: ['y', 'z'] })
    approve(machine, { provider: 'anthropic', model: 'c', paths: ['w'] })
    approve(machine, { provider: 'openai', model: 'd', paths: ['v'], local: true })
    expect(machine.state?.disclosed).toEqual([
      { id, provider: 'openai', model: 'a', paths: ['x', 'y', 'z'] },
      { id: expect.any(String), provider: 'anthropic', model: 'c', paths: ['w'] },
      { id: expect.any(String), provider: 'openai', model: 'd', paths: ['v'], local: true },
    ])
    expect(new Set(machine.state?.disclosed.map((one) => one.id)).size).toBe(3)
  })

  test('what an older release approved, without an id, is no grant; the next approval takes its place', () => {
    const machine = machineIn('AwaitingApproval: disclosure')
    if (machine.state === null) return never()
    machine.state = { ...machine.state, disclosed: [{ provider: 'openai', model: 'm', paths: ['old'] }] }
    expect(grantsOf(machine.state)).toEqual([])
    decide(machine, 'approved')
    expect(machine.state.disclosed).toEqual([{ ...DISCLOSURE, id: expect.any(String) }])
  })

  test('is forgotten with the run', () => {
    const machine = machineIn('AwaitingApproval: disclosure')
    decide(machine, 'approved')
    machine.round({ text: 'done' })
    machine.execute('next')
    expect(machine.state).toMatchObject({ disclosed: [], remoteDeclined: false })
  })
})

describe('[EC 13][U23] a cost that was accepted', () => {
  const accept = (machine: Machine, cost: AskedCost) => {
    machine.resolve({ kind: 'cost_limit', cost })
    decide(machine, 'approved')
  }
  const costing = (max: string | null, fields: Partial<AskedCost> = {}): AskedCost => ({
    ...COST,
    ...fields,
    estimate: max === null ? null : { min: '0.1', max },
  })
  const given: CostGrant[] = [{ id: 'g', rule: 'cheap', provider: 'openai', model: 'm', upTo: '4' }]

  test.each([
    ['at what was accepted', costing('4'), true],
    ['below it', costing('0.5'), true],
    ['above it', costing('4.000000000000000001'), false],
    ['at a price that nobody knows', costing(null), false],
    ['by another rule', costing('1', { rule: 'other' }), false],
    ['of another model', costing('1', { model: 'n' }), false],
    ['of another provider', costing('1', { provider: 'anthropic' }), false],
  ])('holds for a call %s: %s', (_, cost, holds) => {
    expect(isCostGranted(given, cost)).toBe(holds)
  })

  test('at a price that nobody knows, holds for such calls of its rule and model alone', () => {
    const [{ upTo: _, ...unknown } = never()] = given
    expect(isCostGranted([unknown], costing(null))).toBe(true)
    expect(isCostGranted([unknown], costing(null, { model: 'n' }))).toBe(false)
    expect(isCostGranted([unknown], costing('0.000001'))).toBe(false)
  })

  test('is a grant of up to twice what was shown; what is accepted later widens it, and its id stays', () => {
    const machine = new Machine()
    machine.execute('prompt')
    accept(machine, costing('2'))
    const [{ id } = never()] = grantsOf(machine.state ?? never())
    accept(machine, costing(null))
    accept(machine, costing('2', { model: 'n' }))
    accept(machine, costing('5'))
    const listed = { kind: 'cost_limit', provider: 'openai', model: 'm', paths: [], rule: 'cheap' }
    expect(grantsOf(machine.state ?? never())).toEqual([
      { ...listed, id: expect.any(String) },
      { ...listed, id: expect.any(String), model: 'n', up_to: '4' },
      { ...listed, id, up_to: '10' },
    ])
  })

  test('taken back is gone, and the others stay', () => {
    const machine = new Machine()
    machine.execute('prompt')
    accept(machine, costing('2'))
    accept(machine, costing('2', { rule: 'other' }))
    machine.resolve({ kind: 'remote_disclosure', disclosure: DISCLOSURE })
    decide(machine, 'approved')
    const ids = () => grantsOf(machine.state ?? never()).map(({ id }) => id)
    const [disclosure = '', first = '', second = ''] = ids()
    machine.accept(revocation(first))
    expect(ids()).toEqual([disclosure, second])
    expect(isCostGranted(machine.state?.costs ?? [], costing('2'))).toBe(false)
    machine.accept(revocation(second))
    expect(ids()).toEqual([disclosure])
    expect(machine.state).not.toHaveProperty('costs')
  })

  test('by an older release, which kept a yes without what it was about, brings nothing: it is asked again', () => {
    const machine = machineIn('AwaitingApproval: cost')
    if (machine.state?.phase.k !== 'AwaitingApproval') return never()
    const { cost: _, ...phase } = machine.state.phase
    machine.state = { ...machine.state, phase, ...{ costAccepted: true } }
    decide(machine, 'approved')
    expect(grantsOf(machine.state)).toEqual([])
    expect(machine.state).not.toHaveProperty('costs')
  })
})

describe('[U23] a grant', () => {
  const REFUSED = {
    refused: { code: 'invalid_request', status: 404, details: { grant_id: expect.any(String) } },
  }

  /** A run that is being served and was allowed something. */
  function granted(): { machine: Machine; id: string } {
    const machine = machineIn('AwaitingApproval: disclosure')
    decide(machine, 'approved')
    const [grant] = grantsOf(machine.state ?? never())
    return { machine, id: grant?.id ?? '' }
  }

  test('is listed while its run lives, paused or served', () => {
    const { machine, id } = granted()
    const listed = [{ id, kind: 'remote_disclosure', ...DISCLOSURE }]
    expect(grantsOf(machine.state ?? never())).toEqual(listed)
    machine.round({ calls: [clientCall('shell')] })
    expect(grantsOf(machine.state ?? never())).toEqual(listed)
    machine.continue(inject('and more'))
    expect(grantsOf(machine.state ?? never())).toEqual(listed)
    machine.crash()
    expect(grantsOf(machine.state ?? never())).toEqual(listed)
  })

  test.each<[string, (machine: Machine) => void]>([
    ['is answered', (machine) => machine.round({ text: 'done' })],
    [
      'fails',
      (machine) => {
        machine.resolve()
        machine.fail()
      },
    ],
    ['is stopped', (machine) => machine.continue(BREAK)],
    [
      'gives way to another',
      (machine) => {
        machine.crash()
        machine.execute('next')
      },
    ],
  ])('ends with its run, when that %s', (_, end) => {
    const { machine, id } = granted()
    end(machine)
    expect(grantsOf(machine.state ?? never())).toEqual([])
    expect(machine.send(revocation(id))).toMatchObject(REFUSED)
  })

  test('can be taken back, once, while a turn is served: the turn goes on', () => {
    const { machine, id } = granted()
    const active = machine.state?.active
    expect(machine.accept(revocation(id))).toMatchObject({ writes: [], events: [], effects: [] })
    expect(machine.state).toMatchObject({ active, disclosed: [] })
    expect(machine.send(revocation(id))).toMatchObject(REFUSED)
  })

  test('that was taken back does not come back with the approval that is sent again after a crash', () => {
    const machine = machineIn('AwaitingApproval: disclosure')
    const { approvalId } = machine
    decide(machine, 'approved')
    machine.accept(revocation(machine.state?.disclosed[0]?.id ?? ''))
    machine.crash()
    machine.continue(decision(approvalId, 'approved'))
    expect(machine.state?.active).not.toBe(null)
    expect(machine.state?.disclosed).toEqual([])
  })

  test('of nobody is refused, as in a session that never had a run', () => {
    expect(granted().machine.send(revocation('nobody'))).toMatchObject(REFUSED)
    expect(new Machine().send(revocation('nobody'))).toMatchObject(REFUSED)
  })
})

describe('[U37] what is said where no remote model was to hear it', () => {
  const marked = (machine: Machine) => machine.store.messages.map(({ localOnly }) => localOnly === true)

  test('is marked, as the request says: of an execute, and of an inject', () => {
    const machine = new Machine()
    machine.send(executeRequested('quiet', null, 'd', { localOnly: true }))
    machine.round({ calls: [clientCall('shell')] })
    machine.continue(inject('quiet, too'), { localOnly: true })
    machine.continue(inject('aloud'))
    expect(marked(machine)).toEqual([true, false, true, false])
  })

  test('is all that was and will be said in a run whose disclosure the user declined, and nothing of the next', () => {
    const machine = machineIn('AwaitingApproval: disclosure')
    decide(machine, 'rejected')
    machine.round({ calls: [clientCall('shell')] })
    machine.continue(inject('more'))
    // What the model said is marked by what its prompt held.
    expect(marked(machine)).toEqual([true, false, true])
    machine.continue(BREAK)
    machine.continue(inject('another run'))
    expect(marked(machine)).toEqual([true, false, true, false])
  })

  test('a declined disclosure to a local model marks nothing, and keeps the run from local models', () => {
    const machine = new Machine()
    machine.execute('prompt')
    machine.resolve({ kind: 'remote_disclosure', disclosure: { ...DISCLOSURE, local: true } })
    expect(envelope(machine)).toMatchObject({ data: { approval: { detail: { local: true } } } })
    decide(machine, 'rejected')
    expect(machine.state).toMatchObject({ localDeclined: true, remoteDeclined: false })
    machine.continue(inject('more'))
    expect(machine.state).toMatchObject({ localDeclined: true })
    expect(marked(machine)).toEqual([false, false])
    machine.continue(BREAK)
    machine.continue(inject('another run'))
    expect(machine.state).not.toHaveProperty('localDeclined')
  })
})

test('the policy of a run is known by its digest, also in the run that injected words begin', () => {
  const machine = new Machine()
  machine.send(executeRequested('prompt', null, 'd', { policyDigest: 'sha256:1' }))
  machine.round({ text: 'done' })
  machine.continue(inject('more'))
  expect(machine.state?.policyDigest).toBe('sha256:1')
  machine.continue(BREAK)
  machine.send(executeRequested('prompt', null, 'e', { policyDigest: null }))
  expect(machine.state).not.toHaveProperty('policyDigest')
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
    const id = machine.approvalId
    expect(decide(machine, 'approved')).toMatchObject({ effects: [{ e: 'serve_turn' }] })
    expect(machine.state).toMatchObject({ planning: false, planApproved: true, turn: 2 })
    expect(machine.store.plans.get(planId)?.status).toBe('approved')
    expect(machine.store.approvals).toMatchObject([{ id, targetType: 'plan', targetId: planId }])
  })

  test('rejected: idle', () => {
    const machine = machineIn('AwaitingApproval: plan')
    expect(decide(machine, 'rejected')).toMatchObject(IDLE)
    expect(machine.state).toMatchObject({ phase: { k: 'Idle' }, planning: false, planApproved: false })
    expect([...machine.store.plans.values()]).toMatchObject([{ status: 'rejected' }])
  })
})
