import { describe, expect, test, vi } from 'vitest'
import type { MediatedCall } from '../../../src/core/mediate.ts'
import { openQuestion } from '../../../src/core/run/pending.ts'
import { makeRequest } from '../../support/core/builders.ts'
import { clientCall, results } from '../../support/core/run-machine.ts'
import { OperatedSession } from '../../support/node/operated-session.ts'

const rejected = (code: string) => ({ receipt: 'rejected', result: { type: 'error', code } })

const COLOUR = {
  header: 'Colour',
  text: 'Which one?',
  options: [{ label: 'Blue' }, { label: 'Green' }],
  multiple: true,
}
const SIZE = { header: 'Size', text: 'How big?', options: [], multiple: false }

const askUser = (...questions: (typeof COLOUR | typeof SIZE)[]): MediatedCall => ({
  call: { name: 'ask_user', arguments: { questions } },
  to: 'client',
  requiresApproval: 'allow',
  recordsDiff: false,
  questions: questions.length,
})

function waiting(calls: MediatedCall[], { keyed }: { keyed?: string[] } = {}): OperatedSession {
  const session = new OperatedSession()
  session.execute(makeRequest({ text: 'first' }), keyed === undefined ? {} : { keyed })
  session.answer('', calls)
  return session
}

const questionOf = (session: OperatedSession): string => {
  const id = session.state && openQuestion(session.state.phase)?.question.id
  if (!id) throw new Error('nothing is asked')
  return id
}

const batchOf = ({ state }: OperatedSession): string => {
  if (state?.phase.k !== 'AwaitingTool' || state.phase.batchId === undefined) throw new Error('no batch')
  return state.phase.batchId
}

const selected = (...options: string[]) => ({ type: 'selected', options }) as const

describe('cancel_turn', () => {
  test('[RF 17] ends the named turn; a second cancel of it is stale', async () => {
    const session = waiting([clientCall('read_file')])
    const { turnId } = session
    const cancel = { type: 'cancel_turn', turn_id: turnId } as const
    expect(await session.ask(cancel)).toEqual({
      receipt: 'applied',
      result: { type: 'turn_cancelled', turn_id: turnId },
    })
    expect(session.events.at(-1)).toMatchObject({ type: 'turn_cancelled', turnId })
    expect(await session.ask(cancel)).toMatchObject(rejected('stale_turn'))
  })

  test('[RF 17] never hits the next turn', async () => {
    const session = waiting([clientCall('read_file')])
    const { turnId } = session
    session.execute(makeRequest({ text: 'second' }))
    expect(await session.ask({ type: 'cancel_turn', turn_id: turnId })).toMatchObject(rejected('stale_turn'))
    expect(session.state?.active).not.toBeNull()
  })

  test('[U26] is honoured while a model is at work', async () => {
    const session = new OperatedSession()
    session.execute(makeRequest())
    expect((await session.ask({ type: 'cancel_turn', turn_id: session.turnId })).receipt).toBe('applied')
    expect(session.state?.active).toBeNull()
  })

  test('[RF 17] of a session that has no turn is stale', async () => {
    expect(await new OperatedSession().ask({ type: 'cancel_turn', turn_id: 'turn:x' })).toMatchObject(
      rejected('stale_turn'),
    )
  })
})

describe('answer_question', () => {
  test.each([
    ['an empty list', selected()],
    ['a label that is none', selected('blue')],
    ['a label twice', selected('Blue', 'Blue')],
    ['an empty text', { type: 'custom', text: ' ' } as const],
  ])('[RF 18] %s is an invalid answer, and the question stays', async (_, answer) => {
    const session = waiting([askUser(COLOUR)])
    const id = questionOf(session)
    expect(await session.ask({ type: 'answer_question', question_id: id, answer })).toMatchObject(
      rejected('invalid_answer'),
    )
    expect(questionOf(session)).toBe(id)
  })

  test('[RF 18] one question: the call gets its result, and the run goes on', async () => {
    const session = waiting([askUser(COLOUR)])
    const id = questionOf(session)
    const answer = { type: 'answer_question', question_id: id, answer: selected('Blue', 'Green') } as const
    expect(await session.ask(answer)).toEqual({
      receipt: 'applied',
      result: { type: 'question_answered', question_id: id },
    })
    expect(session.state?.active).not.toBeNull()
    expect(session.served).toHaveLength(2)
    expect(session.sql.rows('SELECT result FROM tool_calls')[0]).toEqual({
      result: expect.stringContaining('User selected: Blue, Green'),
    })
  })

  test('[RF 18] a chain: one question after the other, and the result only after the last', async () => {
    const session = waiting([askUser(COLOUR, SIZE)])
    const first = questionOf(session)
    await session.ask({ type: 'answer_question', question_id: first, answer: selected('Blue') })
    const second = questionOf(session)
    expect(second).not.toBe(first)
    expect(session.state?.active).toBeNull()
    await session.ask({
      type: 'answer_question',
      question_id: second,
      answer: { type: 'custom', text: ' big ' },
    })
    expect(session.sql.rows('SELECT result FROM tool_calls')[0]).toEqual({
      result: expect.stringContaining('[Colour] Which one? → Blue\n[Size] How big? → big'),
    })
  })

  test('[U21] the first valid answer wins; a later one learns that it was answered', async () => {
    const session = waiting([askUser(COLOUR)])
    const id = questionOf(session)
    const answer = (option: string) =>
      ({ type: 'answer_question', question_id: id, answer: selected(option) }) as const
    const [one, two] = await Promise.all([
      session.ask(answer('Blue'), { device: 'phone' }),
      session.ask(answer('Green'), { device: 'desk' }),
    ])
    expect(one.receipt).toBe('applied')
    expect(two).toMatchObject(rejected('stale_question'))
    expect(two.result).toMatchObject({ message: expect.stringContaining('answered already') })
  })

  test('[D06] with keys that only the driver has, the answer is kept and the run waits for it', async () => {
    const session = waiting([askUser(COLOUR)], { keyed: ['anthropic'] })
    const id = questionOf(session)
    const answer = { type: 'answer_question', question_id: id, answer: selected('Blue') } as const
    expect((await session.ask(answer)).receipt).toBe('applied')
    expect(session.state?.active).toBeNull()
    expect(session.served).toHaveLength(1)
  })

  test('[U06] a crash right after the answer does not lose what it started', async () => {
    const session = waiting([askUser(COLOUR)])
    await session.ask({ type: 'answer_question', question_id: questionOf(session), answer: selected('Blue') })
    session.crash()
    await session.settled()
    expect(session.state?.active).not.toBeNull()
    session.answer('thanks')
    expect(session.said().at(-1)).toBe('assistant: thanks')
  })
})

describe('cancel_question', () => {
  test('"dismisses the entire active question chain" and cancels the turn', async () => {
    const session = waiting([askUser(COLOUR, SIZE)])
    const id = questionOf(session)
    const cancel = { type: 'cancel_question', question_id: id } as const
    expect(await session.ask(cancel)).toEqual({
      receipt: 'applied',
      result: { type: 'question_cancelled', question_id: id },
    })
    expect(session.state?.phase).toEqual({ k: 'Idle' })
    expect(session.events.map(({ type }) => type)).toContain('turn_cancelled')
    const late = await session.ask({ type: 'answer_question', question_id: id, answer: selected('Blue') })
    expect(late).toMatchObject(rejected('stale_question'))
    expect(late.result).toMatchObject({ message: expect.stringContaining('dismissed') })
  })

  test('"A stale identity returns stale_question and changes nothing"', async () => {
    const session = waiting([askUser(COLOUR)])
    expect(await session.ask({ type: 'cancel_question', question_id: 'other' })).toMatchObject(
      rejected('stale_question'),
    )
    expect(questionOf(session)).toBeTruthy()
  })
})

describe('resolve_approval', () => {
  const resolve = (batch_id: string, choice: 'approve' | 'deny') =>
    ({ type: 'resolve_approval', batch_id, choice }) as const

  test('[D05] an approval of calls is kept for the driver, which still runs them', async () => {
    const session = waiting([clientCall('shell', 'ask'), clientCall('write_file', 'ask')])
    const batch = batchOf(session)
    expect(await session.ask(resolve(batch, 'approve'))).toEqual({
      receipt: 'applied',
      result: { type: 'approval_resolved', batch_id: batch, choice: 'approve' },
    })
    expect(session.state).toMatchObject({
      active: null,
      phase: { calls: [{ decision: { decision: 'approved' } }, { decision: { decision: 'approved' } }] },
    })
  })

  test('[RF 19] "deny" also cancels the turn', async () => {
    const session = waiting([clientCall('shell', 'ask')])
    expect((await session.ask(resolve(batchOf(session), 'deny'))).receipt).toBe('applied')
    expect(session.state?.phase).toEqual({ k: 'Idle' })
    expect(session.events.map(({ type }) => type)).toEqual(
      expect.arrayContaining(['approval_resolved', 'turn_cancelled']),
    )
  })

  test.each([
    ['approve', 'approved already'],
    ['deny', 'denied already'],
  ] as const)('[U21] after an %s, a second device is told so', async (choice, told) => {
    const session = waiting([clientCall('shell', 'ask')])
    const batch = batchOf(session)
    await session.ask(resolve(batch, choice), { device: 'phone' })
    const late = await session.ask(resolve(batch, 'approve'), { device: 'desk' })
    expect(late).toMatchObject(rejected('stale_approval'))
    expect(late.result).toMatchObject({ message: expect.stringContaining(told) })
  })

  test('[U21] after the driver has reported it is stale, and says what the driver decided', async () => {
    const session = waiting([clientCall('shell', 'ask')])
    const batch = batchOf(session)
    const { phase } = session.state ?? {}
    const calls = phase?.k === 'AwaitingTool' ? phase.calls.map(({ callId }) => callId) : []
    session.continueRun(results(calls))
    const late = await session.ask(resolve(batch, 'approve'))
    expect(late).toMatchObject(rejected('stale_approval'))
    expect(late.result).toMatchObject({ message: 'this was approved already' })
  })

  test('[U21] after the turn was cancelled it says so', async () => {
    const session = waiting([clientCall('shell', 'ask')])
    const batch = batchOf(session)
    await session.ask({ type: 'cancel_turn', turn_id: `turn:${session.state?.runId}` })
    const late = await session.ask(resolve(batch, 'approve'))
    expect(late.result).toMatchObject({ message: 'the turn that asked for it was cancelled' })
  })

  test('[D06] a gate that needs no key of the driver is passed at once', async () => {
    const session = new OperatedSession()
    session.execute(makeRequest({ text: 'first' }), { keyed: ['openai'] })
    session.pauseAt({
      kind: 'remote_disclosure',
      disclosure: { provider: 'anthropic', model: 'big', paths: ['a.ts'] },
    })
    const { phase } = session.state ?? {}
    if (phase?.k !== 'AwaitingApproval') throw new Error('no gate')
    expect((await session.ask(resolve(phase.approvalId, 'approve'))).receipt).toBe('applied')
    expect(session.state?.active).not.toBeNull()
    const late = await session.ask(resolve(phase.approvalId, 'deny'))
    expect(late.result).toMatchObject({
      code: 'stale_approval',
      message: expect.stringContaining('approved'),
    })
  })

  test('[U06] a gate that was passed, and a crash: the turn is served again', async () => {
    const session = new OperatedSession()
    session.execute(makeRequest({ text: 'first' }))
    session.pauseAt({
      kind: 'remote_disclosure',
      disclosure: { provider: 'anthropic', model: 'big', paths: ['a.ts'] },
    })
    const { phase } = session.state ?? {}
    if (phase?.k !== 'AwaitingApproval') throw new Error('no gate')
    await session.ask(resolve(phase.approvalId, 'approve'))
    session.crash()
    await session.settled()
    expect(session.state?.active).not.toBeNull()
    session.answer('done')
    expect(session.said().at(-1)).toBe('assistant: done')
  })

  test('a fault of D1 does not lose a decision', async () => {
    const warned = vi.spyOn(console, 'warn').mockImplementation(() => {})
    const session = waiting([clientCall('shell', 'ask')])
    session.facts = () => Promise.reject(new Error('D1 is gone'))
    expect((await session.ask(resolve(batchOf(session), 'approve'))).receipt).toBe('applied')
    warned.mockRestore()
  })

  test('[RF 19] of a session where nothing is asked it is stale', async () => {
    expect(await new OperatedSession().ask(resolve('b', 'approve'))).toMatchObject(rejected('stale_approval'))
  })
})
