import { describe, expect, test } from 'vitest'
import { standingOf, toRunResponse } from '../../../../src/core/run/standing.ts'
import type { ContentRef } from '../../../../src/protocol/execution/ids.ts'
import type { EncryptedPayload, SealedMap } from '../../../../src/protocol/execution/sealed.ts'
import type { RunResponse } from '../../../../src/protocol/execution/turn.ts'
import { BREAK, clientCall, Machine, makePartial, results } from '../../../support/core/run-machine.ts'
import { COST, DISCLOSURE, machineIn, opening } from '../../../support/core/run-phases.ts'
import { SEALED, toEncryptOf } from '../../../support/core/run-vault.ts'

/** What `GET …/run` would say now. */
function standing(machine: Machine): RunResponse {
  const { state, sealed, store } = machine
  if (state === null || sealed === null) throw new Error('no run of a sealed session')
  const sealedOf = (refs: readonly ContentRef[]): SealedMap =>
    Object.fromEntries(
      refs.flatMap((ref): [ContentRef, EncryptedPayload][] => {
        const payload = store.sealed.get(ref)
        return payload === undefined ? [] : [[ref, payload]]
      }),
    )
  return toRunResponse(standingOf(state, { held: sealed.held, sealedOf }))
}

const toOpen = (run: RunResponse): ContentRef[] =>
  run.status === 'awaiting_decrypt' ? Object.keys(run.data.to_decrypt).sort() : []

function served(command: 'plan' | null = null): Machine {
  const machine = new Machine(SEALED)
  machine.execute('prompt', { command })
  return machine
}

const PAUSES: [string, () => Machine][] = [
  [
    'calls',
    () => {
      const machine = served()
      machine.round({ text: 'Looking.', calls: [clientCall('read_file'), clientCall('shell', 'ask')] })
      return machine
    },
  ],
  [
    'a disclosure',
    () => {
      const machine = served()
      machine.resolve({ kind: 'remote_disclosure', disclosure: DISCLOSURE })
      return machine
    },
  ],
  [
    'a cost',
    () => {
      const machine = served()
      machine.resolve({ kind: 'cost_limit', cost: COST })
      return machine
    },
  ],
  [
    'a plan',
    () => {
      const machine = served('plan')
      machine.round({ text: '1. do it' })
      return machine
    },
  ],
  ['content to open', () => machineIn('AwaitingDecrypt')],
  [
    'a stop that left something',
    () => {
      const machine = served()
      machine.resolve()
      machine.continue(BREAK, { partial: makePartial('half') })
      return machine
    },
  ],
]

describe('[D20][EC 17.3] where a sealed run stands', () => {
  test.each(PAUSES)('%s: as it was told, while the texts are in memory', (_, make) => {
    const machine = make()
    const { outcome } = machine
    if (outcome === null || outcome.status === 'error') throw new Error('nothing was told')
    const { ended: _ended, ...data } =
      'ended' in outcome.data ? outcome.data : { ended: null, ...outcome.data }
    expect(standing(machine)).toEqual({ ...outcome, data })
  })

  test.each(PAUSES)('%s: after a loss it names what is lost, and tells no text', (_, make) => {
    const machine = make()
    const { asked } = machine
    const before = standing(machine)
    machine.crash()
    const now = standing(machine)
    expect(now).toMatchObject({ status: before.status, lost: asked })
    expect(now.status === 'idle' ? null : now.allowed_continuations).toEqual(
      before.status === 'idle' ? null : before.allowed_continuations,
    )
    expect(JSON.stringify(now)).not.toMatch(/prompt|Looking|do it|half|read_file\.ts/)
    // What only waits to be sealed has to say so, be it nothing.
    const told = now.status === 'awaiting_encrypt' ? {} : undefined
    expect('to_encrypt' in now.data ? now.data.to_encrypt : undefined).toEqual(told)
  })

  test('the arguments of calls go with their texts; ids, names and what may come next stay', () => {
    const [, make] = PAUSES[0] ?? []
    const machine = make?.() ?? served()
    machine.crash()
    expect(standing(machine)).toMatchObject({
      data: {
        tool_requests: machine.waiting.map((id) => ({ call_id: id, arguments: null, driver_epoch: 1 })),
      },
    })
  })

  test('a plan is named without its text once that is lost', () => {
    const machine = served('plan')
    machine.round({ text: '1. do it' })
    const [planId] = machine.store.plans.keys()
    machine.crash()
    const told = standing(machine)
    expect(told.status === 'awaiting_approval' && told.data.approval.detail).toEqual({
      plan: planId,
      version: 1,
    })
  })

  test('what a gate is about stays clear', () => {
    const machine = served()
    machine.resolve({ kind: 'remote_disclosure', disclosure: DISCLOSURE })
    machine.crash()
    expect(standing(machine)).toMatchObject({ data: { approval: { detail: DISCLOSURE } } })
  })

  test('envelopes that have to be opened are told from what is stored', () => {
    const machine = machineIn('AwaitingDecrypt')
    machine.crash()
    const told = standing(machine)
    const asked = told.status === 'awaiting_decrypt' ? told.data.to_decrypt : {}
    expect(Object.keys(asked).length).toBeGreaterThan(0)
    for (const [ref, payload] of Object.entries(asked)) expect(machine.store.sealed.get(ref)).toEqual(payload)
  })

  test('what no outcome has told yet is told by none, and is not lost', () => {
    const [, make] = PAUSES[0] ?? []
    const machine = make?.() ?? served()
    const encrypted = machine.seals(...machine.waiting.map((id) => `tool_call:${id}`))
    machine.continue(results(machine.waiting, {}, encrypted))
    expect(machine.state?.unsealed?.refs.length).toBeGreaterThan(0)
    const before = standing(machine)
    machine.crash()
    for (const told of [before, standing(machine)]) {
      expect(told).not.toHaveProperty('data.to_encrypt')
      expect(told).not.toHaveProperty('lost')
    }
  })

  test('an answer that is not sealed yet stands as what is left to seal', () => {
    const machine = served()
    machine.round({ text: 'answer' })
    expect(standing(machine)).toMatchObject({
      status: 'awaiting_encrypt',
      data: { to_encrypt: toEncryptOf(machine.outcome) },
      allowed_continuations: ['sealed', 'break'],
    })
  })

  test('[EC 5.7] a failure stands as what it left to seal, or idle', () => {
    const machine = served()
    machine.resolve()
    machine.fail('provider_error', makePartial('half'))
    const told = standing(machine)
    expect(told.status).toBe('awaiting_encrypt')
    expect(Object.values(told.status === 'awaiting_encrypt' ? told.data.to_encrypt : {})).toContain('half')
    const again = machineIn('AwaitingDecrypt')
    again.continue(opening(again))
    again.resolve()
    again.fail()
    expect(standing(again)).toEqual({ status: 'idle', data: { trace_id: again.state?.traceId } })
  })

  test('an answer that was cut off is waited for again, and then with what it had sealed: of that a trace id says nothing', () => {
    const machine = machineIn('AwaitingDecrypt')
    const told = standing(machine)
    const first = toOpen(told)
    const sealed = machine.asked
    expect(sealed).not.toEqual([])
    machine.continue(opening(machine))
    machine.resolve()
    machine.crash()
    const { state } = machine
    expect(told).not.toHaveProperty('data.trace_id', state?.traceId)
    expect(standing(machine)).toHaveProperty('data.trace_id', state?.traceId)
    expect(toOpen(standing(machine))).toEqual(first)
    const answer = opening(machine)
    machine.continue(answer, { digest: 'again' })
    machine.pauseToOpen()
    machine.crash()
    const more = standing(machine)
    expect(toOpen(more)).toEqual(expect.arrayContaining(sealed))
    expect(more).toHaveProperty('data.trace_id', state?.traceId)
    // Its answer was told, and lost with the memory: what it led to waits for another one.
    const before = machine.state
    expect(machine.continue(answer, { digest: 'again' })).toMatchObject({
      refused: { code: 'invalid_request', details: { missing: expect.arrayContaining(sealed) } },
    })
    expect(machine.state).toEqual(before)
    machine.continue(opening(machine))
    while (machine.pauseToOpen()) machine.continue(opening(machine))
    machine.round({ text: 'second answer' })
    expect(machine.outcome?.status).toBe('completed')
  })
})
