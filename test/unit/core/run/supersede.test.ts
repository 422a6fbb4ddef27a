import { describe, expect, test } from 'vitest'
import { LEASE_MS } from '../../../../src/core/run/state.ts'
import type { ContinueRequest } from '../../../../src/protocol/execution/continue.ts'
import {
  BREAK,
  clientCall,
  decision,
  effectsOf,
  inject,
  Machine,
  makePartial,
  results,
} from '../../../support/core/run-machine.ts'
import { COST, machineIn, SITUATIONS, type Situation, stopOf } from '../../../support/core/run-phases.ts'

const told = (machine: Machine, from = 0): string[] => machine.events.slice(from).map(({ type }) => type)
const said = (machine: Machine) =>
  machine.store.messages.map(({ text, interrupted }) => (interrupted ? `${text}…` : text))

/** What a client gets told at once, and not by a turn. */
const IDLE = { reply: { by: 'outcome', outcome: { status: 'idle' } } }

describe('[EC 15] while a turn is being served', () => {
  test.each([
    ['inject', inject('do this')],
    ['break', BREAK],
  ])('%s cuts it: what was said is kept as interrupted, with the usage that is known', (_, message) => {
    const machine = new Machine()
    machine.execute('prompt')
    machine.resolve()
    const cut = machine.state?.active?.turnId
    const result = machine.continue(message, { partial: makePartial('I was go') })
    expect(result).toMatchObject({ effects: expect.arrayContaining([{ e: 'cancel_turn', turnId: cut }]) })
    expect(said(machine).slice(0, 2)).toEqual(['prompt', 'I was go…'])
    expect(machine.store.turns.get(cut ?? '')).toMatchObject({
      status: 'superseded',
      outcome: null,
      calls: [{ status: 'cancelled', usage: { inputTokens: 3 } }],
    })
  })

  test('a model that had said nothing leaves no message, but its call is accounted for', () => {
    const machine = new Machine()
    machine.execute('prompt')
    machine.resolve()
    machine.continue(BREAK, { partial: makePartial('') })
    expect(said(machine)).toEqual(['prompt'])
    expect([...machine.store.turns.values()]).toMatchObject([{ calls: [{ status: 'cancelled' }] }])
  })

  test('inject goes on: the same run, its words joined, the next turn', () => {
    const machine = new Machine()
    machine.execute('prompt')
    const { runId } = machine.state ?? {}
    const result = machine.continue(inject('first', 'second'))
    expect(result).toMatchObject({ reply: { by: 'turn', turnId: machine.state?.active?.turnId } })
    expect(machine.state).toMatchObject({ runId, turn: 2, phase: { k: 'Idle' } })
    expect(said(machine)).toEqual(['prompt', 'first\nsecond'])
    expect(told(machine)).toEqual(['turn_started', 'input_injected'])
    expect(machine.store.runInputs).toBe(1)
  })

  test('break goes idle and answers at once', () => {
    const machine = new Machine()
    machine.execute('prompt')
    expect(machine.continue(BREAK)).toMatchObject(IDLE)
    expect(machine.state).toMatchObject({ phase: { k: 'Idle' }, active: null, checkpointTurnId: null })
    expect(told(machine)).toEqual(['turn_started', 'turn_cancelled'])
  })

  test('results that had been accepted stand; nothing is cancelled that has been answered', () => {
    const machine = machineIn('AwaitingTool')
    machine.continue(results(machine.waiting))
    const from = machine.events.length
    machine.continue(inject('wait'))
    expect([...machine.store.calls.values()].map(({ status }) => status)).toEqual(['completed', 'completed'])
    expect(told(machine, from)).toEqual(['input_injected'])
  })

  test('an approval that had been given stands', () => {
    const machine = machineIn('AwaitingApproval: plan')
    machine.continue(decision(machine.approvalId, 'approved'))
    const from = machine.events.length
    machine.continue(inject('wait'))
    expect([...machine.store.plans.values()]).toMatchObject([{ status: 'approved' }])
    expect(told(machine, from)).toEqual(['input_injected'])
    expect(machine.state?.planApproved).toBe(true)
  })

  test('a turn whose lease ran out is cut like any other, and what it said is kept', () => {
    const machine = new Machine()
    machine.execute('prompt')
    machine.resolve()
    machine.nowMs += LEASE_MS
    machine.continue(inject('go on'), { partial: makePartial('I was') })
    expect(said(machine)).toEqual(['prompt', 'I was…', 'go on'])
    expect([...machine.store.turns.values()].map(({ status }) => status)).toEqual(['superseded', 'running'])
  })
})

describe('[EC 15][U22] in a pause', () => {
  const started = (machine: Machine): string[] =>
    [...machine.store.calls.values()].map(({ status, result }) => `${status}: ${result}`)

  test.each([
    ['inject', inject('no'), 'Cancelled: the user gave new input.'],
    ['break', BREAK, 'Cancelled by the user.'],
  ])('%s cancels every call that waits, with a result that says so', (_, message, note) => {
    const machine = machineIn('AwaitingTool')
    const from = machine.events.length
    machine.continue(message)
    expect(started(machine)).toEqual([`failed: ${note}`, `failed: ${note}`])
    expect(told(machine, from).slice(0, 3)).toEqual(['approval_resolved', 'tool_finished', 'tool_finished'])
  })

  test('execute does, too, and the run that was given up is told to be over', () => {
    const machine = machineIn('AwaitingTool')
    const from = machine.events.length
    machine.execute('other')
    const note = 'Cancelled: the user started something else.'
    expect(started(machine)).toEqual([`failed: ${note}`, `failed: ${note}`])
    expect(told(machine, from)).toEqual([
      'approval_resolved',
      'tool_finished',
      'tool_finished',
      'turn_cancelled',
      'turn_started',
    ])
  })

  test('cancelled calls are traced as failed', () => {
    const machine = machineIn('AwaitingTool')
    machine.continue(BREAK)
    const [turn] = [...machine.store.turns.values()]
    const last = turn?.trace.slice(-2).map(({ payload }) => payload)
    expect(last).toMatchObject([
      { tool_name: 'read_file', status: 'failed' },
      { tool_name: 'shell', status: 'failed' },
    ])
  })

  test.each<Situation>(['AwaitingApproval: disclosure', 'AwaitingApproval: cost', 'AwaitingApproval: plan'])(
    '%s: what is not decided counts as rejected, once',
    (situation) => {
      for (const message of [inject('no'), BREAK]) {
        const machine = machineIn(situation)
        machine.continue(message)
        expect(machine.events.filter(({ type }) => type === 'approval_resolved')).toMatchObject([
          { decision: 'rejected' },
        ])
        expect([...machine.store.plans.values()].every(({ status }) => status === 'rejected')).toBe(true)
      }
    },
  )

  test.each<Situation>(['AwaitingApproval: disclosure', 'AwaitingApproval: cost', 'AwaitingApproval: plan'])(
    '%s: what became of it is kept under its id, and a stop is told from new input',
    (situation) => {
      const endings: [(machine: Machine) => unknown, string][] = [
        [(machine) => machine.continue(BREAK), 'cancelled'],
        [(machine) => machine.continue(inject('no')), 'superseded'],
        [(machine) => machine.execute('other'), 'superseded'],
      ]
      for (const [end, outcome] of endings) {
        const machine = machineIn(situation)
        const id = machine.approvalId
        const [planId = id] = machine.store.plans.keys()
        end(machine)
        const targetType = situation === 'AwaitingApproval: plan' ? 'plan' : 'gate'
        expect(machine.store.approvals).toEqual([
          { w: 'approval', id, targetType, targetId: planId, decision: 'rejected', outcome },
        ])
      }
    },
  )

  test.each<Situation>(['AwaitingApproval: disclosure', 'AwaitingApproval: cost', 'AwaitingApproval: plan'])(
    '[EC 13] %s: the trace shows that it was ended, and by what, under the route of the gate',
    (situation) => {
      const endings: [(machine: Machine) => unknown, string][] = [
        [(machine) => machine.continue(BREAK), 'cancelled: the run was stopped'],
        [(machine) => machine.continue(inject('no')), 'superseded: the user gave new input'],
        [(machine) => machine.execute('other'), 'superseded: the user started something else'],
      ]
      for (const [end, reason] of endings) {
        const machine = machineIn(situation)
        const id = machine.approvalId
        const [planId] = machine.store.plans.keys()
        const kind = machine.phase?.k === 'AwaitingApproval' ? machine.phase.kind : null
        end(machine)
        const traced = [...machine.store.turns.values()].flatMap(({ trace }) => trace)
        const [target_type, target_id] = planId === undefined ? ['gate', id] : ['plan', planId]
        expect(traced.filter(({ payload }) => payload.type === 'approval')).toMatchObject([
          {
            provider: 'ollama',
            model: 'm',
            payload: { type: 'approval', target_type, target_id, decision: 'rejected', reason, kind },
          },
        ])
      }
    },
  )

  test('a stop that comes after the decision leaves it as it was, also in the trace', () => {
    const machine = machineIn('AwaitingApproval: plan')
    machine.continue(decision(machine.approvalId, 'approved'))
    machine.continue(BREAK)
    expect(machine.store.approvals).toMatchObject([{ outcome: 'approved' }])
    const traced = [...machine.store.turns.values()].flatMap(({ trace }) => trace)
    expect(traced.filter(({ payload }) => payload.type === 'approval')).toHaveLength(1)
  })

  test.each(SITUATIONS)('%s, then break: idle, and one end of the run', (situation) => {
    const machine = machineIn(situation)
    expect(machine.continue(stopOf(machine))).toMatchObject(IDLE)
    expect(machine.state).toMatchObject({ phase: { k: 'Idle' }, active: null, planning: false })
    machine.continue(stopOf(machine))
    const ends = told(machine).filter((type) => type === 'turn_finished' || type === 'turn_cancelled')
    const first = situation === 'AwaitingDecrypt' ? ['turn_finished'] : []
    const byItself = situation === 'Idle' || situation === 'AwaitingEncrypt'
    expect(ends).toEqual([...first, byItself ? 'turn_finished' : 'turn_cancelled'])
  })

  test.each(SITUATIONS)('%s, then inject: the run goes on, or another one starts', (situation) => {
    const machine = machineIn(situation)
    const { runId, turn = 0 } = machine.state ?? {}
    const result = machine.continue(inject('and'))
    if (!('state' in result)) throw new Error('refused')
    expect(effectsOf(result)).toEqual(['serve_turn'])
    // A run whose answer has been told is over, whether or not its text came back sealed.
    const over = situation === 'Idle' || situation === 'AwaitingEncrypt'
    expect(machine.state?.runId === runId).toBe(!over)
    expect(machine.state?.turn).toBe(over ? 1 : turn + 1)
    expect(told(machine).at(-1)).toBe(over ? 'turn_started' : 'input_injected')
    const runs = situation === 'AwaitingDecrypt' ? 2 : 1
    expect(machine.store.runInputs).toBe(over ? runs + 1 : runs)
  })
})

describe('[U26] a stop', () => {
  const endedBy = (machine: Machine, message: ContinueRequest = BREAK): unknown => {
    const result = machine.continue(message)
    return 'reply' in result && result.reply?.by === 'outcome' && result.reply.outcome.status === 'idle'
      ? result.reply.outcome.data.ended
      : result
  }

  test('reports the turn that it cut', () => {
    const machine = new Machine()
    machine.execute('prompt')
    expect(endedBy(machine)).toEqual({ run_id: machine.state?.runId, interrupted: true, tool_calls: [] })
  })

  test('reports the calls that it cancelled, and no call that had its result', () => {
    const machine = machineIn('AwaitingTool')
    const { waiting } = machine
    expect(endedBy(machine)).toEqual({
      run_id: machine.state?.runId,
      interrupted: false,
      tool_calls: waiting,
    })
    const answered = machineIn('AwaitingTool')
    answered.continue(results(answered.waiting))
    expect(endedBy(answered)).toMatchObject({ interrupted: true, tool_calls: [] })
  })

  test('reports the approval that it rejected', () => {
    const machine = machineIn('AwaitingApproval: plan')
    const { approvalId } = machine
    expect(endedBy(machine)).toMatchObject({ approval_id: approvalId })
  })

  test('with nothing to end reports nothing; nor does the second of two', () => {
    expect(endedBy(machineIn('Idle'))).toBe(undefined)
    const machine = machineIn('AwaitingTool')
    endedBy(machine)
    expect(endedBy(machine)).toBe(undefined)
  })

  test('that names a run ends that run and no other', () => {
    const machine = machineIn('AwaitingTool')
    const runId = machine.state?.runId ?? ''
    const before = machine.state
    expect(endedBy(machine, { type: 'break', data: { run_id: 'another' } })).toMatchObject({
      refused: { code: 'invalid_request', details: { run_id: runId } },
    })
    expect(machine.state).toEqual(before)
    expect(endedBy(machine, { type: 'break', data: { run_id: runId } })).toMatchObject({ run_id: runId })
  })
})

describe('[EC 15] a run that starts from injected words', () => {
  test('takes nothing over that was granted to the run before', () => {
    const machine = new Machine()
    machine.execute('prompt')
    for (const kind of ['remote_disclosure', 'cost_limit'] as const) {
      machine.resolve(
        kind === 'cost_limit'
          ? { kind, cost: COST }
          : { kind, disclosure: { provider: 'openai', model: 'm', paths: [] } },
      )
      machine.continue(decision(machine.approvalId, 'approved'))
    }
    machine.round({ text: 'done' })
    expect(machine.state).toMatchObject({
      costs: [{ provider: 'openai' }],
      disclosed: [{ provider: 'openai' }],
    })
    machine.continue(inject('more'))
    expect(machine.state).toMatchObject({
      disclosed: [],
      remoteDeclined: false,
      planApproved: false,
      planning: false,
    })
    expect(machine.state).not.toHaveProperty('costs')
  })

  test('within a run what was granted stays', () => {
    const machine = machineIn('AwaitingApproval: cost')
    machine.continue(decision(machine.approvalId, 'approved'))
    machine.continue(inject('more'))
    expect(machine.state?.costs).toMatchObject([{ rule: 'cheap', upTo: '4' }])
  })
})

describe('[EC 14][EC 15] planning', () => {
  test('inject into a plan that waits: planning goes on with the new words', () => {
    const machine = machineIn('AwaitingApproval: plan')
    machine.continue(inject('smaller, please'))
    expect(machine.state).toMatchObject({ planning: true, planApproved: false, turn: 2 })
    machine.round({ text: '2. less' })
    expect(machine.phase).toMatchObject({ k: 'AwaitingApproval', kind: 'plan' })
    expect([...machine.store.plans.values()].map(({ status }) => status)).toEqual(['rejected', 'draft'])
  })

  test('tools work as ever while planning', () => {
    const machine = new Machine()
    machine.execute('plan it', { command: 'plan' })
    machine.round({ calls: [clientCall('read_file')] })
    machine.continue(results(machine.waiting))
    expect(machine.state?.planning).toBe(true)
  })
})
