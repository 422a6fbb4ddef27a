import { describe, expect, it } from 'vitest'
import { approvalBatch, CALL_RISK } from '../../../../src/core/remote/approval-batch.ts'
import { frameBytes } from '../../../../src/core/remote/bounded-text.ts'
import { fittingBatch } from '../../../../src/core/remote/fit.ts'
import { needsSnapshot, type ProjectionFacts, projectEvents } from '../../../../src/core/remote/project.ts'
import type { RunEvent } from '../../../../src/core/run/events.ts'
import type { RunPhase, RunState } from '../../../../src/core/run/state.ts'
import { RemoteEvent } from '../../../../src/protocol/remote/events.ts'
import { MAX_FRAME_BYTES } from '../../../../src/protocol/remote/limits.ts'
import { makeState } from '../../storage/contract/builders.ts'

const approval = approvalBatch('b', [
  { toolName: 'shell', target: 'rm -r out', details: { text: '{"command":"rm -r out"}' }, risk: CALL_RISK },
])
const question = {
  question_id: 'q',
  header: 'Branch',
  text: 'Which one?',
  options: [{ label: 'main' }],
  multiple: false,
  position: 1,
  chain_length: 2,
}
const decision = {
  batch_id: 'b',
  choice: 'approve' as const,
  state: 'stored' as const,
  stored_at: '2030-01-01T00:00:00.000Z',
}
const facts: ProjectionFacts = {
  batch: () => approval,
  question: () => question,
  decision: () => decision,
  timing: (turnId) => ({ turn_id: turnId, elapsed_work_ms: 7 }),
  locked: () => null,
}
const timing = { turn_id: 'turn:r', elapsed_work_ms: 7 }
const text = (words: string) => ({
  text: words,
  truncated: false,
  offset: 0,
  total_bytes: words.length,
})

const CASES: [RunEvent, RemoteEvent[]][] = [
  [
    { type: 'turn_started', turnId: 'turn:r', messageId: 'm', prompt: 'hello' },
    [{ type: 'turn_started', turn_id: 'turn:r', prompt: text('hello'), origin: { kind: 'user' }, timing }],
  ],
  [{ type: 'input_injected', turnId: 'turn:r', messageId: 'm', prompt: 'more' }, []],
  [{ type: 'turn_interrupted', turnId: 'turn:r' }, []],
  [
    { type: 'tool_started', id: 'c', name: 'read_file', arguments: { path: 'a.ts' } },
    [{ type: 'tool_started', tool: { id: 'c', name: 'read_file', detail: 'a.ts', state: 'running' } }],
  ],
  [
    { type: 'tool_started', id: 'c', name: 'now', arguments: {} },
    [{ type: 'tool_started', tool: { id: 'c', name: 'now', state: 'running' } }],
  ],
  [
    { type: 'tool_finished', id: 'c', name: 'read_file', success: false, content: 'no such file' },
    [{ type: 'tool_finished', id: 'c', success: false, pending: false, content: text('no such file') }],
  ],
  [{ type: 'approval_requested', approvalId: 'b' }, [{ type: 'approval_requested', approval }]],
  [
    { type: 'approval_resolved', approvalId: 'b', decision: 'rejected' },
    [{ type: 'approval_resolved', batch_id: 'b' }],
  ],
  [{ type: 'decision_moved', approvalId: 'b' }, [{ type: 'approval_decision', decision }]],
  [{ type: 'question_requested', questionId: 'q' }, [{ type: 'question_requested', question }]],
  [{ type: 'question_resolved', questionId: 'q' }, [{ type: 'question_resolved', question_id: 'q' }]],
  [
    { type: 'turn_finished', turnId: 'turn:r', outcome: 'failed' },
    [{ type: 'turn_finished', turn_id: 'turn:r', timing }],
  ],
  [{ type: 'turn_cancelled', turnId: 'turn:r' }, [{ type: 'turn_cancelled', turn_id: 'turn:r', timing }]],
]

describe('what devices are told of an event', () => {
  it.each(CASES)('[RF 13] %j', (event, told) => {
    const events = projectEvents([event], facts)
    expect(events).toEqual(told)
    expect(events.map((sent) => RemoteEvent.parse(JSON.parse(JSON.stringify(sent))))).toEqual(told)
  })

  it('[RF 13] keeps the order of what happened, and knows each turn by its id', () => {
    const events = projectEvents(
      [
        { type: 'turn_cancelled', turnId: 'turn:old' },
        { type: 'turn_started', turnId: 'turn:new', messageId: 'm', prompt: 'x' },
      ],
      facts,
    )
    expect(events).toMatchObject([
      { type: 'turn_cancelled', timing: { turn_id: 'turn:old' } },
      { type: 'turn_started', timing: { turn_id: 'turn:new' } },
    ])
  })

  it('[RF 19] says nothing of a batch, a question or a decision that is not the one at hand', () => {
    const other: RunEvent[] = [
      { type: 'approval_requested', approvalId: 'x' },
      { type: 'question_requested', questionId: 'x' },
      { type: 'decision_moved', approvalId: 'x' },
    ]
    expect(projectEvents(other, facts)).toEqual([])
    const none = {
      batch: () => null,
      question: () => null,
      decision: () => null,
      locked: () => null,
      timing: () => null,
    }
    expect(projectEvents(CASES.map(([event]) => event).slice(6, 10), none)).toEqual([
      { type: 'approval_resolved', batch_id: 'b' },
    ])
  })

  it('[D47][U35] of a sealed session tells no text: a fixed sentence stands for each', () => {
    const events = projectEvents(
      CASES.map(([event]) => event),
      { ...facts, locked: () => 'Locked.' },
    )
    const told = JSON.stringify(events)
    for (const event of events) if (event.type === 'tool_started') expect(event.tool.detail).toBeUndefined()
    for (const [event] of CASES) {
      if ('prompt' in event && event.type === 'turn_started') expect(told).not.toContain(event.prompt)
      if (event.type === 'tool_finished') expect(told).not.toContain(event.content)
    }
    expect(told).toContain('Locked.')
  })

  it('[RF 14] leaves out clocks that nobody knows', () => {
    expect(
      projectEvents([{ type: 'turn_cancelled', turnId: 'turn:r' }], { ...facts, timing: () => null }),
    ).toEqual([{ type: 'turn_cancelled', turn_id: 'turn:r' }])
  })

  it('[U09] fits a frame, however long the texts are', () => {
    const long = '\u0001'.repeat(300_000)
    const events = projectEvents(
      [
        { type: 'turn_started', turnId: 'turn:r', messageId: 'm', prompt: long },
        { type: 'tool_started', id: 'c', name: long, arguments: { [long]: long } },
        { type: 'tool_finished', id: 'c', name: long, success: true, content: long },
        { type: 'approval_requested', approvalId: 'b' },
      ],
      {
        ...facts,
        batch: () =>
          fittingBatch(
            approvalBatch(
              'b',
              Array.from({ length: 128 }, () => ({
                toolName: '"'.repeat(4000),
                target: '"'.repeat(4000),
                details: { text: long },
                risk: CALL_RISK,
              })),
            ),
          ),
      },
    )
    expect(events).toHaveLength(4)
    for (const event of events) expect(frameBytes(event)).toBeLessThan(MAX_FRAME_BYTES - 4096)
    expect(events[0]).toMatchObject({ prompt: { truncated: true, total_bytes: 300_000 } })
  })
})

describe('a snapshot is due', () => {
  const plan: RunPhase = {
    k: 'AwaitingApproval',
    approvalId: 'a',
    kind: 'plan',
    planId: 'p',
    decided: null,
    resume: 'NextTurn',
  }
  const tool: RunPhase = { k: 'AwaitingTool', calls: [], resume: 'NextTurn' }
  const active = { lease: 'l', turnId: 't', startedAtMs: 0, leaseUntilMs: 1 }
  const idle = makeState()
  const waiting = makeState({ phase: tool })
  const serving = makeState({ active })

  it.each<[string, RunEvent['type'][], RunState | null, RunState, boolean]>([
    ['the first run begins', ['turn_started'], null, serving, true],
    ['a run begins', ['turn_started'], idle, makeState({ runId: 'next', active }), true],
    [
      'a run begins in place of another',
      ['turn_cancelled', 'turn_started'],
      waiting,
      makeState({ runId: 'next', active }),
      true,
    ],
    ['a run ends', ['turn_finished'], serving, idle, true],
    ['a run ends without a word of it', [], serving, idle, true],
    ['the user says more', ['input_injected'], serving, serving, true],
    [
      'a crash cut the run off',
      ['turn_interrupted'],
      serving,
      makeState({ unsettled: { digest: 'd', kind: 'execute' } }),
      true,
    ],
    ['what was said became a plan', ['approval_requested'], serving, makeState({ phase: plan }), true],
    ['calls wait', ['tool_started'], serving, waiting, false],
    ['results came', ['tool_finished'], waiting, makeState({ phase: tool, active }), false],
    [
      'a plan was decided',
      ['approval_resolved'],
      makeState({ phase: plan }),
      makeState({ phase: plan, active }),
      false,
    ],
    ['a device decided', ['approval_resolved', 'decision_moved'], waiting, waiting, false],
    ['the lease was renewed', [], serving, serving, false],
  ])('[RF 13] when %s: %j', (_, types, before, after, due) => {
    const events = CASES.map(([event]) => event)
    const happened = types.flatMap((type) => events.find((event) => event.type === type) ?? [])
    expect(needsSnapshot(happened, before, after)).toBe(due)
  })
})
