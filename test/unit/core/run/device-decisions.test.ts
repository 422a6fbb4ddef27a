import { describe, expect, test } from 'vitest'
import {
  BREAK,
  clientCall,
  decision,
  effectsOf,
  inject,
  Machine,
  results,
} from '../../../support/core/run-machine.ts'
import { COST, DISCLOSURE, machineIn } from '../../../support/core/run-phases.ts'
import { SEALED } from '../../../support/core/run-vault.ts'

/** A run that waits for its client: one call may run, two wait for a decision. */
function atTools(): Machine {
  const machine = new Machine()
  machine.execute('prompt')
  machine.round({
    calls: [clientCall('read_file'), clientCall('shell', 'ask'), clientCall('write_file', 'ask')],
  })
  return machine
}

/** A run that waits at a gate before this provider, started with the keys of these. */
function atGate(keyed: string[], session = new Machine()): Machine {
  session.execute('prompt', { keyed })
  session.resolve({ kind: 'remote_disclosure', disclosure: DISCLOSURE })
  return session
}

const told = (machine: Machine, from: number) => machine.events.slice(from).map(({ type }) => type)
const calls = (machine: Machine) => [...machine.store.calls.values()]
const decisions = (machine: Machine) =>
  machine.phase?.k === 'AwaitingTool' ? machine.phase.calls.map((call) => call.decision?.decision) : []

describe('[D02] the calls of a pause that ask', () => {
  test('are one batch, asked for once, behind the calls that it is about', () => {
    const machine = atTools()
    const types = told(machine, 0)
    expect(types.filter((type) => type === 'approval_requested')).toHaveLength(1)
    expect(types.at(-1)).toBe('approval_requested')
    expect(machine.events.at(-1)).toEqual({ type: 'approval_requested', approvalId: machine.batchId })
  })

  test('make none when nobody has to allow them', () => {
    const machine = new Machine()
    machine.execute('prompt')
    machine.round({ calls: [clientCall('read_file')] })
    expect(told(machine, 0)).not.toContain('approval_requested')
    expect(machine.phase).not.toHaveProperty('batchId')
  })

  test('[D05] approved by a device, wait for their driver: the pause stays, and holds the decision', () => {
    const machine = atTools()
    const { batchId, waiting } = machine
    const from = machine.events.length
    const result = machine.deviceDecides('approved')
    expect(result).toMatchObject({ writes: [], effects: [], state: { active: null } })
    expect(result).not.toHaveProperty('reply')
    expect(decisions(machine)).toEqual([undefined, 'approved', 'approved'])
    expect(machine.waiting).toEqual(waiting)
    expect(machine.events.slice(from)).toEqual([
      { type: 'approval_resolved', approvalId: batchId, decision: 'approved' },
      { type: 'decision_moved', approvalId: batchId },
    ])
  })

  test('[U21] the first decision wins: a second one is stale, and nothing reopens', () => {
    const machine = atTools()
    const { batchId, state } = machine
    expect(machine.deviceDecides('approved', 'another')).toMatchObject({ remote: 'stale_approval' })
    expect(machine.state).toBe(state)
    machine.deviceDecides('approved', batchId)
    const decided = machine.state
    for (const again of ['approved', 'rejected'] as const)
      expect(machine.deviceDecides(again, batchId)).toMatchObject({
        refused: { code: 'invalid_request' },
        remote: 'stale_approval',
      })
    expect(machine.state).toBe(decided)
  })

  test('[D05] the report of the driver is the truth, and resolves what no device decided', () => {
    const machine = atTools()
    const { batchId, waiting } = machine
    const from = machine.events.length
    machine.continue(results(waiting))
    expect(machine.events.slice(from, from + 2)).toMatchObject([
      { type: 'approval_resolved', approvalId: batchId, decision: 'approved' },
      { type: 'tool_finished' },
    ])
    expect(machine.deviceDecides('rejected', batchId)).toMatchObject({ remote: 'stale_approval' })
  })

  test('[D05] a driver may report a call as declined that a device approved', () => {
    const machine = atTools()
    machine.deviceDecides('approved')
    const [first = '', ...asking] = machine.waiting
    machine.continue(results([first, ...asking], { decision: 'rejected' }))
    expect(calls(machine).map(({ status }) => status)).toEqual(['failed', 'failed', 'failed'])
    expect(machine.store.approvals.map(({ decision: said }) => said)).toEqual([
      'rejected',
      'rejected',
      'rejected',
    ])
  })

  test('[D10] the report acts on the decision: told before the results, which keep it', () => {
    const machine = atTools()
    const { batchId } = machine
    machine.deviceDecides('approved')
    const from = machine.events.length
    machine.continue(results(machine.waiting))
    expect(told(machine, from)).toEqual(['decision_moved', 'tool_finished', 'tool_finished', 'tool_finished'])
    expect(machine.events[from]).toEqual({ type: 'decision_moved', approvalId: batchId })
    expect(machine.store.approvals).toMatchObject([
      { targetType: 'tool_call', decision: 'approved', outcome: 'approved' },
      { targetType: 'tool_call', decision: 'approved', outcome: 'approved' },
    ])
    expect(decisions(machine)).toEqual([undefined, 'approved', 'approved'])
  })

  test('[U22] declined by a device, they are declined and the others cancelled; the turn goes with them', () => {
    const machine = atTools()
    const { batchId, waiting } = machine
    const from = machine.events.length
    const result = machine.deviceDecides('rejected')
    expect(result).toMatchObject({
      reply: { by: 'outcome', outcome: { status: 'idle', data: { ended: { tool_calls: waiting } } } },
    })
    expect(machine.phase).toEqual({ k: 'Idle' })
    expect(calls(machine).map(({ result: said }) => said)).toEqual([
      'Cancelled by the user.',
      'Declined by the user.',
      'Declined by the user.',
    ])
    expect(machine.store.approvals.map(({ outcome }) => outcome)).toEqual(['rejected', 'rejected'])
    expect(told(machine, from)).toEqual([
      'approval_resolved',
      'tool_finished',
      'tool_finished',
      'tool_finished',
      'turn_cancelled',
    ])
    expect(machine.events[from]).toEqual({
      type: 'approval_resolved',
      approvalId: batchId,
      decision: 'rejected',
      outcome: 'rejected',
    })
  })

  test('[D05] results of a turn that a device declined are refused', () => {
    const machine = atTools()
    const { waiting } = machine
    machine.deviceDecides('rejected')
    expect(machine.continue(results(waiting))).toMatchObject({ refused: { code: 'invalid_request' } })
  })

  test.each([
    ['stop', BREAK],
    ['new words', inject('rather this')],
  ])('%s after a device approved: the batch is not resolved twice', (_, message) => {
    const machine = atTools()
    machine.deviceDecides('approved')
    machine.continue(message)
    expect(machine.events.filter(({ type }) => type === 'approval_resolved')).toHaveLength(1)
  })
})

describe('[D06] a gate that a device decides', () => {
  test.each([
    ['no keys came with the run', []],
    ['the keys that came are of others', ['anthropic']],
  ])('%s: the run goes on at once', (_, keyed) => {
    const machine = atGate(keyed)
    const id = machine.approvalId
    const result = machine.deviceDecides('approved')
    expect(result).toMatchObject({ reply: { by: 'turn' }, effects: [{ e: 'serve_turn' }] })
    expect(machine.state?.disclosed).toMatchObject([DISCLOSURE])
    expect(machine.events.at(-1)).toEqual({ type: 'approval_resolved', approvalId: id, decision: 'approved' })
    expect(machine.state?.deviceSettled).toEqual([id])
  })

  test('the key of its provider came with the run: the decision waits for the driver, and brings nothing yet', () => {
    const machine = atGate(['openai'])
    const id = machine.approvalId
    const from = machine.events.length
    const result = machine.deviceDecides('approved')
    expect(result).not.toHaveProperty('reply')
    expect(machine.state).toMatchObject({ active: null, disclosed: [] })
    expect(machine.phase).toMatchObject({
      decided: null,
      byDevice: { decision: 'approved', storedAtMs: 1_000_000 },
    })
    expect(told(machine, from)).toEqual(['approval_resolved', 'decision_moved'])
    expect(machine.store.approvals).toMatchObject([{ id, outcome: 'approved' }])
    expect(machine.state?.deviceSettled).toBeUndefined()
  })

  test('what waits for the driver goes on with the first decision, whatever the driver says; told is that it was acted on', () => {
    const machine = atGate(['openai'])
    machine.deviceDecides('approved')
    const from = machine.events.length
    const result = machine.continue(decision(machine.approvalId, 'rejected'))
    expect(result).toMatchObject({ reply: { by: 'turn' } })
    expect(told(machine, from)).toEqual(['decision_moved'])
    expect(machine.state).toMatchObject({ remoteDeclined: false, disclosed: [DISCLOSURE] })
    expect(machine.store.approvals).toHaveLength(1)
  })

  test('keys that came with a later message of the run count as well', () => {
    const machine = new Machine()
    machine.execute('prompt')
    machine.round({ calls: [clientCall('read_file')] })
    machine.continue(results(machine.waiting), { keyed: ['openai'] })
    machine.resolve({ kind: 'cost_limit', cost: COST })
    machine.deviceDecides('approved')
    expect(machine.state).toMatchObject({ active: null, keyed: ['openai'] })
  })

  test('keys and what devices settled belong to their run: one that begins with injected words has neither', () => {
    const machine = new Machine()
    machine.execute('prompt', { command: 'plan' })
    machine.round({ text: '1. do it' })
    machine.deviceDecides('approved')
    machine.continue(inject('and this'), { keyed: ['openai'] })
    expect(machine.state).toMatchObject({ keyed: ['openai'], deviceSettled: [expect.any(String)] })
    machine.round({ text: 'done' })
    machine.continue(inject('something else'))
    expect(machine.state).not.toHaveProperty('keyed')
    expect(machine.state).not.toHaveProperty('deviceSettled')
  })

  test('[D07] without a driver nobody can bring keys: the run goes on at once', () => {
    const machine = new Machine()
    machine.execute('prompt', { driver: { kind: 'none' }, keyed: ['openai'] })
    machine.resolve({ kind: 'remote_disclosure', disclosure: DISCLOSURE })
    expect(machine.deviceDecides('approved')).toMatchObject({ reply: { by: 'turn' } })
  })

  test('a plan has no provider: any key makes it wait, none lets it go on', () => {
    const waits = new Machine()
    waits.execute('prompt', { command: 'plan', keyed: ['openai'] })
    waits.round({ text: '1. do it' })
    waits.deviceDecides('approved')
    expect(waits.state).toMatchObject({ active: null, planning: true, planApproved: false })
    waits.continue(decision(waits.approvalId, 'approved'))
    expect(waits.state).toMatchObject({ planning: false, planApproved: true, turn: 2 })
    const goesOn = machineIn('AwaitingApproval: plan')
    goesOn.deviceDecides('approved')
    expect(goesOn.state).toMatchObject({ planning: false, planApproved: true, turn: 2 })
    expect(goesOn.state?.active).not.toBeNull()
  })

  test.each(['AwaitingApproval: cost', 'AwaitingApproval: plan'] as const)(
    '[EC 13] %s, declined: the run ends, whatever keys it was started with',
    (situation) => {
      const machine = machineIn(situation)
      machine.state = machine.state && { ...machine.state, keyed: ['openai'] }
      const id = machine.approvalId
      expect(machine.deviceDecides('rejected')).toMatchObject({ reply: { outcome: { status: 'idle' } } })
      expect(machine.phase).toEqual({ k: 'Idle' })
      expect(machine.state?.deviceSettled).toEqual([id])
      expect(machine.events.at(-1)).toMatchObject({ type: 'turn_finished', outcome: 'completed' })
    },
  )

  test('[EC 13] a disclosure, declined: the run goes on without it', () => {
    const machine = atGate([])
    machine.deviceDecides('rejected')
    expect(machine.state).toMatchObject({ remoteDeclined: true, active: {} })
    expect(machine.store.messages.every(({ localOnly }) => localOnly)).toBe(true)
  })

  test('[U21] decided once, by whomever: what comes later is stale', () => {
    const machine = atGate(['openai'])
    const id = machine.approvalId
    machine.deviceDecides('approved')
    expect(machine.deviceDecides('rejected', id)).toMatchObject({ remote: 'stale_approval' })
    const other = atGate(['openai'])
    other.continue(decision(other.approvalId, 'approved'))
    expect(other.deviceDecides('rejected', other.approvalId)).toMatchObject({ remote: 'stale_approval' })
    expect(new Machine().deviceDecides('approved')).toMatchObject({ remote: 'stale_approval' })
  })

  test('[U22] a stop after it was decided ends the run and leaves the decision as it is', () => {
    const machine = atGate(['openai'])
    machine.deviceDecides('approved')
    const result = machine.continue(BREAK)
    expect(machine.store.approvals).toHaveLength(1)
    expect(machine.events.filter(({ type }) => type === 'approval_resolved')).toHaveLength(1)
    expect(result).toMatchObject({ reply: { outcome: { data: { ended: { interrupted: false } } } } })
    expect(JSON.stringify(result)).not.toContain('approval_id')
  })

  test('[D20] cut off by a crash, it goes on from where it was decided', () => {
    const machine = atGate([])
    const id = machine.approvalId
    machine.deviceDecides('approved')
    machine.crash()
    expect(machine.continue(decision(id, 'rejected'))).toMatchObject({ reply: { by: 'turn' } })
    expect(machine.state).toMatchObject({ remoteDeclined: false, turn: 1 })
    expect(machine.store.approvals).toHaveLength(1)
  })
})

describe('[D10] a decision on its way', () => {
  test('is noted as delivered once, when the driver is shown it', () => {
    const machine = atTools()
    machine.deviceDecides('approved')
    const { batchId = '' } = machine.phase?.k === 'AwaitingTool' ? machine.phase : {}
    machine.nowMs += 5_000
    const from = machine.events.length
    const result = machine.accept({ type: 'decision_delivered' })
    expect(effectsOf(result)).toEqual([])
    expect(machine.events.slice(from)).toEqual([{ type: 'decision_moved', approvalId: batchId }])
    expect(JSON.stringify(machine.phase)).toContain('"storedAtMs":1000000,"deliveredAtMs":1005000')
    expect(machine.send({ type: 'decision_delivered' })).toEqual({ dropped: true })
  })

  test('of a gate, too', () => {
    const machine = atGate(['openai'])
    machine.deviceDecides('approved')
    machine.nowMs += 5_000
    machine.accept({ type: 'decision_delivered' })
    expect(machine.phase).toMatchObject({ byDevice: { deliveredAtMs: 1_005_000 } })
    expect(machine.send({ type: 'decision_delivered' })).toEqual({ dropped: true })
  })

  test('is nothing where no device decided, or the driver has acted on it', () => {
    expect(new Machine().send({ type: 'decision_delivered' })).toEqual({ dropped: true })
    for (const machine of [atTools(), atGate([]), machineIn('Idle')])
      expect(machine.send({ type: 'decision_delivered' })).toEqual({ dropped: true })
    const acted = atTools()
    acted.deviceDecides('approved')
    acted.continue(results(acted.waiting))
    acted.crash()
    expect(acted.send({ type: 'decision_delivered' })).toEqual({ dropped: true })
  })
})

describe('[D47] in a sealed session', () => {
  test('a decision is kept for the client, which has to open and to seal', () => {
    const machine = atGate([], new Machine(SEALED))
    expect(machine.deviceDecides('approved')).not.toHaveProperty('reply')
    expect(machine.state?.active).toBeNull()
    const { approvalId } = machine
    machine.continue(decision(approvalId, 'approved', { encrypted: machine.seals() }))
    expect(machine.state).toMatchObject({ disclosed: [DISCLOSURE], active: {} })
  })

  test('what a device declines ends like a stop: what is unsealed is asked for', () => {
    const machine = new Machine(SEALED)
    machine.execute('prompt')
    machine.round({ text: 'I need this', calls: [clientCall('shell', 'ask')] })
    expect(machine.deviceDecides('rejected')).toMatchObject({
      reply: { outcome: { status: 'awaiting_encrypt', data: { ended: {} } } },
    })
    expect(machine.phase).toEqual({ k: 'AwaitingEncrypt', resume: 'Finalize' })
    machine.continue({ type: 'sealed', data: { encrypted: machine.seals() } })
    expect(machine.phase).toEqual({ k: 'Idle' })
  })

  test('what a device declines after the texts were lost gives up what nobody holds', () => {
    const machine = new Machine(SEALED)
    machine.execute('prompt')
    machine.round({ text: 'I need this', calls: [clientCall('shell', 'ask')] })
    machine.crash()
    expect(machine.deviceDecides('rejected')).toMatchObject({ reply: { outcome: { status: 'idle' } } })
    expect(machine.phase).toEqual({ k: 'Idle' })
  })
})
