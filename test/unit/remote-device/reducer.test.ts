import { describe, expect, it } from 'vitest'
import { headOf, tailOf } from '../../support/remote-device/attached/items.ts'
import { Breach, comparable, SessionView } from '../../support/remote-device/attached/reducer.ts'
import type { Fields } from '../../support/remote-device/shapes.ts'

/** What the model of an attached device notices by itself, and that events and snapshots lead to the same state. */

const RUN = '11111111-1111-7111-8111-111111111111'
const TURN = `turn:${RUN}`
const whole = (text: string) => ({
  text,
  truncated: false,
  offset: 0,
  total_bytes: new TextEncoder().encode(text).length,
})
const EMPTY = {
  session: { session_id: 's' },
  snapshot_id: 'a',
  sequence: 10,
  generation: 0,
  transcript: [],
  history_revision: 'h0',
  pending_prompts: [],
  subagents: [],
  background_tasks: [],
  omitted: { tools: 0, subagents: 0, pending_prompts: 0, background_tasks: 0 },
}
const message = (role: string, text: string, more: Fields = {}) => ({ role, content: whole(text), ...more })
const frame = (sequence: number, event: Fields): Fields => ({ kind: 'event', sequence, event })
const ended = { type: 'turn_finished', turn_id: TURN, timing: { turn_id: TURN, outcome: 'completed' } }
const finished = (id: string, text: string) => ({
  type: 'tool_finished',
  id,
  success: true,
  pending: false,
  content: whole(text),
})

const RUN_OF_A_TOOL: Fields[] = [
  { type: 'turn_started', turn_id: TURN, prompt: whole('look') },
  { type: 'text_delta', text: 'Let ' },
  { type: 'text_delta', text: 'me. ' },
  { type: 'tool_started', tool: { id: 'c1', name: 'read_file', state: 'running' } },
  finished('c1', 'found'),
  { type: 'text_delta', text: 'Done.' },
]

function viewAfter(events: readonly Fields[], snapshot: Fields = EMPTY): SessionView {
  const view = SessionView.from(snapshot, 'session')
  events.forEach((event, index) => {
    view.apply(frame(Number(snapshot.sequence) + index + 1, event))
  })
  return view
}

describe('the model of an attached device', () => {
  it('comes to the same state by events as by a snapshot, in the middle of an answer and at its end', () => {
    const before = [message('user', 'look'), message('assistant', 'Let me. ')]
    const tool = message('tool', 'found', {
      tool: { call_id: 'c1', name: 'read_file', success: true, pending: false },
    })
    const live = { turn_id: TURN, live_response: whole('Done.'), tools: [], can_steer: true }
    const middle = SessionView.from(
      { ...EMPTY, sequence: 16, transcript: [...before, tool], turn: live },
      'session',
    )
    const known = viewAfter(RUN_OF_A_TOOL)
    let pair = comparable(known.shown(), middle.shown())
    expect(pair.known).toEqual(pair.fresh)
    known.apply(frame(17, ended))
    const end = SessionView.from(
      {
        ...EMPTY,
        sequence: 17,
        transcript: [...before, tool, message('assistant', 'Done.')],
        last_turn: ended.timing,
      },
      'session',
    )
    pair = comparable(known.shown(), end.shown())
    expect(pair.known).toEqual(pair.fresh)
  })

  it('notices a gap, a repeat, and a snapshot that is older or jumps', () => {
    for (const sequence of [10, 9, 12, 0]) {
      const view = viewAfter([])
      expect(() => view.apply(frame(sequence, { type: 'text_delta', text: '' }))).toThrow(Breach)
    }
    for (const sequence of [9, 11]) {
      const view = viewAfter([])
      const snapshot = { ...EMPTY, sequence }
      expect(() => view.apply(frame(sequence, { type: 'snapshot', snapshot }))).toThrow(Breach)
    }
  })

  it('lets a snapshot jump only after resync_required, and nothing come between', () => {
    const jump = frame(30, { type: 'snapshot', snapshot: { ...EMPTY, sequence: 30 } })
    const view = viewAfter([])
    view.apply(frame(10, { type: 'resync_required', reason: 'lagged' }))
    view.apply(jump)
    expect(view.cursor).toBe(30)
    const other = viewAfter([])
    other.apply(frame(10, { type: 'resync_required', reason: 'lagged' }))
    expect(() => other.apply(frame(11, ended))).toThrow(Breach)
  })

  it('notices what happens twice, or without its beginning', () => {
    const wrong: Fields[][] = [
      [ended],
      [{ type: 'text_delta', text: 'x' }],
      [finished('c1', 'x')],
      [...RUN_OF_A_TOOL, finished('c1', 'again')],
      [...RUN_OF_A_TOOL, { type: 'tool_started', tool: { id: 'c1', name: 'read_file' } }],
      [...RUN_OF_A_TOOL, ended, { type: 'turn_started', turn_id: TURN, prompt: whole('again') }],
      [{ type: 'approval_resolved', batch_id: 'b' }],
      [
        { type: 'approval_requested', approval: { batch_id: 'b' } },
        { type: 'approval_resolved', batch_id: 'b' },
        { type: 'approval_requested', approval: { batch_id: 'b' } },
      ],
      [{ type: 'question_resolved', question_id: 'q' }],
      [
        ...RUN_OF_A_TOOL,
        { type: 'text_delta', text: '', timing: { turn_id: TURN, elapsed_work_ms: 5 } },
      ].concat({
        type: 'text_delta',
        text: '',
        timing: { turn_id: TURN, elapsed_work_ms: 4 },
      }),
    ]
    for (const events of wrong) expect(() => viewAfter(events)).toThrow(Breach)
  })

  it('notices a snapshot that lacks what was told', () => {
    const view = viewAfter([...RUN_OF_A_TOOL, ended])
    const snapshot = { ...EMPTY, sequence: 17, transcript: [message('user', 'look')] }
    expect(() => view.apply(frame(17, { type: 'snapshot', snapshot }))).toThrow(Breach)
  })

  it('cuts texts where a character begins', () => {
    expect([headOf('aé€🚦', 5), headOf('aé€🚦', 6), headOf('aé€🚦', 9), headOf('aé€🚦', 10)]).toEqual([
      'aé',
      'aé€',
      'aé€',
      'aé€🚦',
    ])
    expect([tailOf('aé€🚦', 3), tailOf('aé€🚦', 4), tailOf('aé€🚦', 7)]).toEqual(['', '🚦', '€🚦'])
  })
})
