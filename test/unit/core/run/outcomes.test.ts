import { describe, expect, test } from 'vitest'
import { MAX_UNATTENDED_ROUNDS } from '../../../../src/core/run/finish.ts'
import { LEASE_MS } from '../../../../src/core/run/state.ts'
import type { TurnResponse } from '../../../../src/protocol/execution/turn.ts'
import {
  clientCall,
  decision,
  effectsOf,
  Machine,
  makePartial,
  makeRecord,
  makeReport,
  refusedCall,
  results,
} from '../../../support/core/run-machine.ts'
import { COST, DISCLOSURE, machineIn } from '../../../support/core/run-phases.ts'

/** A run whose first turn is being served. */
function served(): Machine {
  const machine = new Machine()
  machine.execute('prompt')
  return machine
}

/** The envelope of the run's latest checkpoint. */
function outcome(machine: Machine): TurnResponse {
  const stored = machine.store.turns.get(machine.state?.checkpointTurnId ?? '')?.outcome
  if (!stored) throw new Error('no outcome is stored')
  return stored
}

describe('[EC 5.5] outcome, phase and what may come next', () => {
  const rows: [
    string,
    (machine: Machine) => unknown,
    TurnResponse['status'],
    string,
    string[] | undefined,
  ][] = [
    ['an answer', (m) => m.round({ text: 'hi' }), 'completed', 'Idle', undefined],
    [
      'calls for the client',
      (m) => m.round({ calls: [clientCall('shell')] }),
      'awaiting_tool',
      'AwaitingTool',
      ['tool_results', 'inject', 'break'],
    ],
    [
      'a gate',
      (m) => m.resolve({ kind: 'remote_disclosure', disclosure: DISCLOSURE }),
      'awaiting_approval',
      'AwaitingApproval',
      ['approval_decisions', 'break'],
    ],
    [
      'a failure',
      (m) => {
        m.resolve()
        m.fail()
      },
      'error',
      'Idle',
      undefined,
    ],
  ]

  test.each(rows)('%s', (_, happen, status, phase, next) => {
    const machine = served()
    happen(machine)
    expect(machine.phase?.k).toBe(phase)
    expect(machine.state?.active).toBe(null)
    const told = outcome(machine)
    expect(told.status).toBe(status)
    expect(told.allowed_continuations).toEqual(next)
  })
})

describe('[EC 2] what the envelopes carry', () => {
  test('a completed turn: message, classification, route, context, usage; no more than the contract has', () => {
    const machine = served()
    machine.round({ text: 'hi' })
    const { matched_rule: _, reason: __, intent: ___, ...routing } = makeReport().routing
    expect(outcome(machine)).toEqual({
      status: 'completed',
      data: {
        message: { role: 'assistant', content: 'hi', provider: 'ollama', model: 'm' },
        classification: makeReport().classification,
        routing: { task_type: 'chat', ...routing },
        context: { included: [], excluded: [] },
        usage: { input_tokens: 1, output_tokens: 1 },
        trace_id: machine.state?.traceId,
      },
    })
  })

  test('[EC 12.4] calls: ours ids, arguments, whether to ask, and the epoch that a result may carry', () => {
    const machine = machineIn('AwaitingTool')
    const [read, shell] = machine.waiting
    expect(outcome(machine)).toMatchObject({
      data: {
        tool_requests: [
          {
            call_id: read,
            name: 'read_file',
            arguments: { path: 'read_file.ts' },
            requires_approval: 'allow',
            driver_epoch: 1,
          },
          { call_id: shell, name: 'shell', requires_approval: 'ask', driver_epoch: 1 },
        ],
      },
    })
  })

  test('[EC 19] the trace id names the newest trace event of the turn', () => {
    const machine = served()
    machine.round({ text: 'hi' })
    const [turn] = [...machine.store.turns.values()]
    expect(machine.state?.traceId).toBe(`trace:${turn?.trace.at(-1)?.id}`)
  })
})

describe('[EC 12.4] the pause', () => {
  test('the assistant message is stored with all its calls: those that wait and those that are answered', () => {
    const machine = served()
    machine.round({ text: 'Looking.', calls: [clientCall('shell'), refusedCall('teleport')] })
    expect(machine.store.messages.at(-1)).toMatchObject({
      role: 'assistant',
      text: 'Looking.',
      calls: [
        { name: 'shell', status: 'pending', result: null },
        { name: 'teleport', status: 'failed', result: 'teleport is not available' },
      ],
    })
    expect(machine.waiting).toHaveLength(1)
  })

  test('results are stored with what they say, and their decisions as approvals', () => {
    const machine = machineIn('AwaitingTool')
    const [first = '', second = ''] = machine.waiting
    machine.continue({
      type: 'tool_results',
      data: {
        results: [
          { call_id: first, content: 'ok', is_error: false },
          { call_id: second, content: 'Not now', is_error: true, decision: 'rejected' },
        ],
      },
    })
    expect(machine.store.calls.get(first)).toMatchObject({ status: 'completed', result: 'ok' })
    expect(machine.store.calls.get(second)).toMatchObject({ status: 'failed', result: 'Not now' })
    expect(machine.store.approvals).toMatchObject([
      { targetType: 'tool_call', targetId: second, decision: 'rejected' },
    ])
    expect(machine.state?.turn).toBe(2)
  })

  test('[U22] a call that was declined has failed, also where its report does not say so', () => {
    const machine = machineIn('AwaitingTool')
    const [first = '', second = ''] = machine.waiting
    machine.continue({
      type: 'tool_results',
      data: {
        results: [
          { call_id: first, content: 'ok', is_error: false, decision: 'approved' },
          { call_id: second, content: 'No.', is_error: false, decision: 'rejected' },
        ],
      },
    })
    expect([...machine.store.calls.values()].map(({ status }) => status)).toEqual(['completed', 'failed'])
    const finished = machine.events.filter(({ type }) => type === 'tool_finished')
    expect(finished).toMatchObject([{ success: true }, { success: false }])
    const traced = [...machine.store.turns.values()].at(-1)?.trace.map(({ payload }) => payload)
    expect(traced).toMatchObject([
      { type: 'tool_call', status: 'completed' },
      { type: 'approval', decision: 'approved' },
      { type: 'tool_call', status: 'failed' },
      { type: 'approval', decision: 'rejected' },
    ])
  })
})

describe('[EC 5.7] failure', () => {
  test('ends the run, with the code of what failed', () => {
    const machine = machineIn('AwaitingTool')
    machine.continue(results(machine.waiting))
    machine.resolve()
    machine.fail('provider_error')
    expect(machine.state).toMatchObject({ phase: { k: 'Idle' }, active: null })
    expect(outcome(machine)).toEqual({
      status: 'error',
      data: { error: { code: 'provider_error', message: 'it failed' } },
    })
    expect(machine.events.at(-1)).toMatchObject({ type: 'turn_finished', outcome: 'failed' })
    expect(machine.store.turns.get(machine.state?.checkpointTurnId ?? '')?.status).toBe('failed')
  })

  test('[D24] what the model had said is kept as interrupted; nothing is, where it had said nothing', () => {
    for (const [text, kept] of [
      ['half an ans', 1],
      ['', 0],
    ] as const) {
      const machine = served()
      machine.resolve()
      machine.fail('provider_error', makePartial(text))
      expect(machine.store.messages.filter(({ interrupted }) => interrupted)).toHaveLength(kept)
    }
  })

  test('[U22] blank space is nothing that was said: no provider takes a message of it', () => {
    const machine = served()
    machine.resolve()
    machine.fail('provider_error', makePartial('\n\n'))
    expect(machine.store.messages.filter(({ interrupted }) => interrupted)).toEqual([])
  })

  test('a turn that fails before any call has no call to account for', () => {
    const machine = served()
    machine.accept({
      type: 'turn_failed',
      lease: machine.lease,
      failure: { code: 'no_route', message: 'none' },
      partial: null,
      call: null,
    })
    expect([...machine.store.turns.values()]).toMatchObject([{ status: 'failed', calls: [] }])
  })

  test('planning ends with its run', () => {
    const machine = new Machine()
    machine.execute('plan it', { command: 'plan' })
    machine.resolve()
    machine.fail()
    expect(machine.state?.planning).toBe(false)
  })
})

describe('[EC 8.6][D23] the calls of a turn', () => {
  test('each is noted before it leaves, and settled when it ended; a fallback is another call', () => {
    const machine = served()
    machine.resolve()
    const [turn] = [...machine.store.turns.values()]
    expect(turn?.calls.map(({ status, usage }) => [status, usage])).toEqual([['lost', null]])
    machine.accept({
      type: 'turn_resolved',
      lease: machine.lease,
      report: makeReport('other'),
      traces: [],
      gate: null,
      call: makeRecord('lost', null, 'other'),
      failedCall: makeRecord('failed', { inputTokens: 5 }),
    })
    machine.answer({ text: 'hi' })
    expect(
      turn?.trace.flatMap(({ model, payload }) => (payload.type === 'cost' ? [[model, payload.model]] : [])),
    ).toEqual([
      ['m', 'm'],
      ['m', 'm'],
    ])
    expect(turn?.calls.map(({ model, status }) => [model, status])).toEqual([
      ['m', 'failed'],
      ['m', 'answered'],
    ])
  })

  test('[U43] a cost is traced for every call whose usage is known, and for no other', () => {
    const costs = (usage: { inputTokens?: number; outputTokens?: number } | null) => {
      const machine = served()
      machine.resolve()
      machine.accept({
        type: 'model_responded',
        ending: null,
        lease: machine.lease,
        text: '',
        report: makeReport(),
        calls: [clientCall('shell')],
        call: { ...makeRecord('answered', usage), cost: '0.5' },
        usage: {},
      })
      const [turn] = [...machine.store.turns.values()]
      return turn?.trace.flatMap(({ payload }) => (payload.type === 'cost' ? [payload] : []))
    }
    const cost = { type: 'cost', provider: 'ollama', model: 'm', cost: '0.5' }
    expect(costs({ inputTokens: 3, outputTokens: 4 })).toEqual([
      { ...cost, input_tokens: 3, output_tokens: 4 },
    ])
    expect(costs({ outputTokens: 4 })).toEqual([{ ...cost, input_tokens: 0, output_tokens: 4 }])
    expect(costs({})).toEqual([])
    expect(costs(null)).toEqual([])
  })
})

describe('[U42] how an answer ended', () => {
  test.each(['truncated', 'refused'] as const)(
    '%s is told, and so is nothing where it is complete',
    (ending) => {
      for (const given of [ending, null]) {
        const machine = served()
        machine.round({ text: 'half', ending: given })
        expect(outcome(machine)).toMatchObject({
          status: 'completed',
          data: given === null ? expect.not.objectContaining({ ending: expect.anything() }) : { ending },
        })
      }
    },
  )

  test('a plan that was cut says so where it is approved', () => {
    const machine = new Machine()
    machine.execute('plan it', { command: 'plan' })
    machine.round({ text: '1. do', ending: 'truncated' })
    expect(outcome(machine)).toMatchObject({
      data: { approval: { detail: { content: '1. do', ending: 'truncated' } } },
    })
  })
})

describe('[EC 19] traces', () => {
  const payloads = (machine: Machine) =>
    [...machine.store.turns.values()].map(({ trace }) => trace.map(({ payload }) => payload))

  test('the prompt once a run, and every answer; never their texts', () => {
    const machine = served()
    machine.round({ text: 'Looking.', calls: [clientCall('shell')] })
    machine.continue(results(machine.waiting))
    machine.round({ text: 'Done.' })
    expect(payloads(machine).map((turn) => turn.map(({ type }) => type))).toEqual([
      ['classification', 'message', 'message', 'tool_call', 'cost'],
      ['tool_call', 'classification', 'message', 'cost'],
    ])
    expect(JSON.stringify(payloads(machine))).not.toMatch(/prompt|Looking|Done/)
  })

  test('the prompt not at a gate, but with the model that is called after it', () => {
    const prompts = (machine: Machine) =>
      payloads(machine).map((turn) =>
        turn.flatMap((payload) =>
          payload.type === 'message' && payload.role === 'user' ? payload.model : [],
        ),
      )
    const declined = served()
    declined.resolve({ kind: 'remote_disclosure', disclosure: DISCLOSURE })
    expect(prompts(declined)).toEqual([[]])
    declined.continue(decision(declined.approvalId, 'rejected'))
    declined.accept({
      type: 'turn_resolved',
      lease: declined.lease,
      report: makeReport('local'),
      traces: [],
      gate: null,
      call: makeRecord('lost', null, 'local'),
      failedCall: null,
    })
    expect(prompts(declined)).toEqual([[], ['local']])
    const stopped = machineIn('AwaitingApproval: cost')
    stopped.continue(decision(stopped.approvalId, 'rejected'))
    expect(prompts(stopped)).toEqual([[]])
  })

  test('a call by the names and sizes of its arguments, a refused one as failed', () => {
    const machine = served()
    machine.round({ calls: [clientCall('write_file'), refusedCall('teleport')] })
    expect(payloads(machine)[0]?.filter(({ type }) => type === 'tool_call')).toEqual([
      {
        type: 'tool_call',
        tool_name: 'write_file',
        status: 'pending',
        arguments: '{"path":"15 characters"}',
      },
      {
        type: 'tool_call',
        tool_name: 'teleport',
        status: 'failed',
        arguments: '{}',
        error: 'teleport is not available',
      },
    ])
  })

  test('what a continuation brings is traced under the route of the turn before', () => {
    const machine = served()
    machine.accept({
      type: 'turn_resolved',
      lease: machine.lease,
      report: {
        ...makeReport('first', 'edit'),
        routing: { ...makeReport('first').routing, matched_rule: 'r' },
      },
      traces: [],
      gate: { kind: 'cost_limit', cost: COST },
      call: makeRecord('lost'),
      failedCall: null,
    })
    machine.continue({
      type: 'approval_decisions',
      data: { decisions: [{ approval_id: machine.approvalId, decision: 'approved', reason: 'fine' }] },
    })
    const turn = [...machine.store.turns.values()].at(-1)
    expect(turn?.trace).toMatchObject([
      {
        taskType: 'edit',
        model: 'first',
        matchedRule: 'r',
        createdAtMs: machine.nowMs,
        payload: { type: 'approval', target_type: 'gate', decision: 'approved', reason: 'fine' },
      },
    ])
  })
})

describe('[EC 6] a model that only calls what it may not', () => {
  test('is asked again in the same turn, eight times at most', () => {
    const machine = served()
    const turnId = machine.state?.active?.turnId
    for (let round = 1; round < MAX_UNATTENDED_ROUNDS; round++) {
      expect(effectsOf(machine.round({ calls: [refusedCall('teleport')] }))).toEqual(['serve_turn'])
      expect(machine.state?.active?.turnId).toBe(turnId)
    }
    expect(effectsOf(machine.round({ calls: [refusedCall('teleport')] }))).toEqual(['answer'])
    expect(MAX_UNATTENDED_ROUNDS).toBe(8)
    expect(outcome(machine)).toMatchObject({
      status: 'error',
      data: { error: { code: 'provider_error', details: { rounds: 8 } } },
    })
    expect(machine.store.messages).toHaveLength(1 + MAX_UNATTENDED_ROUNDS)
  })

  test('a round that reaches the client starts the count anew, and so does the user', () => {
    const machine = served()
    const refused = () => machine.round({ calls: [refusedCall('teleport')] })
    for (let round = 1; round < MAX_UNATTENDED_ROUNDS; round++) refused()
    machine.round({ calls: [clientCall('shell'), refusedCall('teleport')] })
    machine.continue(results(machine.waiting))
    for (let round = 1; round < MAX_UNATTENDED_ROUNDS; round++) refused()
    machine.continue({ type: 'inject', data: { messages: [{ text: 'stop that' }] } })
    for (let round = 1; round < MAX_UNATTENDED_ROUNDS; round++) refused()
    expect(machine.state?.active).not.toBe(null)
  })
})

describe('[U02][EC 5.2] a turn reports under the lock that it was started with', () => {
  test('whatever comes under another lease changes nothing', () => {
    const machine = served()
    const late = machine.lease
    machine.continue({ type: 'inject', data: { messages: [{ text: 'other' }] } })
    const before = machine.state
    const report = makeReport()
    const call = makeRecord('answered')
    expect([
      machine.send({ type: 'lease_renewed', lease: late }),
      machine.send({
        type: 'turn_resolved',
        lease: late,
        report,
        traces: [],
        gate: null,
        call,
        failedCall: null,
      }),
      machine.send({
        type: 'model_responded',
        ending: null,
        lease: late,
        text: 'late',
        report,
        calls: [],
        call,
        usage: {},
      }),
      machine.send({ type: 'decryption_needed', lease: late, toDecrypt: {} }),
      machine.send({
        type: 'turn_failed',
        lease: late,
        failure: { code: 'provider_error', message: '' },
        partial: makePartial('late'),
        call,
      }),
    ]).toEqual(Array.from({ length: 5 }, () => ({ dropped: true })))
    expect(machine.state).toBe(before)
    expect(machine.store.messages.map(({ text }) => text)).toEqual(['prompt', 'other'])
  })

  test('[D21] a renewed lease holds for another 90 seconds from now', () => {
    const machine = served()
    machine.nowMs += 30_000
    machine.accept({ type: 'lease_renewed', lease: machine.lease })
    expect(machine.state?.active?.leaseUntilMs).toBe(machine.nowMs + LEASE_MS)
    expect(LEASE_MS).toBe(90_000)
  })

  test('a run that is idle drops what reports to it', () => {
    const machine = served()
    const { lease } = machine
    machine.round({ text: 'hi' })
    expect(machine.send({ type: 'lease_renewed', lease })).toEqual({ dropped: true })
  })
})

describe('[U17] the driver of a run', () => {
  test('each run has a higher epoch, also one that starts from injected words', () => {
    const machine = served()
    const epochs = [machine.state?.driverEpoch]
    machine.round({ text: 'hi' })
    machine.execute('again')
    epochs.push(machine.state?.driverEpoch)
    machine.continue({ type: 'inject', data: { messages: [{ text: 'more' }] } })
    epochs.push(machine.state?.driverEpoch)
    machine.round({ text: 'hi' })
    machine.continue({ type: 'inject', data: { messages: [{ text: 'new' }] } })
    epochs.push(machine.state?.driverEpoch)
    expect(epochs).toEqual([1, 2, 2, 3])
  })
})
