import { describe, expect, test } from 'vitest'
import { askCall, BREAK, clientCall, inject, Machine, results } from '../../../support/core/run-machine.ts'
import { SEALED } from '../../../support/core/run-vault.ts'

/** A run that waits for these answers; nobody drives it, unless said otherwise. */
function asking(
  calls: Parameters<Machine['round']>[0],
  fields: Parameters<Machine['execute']>[1] = { driver: { kind: 'none' } },
): Machine {
  const machine = new Machine()
  machine.execute('prompt', fields)
  machine.round(calls)
  return machine
}

const told = (machine: Machine, from: number) => machine.events.slice(from).map(({ type }) => type)
const stored = (machine: Machine) =>
  [...machine.store.calls.values()].map(({ status, result }) => [status, result])

describe('[RF 18] a chain of questions', () => {
  test('is asked one at a time, each under its own id', () => {
    const machine = asking({ calls: [askCall(2)] })
    expect(machine.events.at(-1)).toEqual({ type: 'question_requested', questionId: machine.questionId })
    const first = machine.questionId
    const from = machine.events.length
    const result = machine.answerQuestion('[a] A? → yes')
    expect(result).toMatchObject({ writes: [], effects: [] })
    expect(result).not.toHaveProperty('reply')
    const second = machine.questionId
    expect(second).not.toBe(first)
    expect(machine.events.slice(from)).toEqual([
      { type: 'question_resolved', questionId: first },
      { type: 'question_requested', questionId: second },
    ])
    expect(stored(machine)).toEqual([['pending', null]])
  })

  test('gives the call its result with the last answer, one line per question; the run goes on', () => {
    const machine = asking({ calls: [askCall(2)] })
    machine.answerQuestion('[a] A? → yes')
    const { questionId } = machine
    const from = machine.events.length
    const result = machine.answerQuestion('[b] B? → no')
    expect(stored(machine)).toEqual([['completed', '[a] A? → yes\n[b] B? → no']])
    expect(told(machine, from)).toEqual(['question_resolved', 'tool_finished'])
    expect(machine.events[from]).toEqual({ type: 'question_resolved', questionId })
    expect(result).toMatchObject({ reply: { by: 'turn' }, effects: [{ e: 'serve_turn' }] })
    expect(machine.state).toMatchObject({ turn: 2, unsettled: { kind: 'question_answered' } })
  })

  test('of a second call begins when that of the first one is over', () => {
    const machine = asking({ calls: [askCall(), askCall()] })
    const from = machine.events.length
    machine.answerQuestion('User selected: a')
    expect(told(machine, from)).toEqual(['question_resolved', 'tool_finished', 'question_requested'])
    expect(machine.state?.active).toBeNull()
    machine.answerQuestion('User selected: b')
    expect(machine.state?.active).not.toBeNull()
  })

  test('[U21] the first answer wins; another, or one to no question, is stale and changes nothing', () => {
    const machine = asking({ calls: [askCall(2)] })
    const first = machine.questionId
    machine.answerQuestion('one')
    const { state } = machine
    for (const id of [first, 'nobody'])
      expect(machine.answerQuestion('two', id)).toMatchObject({
        refused: { code: 'invalid_request' },
        remote: 'stale_question',
      })
    expect(machine.state).toBe(state)
    expect(new Machine().answerQuestion('x')).toMatchObject({ remote: 'stale_question' })
  })
})

describe('[D05] questions beside a driver', () => {
  test('answered while another call is outstanding, the run waits for its results; a repeat is ignored', () => {
    const machine = asking({ calls: [askCall(), clientCall('read_file')] }, {})
    const [ask = '', read = ''] = machine.waiting
    machine.answerQuestion('User selected: a')
    expect(machine.state?.active).toBeNull()
    expect(machine.continue(results([ask, read]))).toMatchObject({ reply: { by: 'turn' } })
    expect(stored(machine)).toEqual([
      ['completed', 'User selected: a'],
      ['completed', 'out'],
    ])
    expect(machine.state?.turn).toBe(2)
  })

  test('an answered call may be missing from the results', () => {
    const machine = asking({ calls: [askCall(), clientCall('read_file')] }, {})
    const [, read = ''] = machine.waiting
    machine.answerQuestion('User selected: a')
    expect(machine.continue(results([read]))).toMatchObject({ reply: { by: 'turn' } })
  })

  test('the driver may answer the call itself, which ends the chain', () => {
    const machine = asking({ calls: [askCall(2)] }, {})
    const { questionId } = machine
    const from = machine.events.length
    machine.continue(results(machine.waiting))
    expect(told(machine, from)).toEqual(['question_resolved', 'tool_finished'])
    expect(machine.answerQuestion('late', questionId)).toMatchObject({ remote: 'stale_question' })
  })

  test('[D06] without keys in the run the last answer lets it go on; the driver that answers later is known to be late', () => {
    const machine = asking({ calls: [askCall()] }, {})
    const [ask = ''] = machine.waiting
    expect(machine.answerQuestion('User selected: a')).toMatchObject({ reply: { by: 'turn' } })
    expect(machine.state?.deviceSettled).toEqual([ask])
  })

  test('[D06] with keys in the run it waits for the driver, whose next message goes on whether or not it repeats the call', () => {
    for (const repeats of [true, false]) {
      const machine = asking({ calls: [askCall()] }, { keyed: ['openai'] })
      const { waiting } = machine
      machine.answerQuestion('User selected: a')
      expect(machine.state).toMatchObject({ active: null, unsettled: null, turn: 1 })
      expect(machine.continue(results(repeats ? waiting : []))).toMatchObject({ reply: { by: 'turn' } })
      expect(machine.state?.turn).toBe(2)
      expect(stored(machine)).toEqual([['completed', 'User selected: a']])
    }
  })

  test('[D20] cut off by a crash, the turn that the answer began is served again, and is no new one', () => {
    const machine = asking({ calls: [askCall()] }, {})
    const { waiting } = machine
    machine.answerQuestion('User selected: a')
    machine.crash()
    machine.continue(results(waiting))
    expect(machine.state?.turn).toBe(2)
    expect(stored(machine)).toEqual([['completed', 'User selected: a']])
  })

  test('[D02] approvals and questions of one pause wait beside each other', () => {
    const machine = asking({ calls: [clientCall('shell', 'ask'), askCall()] }, {})
    expect(told(machine, 0).slice(-2)).toEqual(['approval_requested', 'question_requested'])
    machine.answerQuestion('User selected: a')
    expect(machine.batchId).not.toBe('nothing waits')
    machine.deviceDecides('approved')
    expect(machine.state?.active).toBeNull()
    const [shell = ''] = machine.waiting
    expect(machine.continue(results([shell]))).toMatchObject({ reply: { by: 'turn' } })
  })
})

describe('[RF 18] a question that is dismissed', () => {
  test('takes the whole chain and the turn with it; what had been answered is not a result', () => {
    const machine = asking({ calls: [askCall(3), clientCall('read_file')] }, {})
    machine.answerQuestion('one')
    const from = machine.events.length
    const result = machine.cancelQuestion()
    expect(result).toMatchObject({
      reply: { by: 'outcome', outcome: { status: 'idle', data: { ended: {} } } },
    })
    expect(machine.phase).toEqual({ k: 'Idle' })
    expect(told(machine, from)).toEqual([
      'question_resolved',
      'tool_finished',
      'tool_finished',
      'turn_cancelled',
    ])
    expect(stored(machine)).toEqual([
      ['failed', 'Cancelled by the user.'],
      ['failed', 'Cancelled by the user.'],
    ])
  })

  test('"A stale identity returns stale_question and changes nothing"', () => {
    const machine = asking({ calls: [askCall(2)] })
    const first = machine.questionId
    machine.answerQuestion('one')
    const { state } = machine
    expect(machine.cancelQuestion(first)).toMatchObject({ remote: 'stale_question' })
    expect(machine.state).toBe(state)
    expect(new Machine().cancelQuestion()).toMatchObject({ remote: 'stale_question' })
  })

  test.each([
    ['a stop', BREAK, 'cancelled'],
    ['new words', inject('rather this'), 'superseded'],
  ] as const)('%s resolves the question that is asked, once', (_, message, outcome) => {
    const machine = asking({ calls: [askCall(2)] }, {})
    const { questionId } = machine
    machine.continue(message)
    expect(machine.events.filter(({ type }) => type === 'question_resolved')).toEqual([
      { type: 'question_resolved', questionId, outcome },
    ])
  })
})

describe('[D47] in a sealed session', () => {
  const sealed = (): Machine => {
    const machine = new Machine(SEALED)
    machine.execute('prompt')
    machine.round({ calls: [askCall()] })
    return machine
  }

  test('a device cannot answer: nobody could seal what it says', () => {
    const machine = sealed()
    const { state } = machine
    expect(machine.answerQuestion('User selected: a')).toMatchObject({ remote: 'unsupported_operation' })
    expect(machine.state).toBe(state)
  })

  test('a device can dismiss it, which ends like a stop', () => {
    const machine = sealed()
    expect(machine.cancelQuestion()).toMatchObject({ reply: { outcome: { status: 'awaiting_encrypt' } } })
    expect(machine.phase?.k).toBe('AwaitingEncrypt')
  })
})
