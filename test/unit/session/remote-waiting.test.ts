import { describe, expect, it } from 'vitest'
import { frameBytes } from '../../../src/core/remote/bounded-text.ts'
import type { DeviceDecision, RunPhase, ToolWait } from '../../../src/core/run/state.ts'
import { MAX_PAYLOAD_BYTES } from '../../../src/protocol/remote/limits.ts'
import { call } from '../storage/contract/builders.ts'
import { RemoteSession, START_MS } from './remote-session.ts'

const wait = (callId: string, more: Partial<ToolWait> = {}): ToolWait => ({
  callId,
  toolName: 'shell',
  requiresApproval: 'ask',
  recordsDiff: false,
  settled: false,
  ...more,
})
const tools = (calls: ToolWait[], batchId = 'b'): RunPhase => ({
  k: 'AwaitingTool',
  calls,
  batchId,
  resume: 'NextTurn',
})
const shell = (id: string, command: string) => call(id, { name: 'shell', arguments: { command } })
const stored: DeviceDecision = { decision: 'approved', storedAtMs: START_MS }

describe('calls that wait for a decision', () => {
  const paused = (calls: ToolWait[]) =>
    new RemoteSession()
      .begins('r')
      .answers('Now.', [shell('c1', 'ls'), shell('c2', 'rm x'), call('c3'), call('c4', { name: 'ask_user' })])
      .pauses({ phase: tools(calls) })
  const ALL = [
    wait('c1'),
    wait('c2'),
    wait('c3', { requiresApproval: 'allow' }),
    wait('c4', { requiresApproval: 'allow', questions: [{ id: 'q', answer: 'x' }] }),
  ]

  it('[D02] are one batch: all that ask, and no others', () => {
    const { pending_approval: approval } = paused(ALL).snapshot()
    expect(approval?.batch_id).toBe('b')
    expect(approval?.actions.map(({ summary }) => summary)).toEqual(['shell · ls', 'shell · rm x'])
    expect(approval?.actions[0]?.details).toEqual({
      text: '{"command":"ls"}',
      truncated: false,
      offset: 0,
      total_bytes: 16,
      content_id: 'approval:b:0',
    })
  })

  it.each([
    ['a device decided them', ALL.map((one) => ({ ...one, decision: stored }))],
    ['their results came', ALL.map((one) => ({ ...one, settled: true }))],
    ['none of them asks', ALL.slice(2)],
  ])('[D05] are no batch when %s', (_, calls) => {
    const session = paused(calls)
    expect(session.snapshot().pending_approval).toBeUndefined()
    expect(session.view.content('approval:b:0', 0, 100)).toMatchObject({ code: 'not_found' })
  })

  it('[D32][U08] of an older release, whose pause has no id, are named by the first of them', () => {
    const session = new RemoteSession().begins('r').answers('Now.', [shell('c1', 'ls')])
    session.pauses({ phase: { k: 'AwaitingTool', calls: [wait('c1')], resume: 'NextTurn' } })
    expect(session.view.batch()).toMatchObject({ batch_id: 'c1', actions: [{ tool_name: 'shell' }] })
  })

  it('[U44] arguments that are cut are read whole by their content id, while the batch waits', () => {
    const content = 'ж'.repeat(50_000)
    const session = new RemoteSession()
      .begins('r')
      .answers('Now.', [
        call('c1', { name: 'write_file', arguments: { path: 'a.ts', content } }),
        shell('c2', 'ls'),
      ])
      .pauses({ phase: tools([wait('c1', { toolName: 'write_file' }), wait('c2')]) })
    const [first] = session.snapshot().pending_approval?.actions ?? []
    expect(first?.summary).toBe('write_file · a.ts')
    expect(first?.details).toMatchObject({ truncated: true, total_bytes: 100_028 })
    expect(new TextEncoder().encode(first?.details.text).length).toBeGreaterThan(16_380)
    expect(JSON.parse(session.whole(first?.details.content_id ?? ''))).toEqual({ path: 'a.ts', content })
    expect(session.view.content('approval:other:0', 0, 100)).toMatchObject({ code: 'not_found' })
    expect(session.view.content('approval:b:2', 0, 100)).toMatchObject({ code: 'not_found' })
  })

  it('[RF 14] of which a frame has no room shrink in their details; every call stays listed', () => {
    const ids = Array.from({ length: 127 }, (_, n) => `c${n}`)
    // The longest question that a model may ask, of characters that take six bytes each.
    const odd = (chars: number, n = 0) => `${n}${'\u0001'.repeat(chars - 1)}`
    const longest = call('ask', {
      name: 'ask_user',
      arguments: {
        questions: [
          {
            header: odd(200),
            text: odd(4000),
            options: Array.from({ length: 8 }, (_, n) => ({ label: odd(200, n), description: odd(1000) })),
          },
        ],
      },
    })
    const asks = wait('ask', { requiresApproval: 'allow', questions: [{ id: 'q', answer: null }] })
    const session = new RemoteSession()
      .begins('r', '\u0001'.repeat(5000))
      .answers('Now.', [...ids.map((id) => shell(id, '\u0001"'.repeat(20_000))), longest])
      .pauses({ phase: tools([...ids.map((id) => wait(id)), asks]) })
    session.pending = Array.from({ length: 40 }, () => ({ kind: 'queue', text: '\u0001'.repeat(600) }))
    session.live = { text: '\u0001'.repeat(40_000), thoughts: null }
    session.settings = {
      models: Array.from({ length: 1100 }, (_, n) => ({
        id: `p${n}`,
        model: 'm',
        reasoning_efforts: ['default'],
      })),
      selected_model: 'p0',
      reasoning_effort: 'default',
      can_change: false,
    }
    const snapshot = session.snapshot()
    expect(frameBytes(snapshot)).toBeLessThanOrEqual(MAX_PAYLOAD_BYTES)
    expect(snapshot.pending_approval?.actions).toHaveLength(127)
    expect(snapshot.pending_question?.options).toHaveLength(8)
    expect(snapshot.pending_approval?.actions.every(({ details }) => details.truncated)).toBe(true)
    const { turn, omitted } = snapshot
    expect((turn?.tools.length ?? 0) + omitted.tools).toBe(128)
    expect(snapshot.pending_prompts.length + omitted.pending_prompts).toBe(40)
    expect(session.whole('approval:b:3')).toBe(JSON.stringify({ command: '\u0001"'.repeat(20_000) }))
  })
})

describe('a gate that waits', () => {
  const gate = (more: Partial<Extract<RunPhase, { k: 'AwaitingApproval' }>>): RunPhase => ({
    k: 'AwaitingApproval',
    approvalId: 'g',
    kind: 'remote_disclosure',
    decided: null,
    resume: 'Invoke',
    ...more,
  })
  const at = (phase: RunPhase) => new RemoteSession().begins('r').pauses({ phase })

  it('[D02] is a batch of one, named after its kind: a disclosure with its paths', () => {
    const disclosure = { provider: 'anthropic' as const, model: 'claude', paths: ['src/a.ts'] }
    const session = at(gate({ disclosure }))
    const { pending_approval: approval } = session.snapshot()
    expect(approval).toMatchObject({
      batch_id: 'g',
      actions: [{ tool_name: 'remote_disclosure', summary: 'remote_disclosure · anthropic/claude' }],
    })
    expect(JSON.parse(approval?.actions[0]?.details.text ?? '')).toEqual(disclosure)
    expect(session.whole('approval:g:0')).toBe(approval?.actions[0]?.details.text)
  })

  it('[D02] a cost with its limit', () => {
    const cost = {
      rule: 'cheap',
      provider: 'openai' as const,
      model: 'gpt',
      limit: '0.1',
      estimate: { min: '0.05', max: '0.4' },
    }
    const [action] = at(gate({ kind: 'cost_limit', cost })).snapshot().pending_approval?.actions ?? []
    expect(action).toMatchObject({ tool_name: 'cost_limit', summary: 'cost_limit · openai/gpt' })
    expect(JSON.parse(action?.details.text ?? '')).toMatchObject({
      rule: 'cheap',
      limit: '0.1',
      currency: 'USD',
    })
  })

  it('[D02] a plan with its text, whole by its content id', () => {
    const plan = `\n# The plan\n${'step €\n'.repeat(10_000)}`
    const session = at(gate({ kind: 'plan', planId: 'p', resume: 'NextTurn' }))
    session.sql.rows(
      `INSERT INTO plans (id, content, status, created_at, updated_at, version) VALUES ('p', ?, 'draft', 0, 0, 1)`,
      plan,
    )
    const [action] = session.snapshot().pending_approval?.actions ?? []
    expect(action).toMatchObject({
      tool_name: 'plan',
      summary: 'plan · # The plan',
      details: { truncated: true },
    })
    expect(action?.details.text).toBe(plan.slice(0, action?.details.text.length))
    expect(session.whole('approval:g:0')).toBe(plan)
  })

  it.each([
    ['it was decided', { decided: 'approved' as const }],
    ['a device decided it', { byDevice: stored }],
  ])('[D06] is none any more when %s', (_, more) => {
    expect(at(gate(more)).view.batch()).toBeNull()
  })

  it.each([
    ['stored', {}, {}],
    ['delivered', { deliveredAtMs: START_MS + 5 }, { delivered_at: '2030-01-01T14:00:00.005Z' }],
    [
      'acted_on',
      { deliveredAtMs: START_MS + 5, actedOnAtMs: START_MS + 9 },
      { delivered_at: '2030-01-01T14:00:00.005Z', acted_on_at: '2030-01-01T14:00:00.009Z' },
    ],
    ['acted_on', { actedOnAtMs: START_MS + 9 }, { acted_on_at: '2030-01-01T14:00:00.009Z' }],
  ])('[U13] the newest decision of a device, %s, is in the snapshot', (state, more, times) => {
    const session = new RemoteSession().begins('r')
    expect(session.view.decision()).toBeNull()
    session.pauses({ lastDecision: { ...stored, batchId: 'g', ...more } })
    expect(session.snapshot().approval_decision).toEqual({
      batch_id: 'g',
      choice: 'approve',
      state,
      stored_at: '2030-01-01T14:00:00.000Z',
      ...times,
    })
  })
})

describe('questions that wait', () => {
  const ask = (id: string, words: string[]) =>
    call(id, {
      name: 'ask_user',
      arguments: {
        questions: words.map((text) => ({ header: 'H', text, options: [{ label: 'yes' }, { label: 'no' }] })),
      },
    })
  const asked = (id: string, answers: (string | null)[], more: Partial<ToolWait> = {}) =>
    wait(id, {
      toolName: 'ask_user',
      requiresApproval: 'allow',
      questions: answers.map((answer, n) => ({ id: `${id}-q${n}`, answer })),
      ...more,
    })
  const paused = (calls: ToolWait[]) =>
    new RemoteSession()
      .begins('r')
      .answers('Asking.', [ask('c1', ['one?', 'two?', 'three?']), ask('c2', ['four?']), shell('c3', 'ls')])
      .pauses({ phase: tools(calls) })

  it('[RF 18] are shown one at a time, with their place in the chain', () => {
    expect(paused([asked('c1', ['yes', null, null])]).snapshot().pending_question).toEqual({
      question_id: 'c1-q1',
      header: 'H',
      text: 'two?',
      options: [{ label: 'yes' }, { label: 'no' }],
      multiple: false,
      position: 2,
      chain_length: 3,
    })
  })

  it('[U20] of another call come when the first chain is answered; what waits for approval shows beside them', () => {
    const session = paused([asked('c1', ['a', 'b', 'c'], { settled: true }), asked('c2', [null]), wait('c3')])
    const { pending_question: question, pending_approval: approval } = session.snapshot()
    expect(question).toMatchObject({ question_id: 'c2-q0', text: 'four?', position: 1, chain_length: 1 })
    expect(approval?.actions).toHaveLength(1)
  })

  it('[RF 18] are none when all are answered', () => {
    expect(paused([asked('c1', ['a', 'b', 'c'])]).view.question()).toBeNull()
  })
})
