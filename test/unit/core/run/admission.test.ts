import { describe, expect, test } from 'vitest'
import { LEASE_MS } from '../../../../src/core/run/state.ts'
import type { ContinueKind, ContinueRequest } from '../../../../src/protocol/execution/continue.ts'
import { BREAK, decision, inject, Machine, results } from '../../../support/core/run-machine.ts'
import { machineIn, opening, phaseOf, SITUATIONS, type Situation } from '../../../support/core/run-phases.ts'

const KINDS: ContinueKind[] = ['tool_results', 'approval_decisions', 'decrypted', 'sealed', 'inject', 'break']

/** The message of a kind that would answer this run, if it waits for one of that kind. */
function message(kind: ContinueKind, machine: Machine): ContinueRequest {
  switch (kind) {
    case 'tool_results':
      return results(machine.waiting.length > 0 ? machine.waiting : ['nobody'])
    case 'approval_decisions':
      return decision(machine.phase?.k === 'AwaitingApproval' ? machine.approvalId : 'nobody', 'approved')
    case 'decrypted':
      return opening(machine)
    case 'sealed':
      return { type: 'sealed', data: { encrypted: machine.seals() } }
    case 'inject':
      return inject('more')
    case 'break':
      return BREAK
  }
}

/** Gives a message and says what became of it: a code, or that it was accepted. Whatever is refused changes nothing. */
function give(machine: Machine, request: ContinueRequest): string {
  const before = machine.state
  const stored = JSON.stringify([...machine.store.turns.values(), machine.store.messages])
  const told = machine.events.length
  const result = machine.continue(request)
  if ('state' in result) return 'accepted'
  expect(machine.state).toEqual(before)
  expect(JSON.stringify([...machine.store.turns.values(), machine.store.messages])).toBe(stored)
  expect(machine.events).toHaveLength(told)
  return 'refused' in result ? result.refused.code : 'dropped'
}

const ANSWERS: Record<ReturnType<typeof phaseOf>, ContinueKind | null> = {
  Idle: null,
  AwaitingTool: 'tool_results',
  AwaitingApproval: 'approval_decisions',
  AwaitingDecrypt: 'decrypted',
  AwaitingEncrypt: 'sealed',
}

/** Everything that a run can be doing while it is served, by the phase that it came from. */
function servedFrom(situation: Situation): Machine {
  const machine = machineIn(situation)
  if (situation === 'Idle' || situation === 'AwaitingEncrypt') machine.execute('next')
  else machine.continue(message(ANSWERS[phaseOf(situation)] ?? 'break', machine))
  expect(machine.state?.active).not.toBe(null)
  return machine
}

describe('[EC 5.3][D18] lock free', () => {
  test.each(
    SITUATIONS.flatMap((situation) => KINDS.map((kind): [Situation, ContinueKind] => [situation, kind])),
  )('%s, then %s', (situation, kind) => {
    const machine = machineIn(situation)
    const fits = kind === 'inject' || kind === 'break' || ANSWERS[phaseOf(situation)] === kind
    expect(give(machine, message(kind, machine))).toBe(fits ? 'accepted' : 'invalid_request')
  })

  test.each(SITUATIONS)('%s, then execute: a new run, also over a pause', (situation) => {
    const machine = machineIn(situation)
    const before = machine.state?.runId
    expect(machine.execute('next')).toMatchObject({ state: { phase: { k: 'Idle' }, turn: 1 } })
    expect(machine.state?.runId).not.toBe(before)
    expect(machine.state?.active).not.toBe(null)
  })
})

describe('[EC 5.3] lock held', () => {
  test.each(
    SITUATIONS.flatMap((situation) => KINDS.map((kind): [Situation, ContinueKind] => [situation, kind])),
  )('served after %s, then %s', (situation, kind) => {
    const machine = servedFrom(situation)
    const supersedes = kind === 'inject' || kind === 'break'
    expect(give(machine, message(kind, machine))).toBe(supersedes ? 'accepted' : 'run_in_flight')
  })

  test.each(SITUATIONS)('served after %s, then execute: in flight', (situation) => {
    const machine = servedFrom(situation)
    const before = machine.state
    expect(machine.execute('next')).toMatchObject({ refused: { code: 'run_in_flight' } })
    expect(machine.state).toBe(before)
  })

  test('[D21] a lock whose lease ran out is none', () => {
    for (const kind of KINDS) {
      const machine = servedFrom('AwaitingTool')
      machine.nowMs += LEASE_MS - 1
      expect(machine.execute('next')).toMatchObject({ refused: { code: 'run_in_flight' } })
      machine.nowMs += 1
      const fits = kind === 'tool_results' || kind === 'inject' || kind === 'break'
      expect([kind, give(machine, message(kind, machine))]).toEqual([
        kind,
        fits ? 'accepted' : 'invalid_request',
      ])
    }
    const machine = servedFrom('Idle')
    machine.nowMs += LEASE_MS
    expect(machine.execute('next')).toMatchObject({ state: { turn: 1 } })
  })
})

describe('[EC 5.3] a session that never had a run', () => {
  test.each(KINDS)('%s finds nothing to continue', (kind) => {
    const machine = new Machine()
    expect(give(machine, message(kind, machine))).toBe('invalid_request')
    expect(machine.state).toBe(null)
  })

  test('what is no request finds nothing to do', () => {
    const machine = new Machine()
    expect(machine.crash()).toEqual({ dropped: true })
    expect(machine.send({ type: 'lease_renewed', lease: 'x' })).toEqual({ dropped: true })
  })
})

describe('[EC 12.4] results that do not answer the pause leave it as it was', () => {
  type Misfit = (all: string[]) => [ContinueRequest, details: object]
  test.each<[string, Misfit]>([
    ['one is missing', ([one = '', other]) => [results([one]), { missing: [other] }]],
    ['none', (all) => [results([]), { missing: all }]],
    ['one twice', (all) => [results([...all, all[0] ?? '']), { call_id: all[0] }]],
    ['one unknown', (all) => [results([...all, 'other']), { call_id: 'other' }]],
    ['[U17] an older driver', (all) => [results(all, { driver_epoch: 0 }), { driver_epoch: 1 }]],
    ['[U17] a driver to come', (all) => [results(all, { driver_epoch: 2 }), { driver_epoch: 1 }]],
  ])('%s', (_, make) => {
    const machine = machineIn('AwaitingTool')
    const [request, details] = make(machine.waiting)
    const before = machine.state
    expect(machine.continue(request)).toMatchObject({ refused: { code: 'invalid_request', details } })
    expect(machine.state).toBe(before)
    expect(give(machine, results(machine.waiting, { driver_epoch: 1 }))).toBe('accepted')
  })

  test('their order is free', () => {
    const machine = machineIn('AwaitingTool')
    expect(give(machine, results(machine.waiting.toReversed()))).toBe('accepted')
  })
})

describe('[EC 13] decisions', () => {
  test('the one that names the pending approval counts, others are ignored', () => {
    const machine = machineIn('AwaitingApproval: cost')
    const other = { approval_id: 'other', decision: 'rejected' as const }
    const ours = { approval_id: machine.approvalId, decision: 'approved' as const }
    expect(give(machine, { type: 'approval_decisions', data: { decisions: [other, ours] } })).toBe('accepted')
    expect(machine.store.approvals).toMatchObject([{ decision: 'approved' }])
  })

  test('none that names it: refused, and the approval stays open', () => {
    const machine = machineIn('AwaitingApproval: cost')
    expect(give(machine, decision('other', 'approved'))).toBe('invalid_request')
    expect(give(machine, { type: 'approval_decisions', data: { decisions: [] } })).toBe('invalid_request')
    expect(give(machine, decision(machine.approvalId, 'approved'))).toBe('accepted')
  })
})
