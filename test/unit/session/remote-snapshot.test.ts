import { describe, expect, it } from 'vitest'
import { frameBytes } from '../../../src/core/remote/bounded-text.ts'
import { MAX_PAYLOAD_BYTES } from '../../../src/protocol/remote/limits.ts'
import { RemoteSnapshot } from '../../../src/protocol/remote/snapshot.ts'
import { call } from '../storage/contract/builders.ts'
import { RemoteSession, START_MS } from './remote-session.ts'

const at = (seconds: number): string => new Date(START_MS + seconds * 1000).toISOString()

describe('a snapshot', () => {
  it('[RF 14] of a session where nothing was said holds no turn, and lists that are empty', () => {
    const { commands, ...snapshot } = new RemoteSession().snapshot()
    expect(snapshot).toEqual({
      session: {
        session_id: 's',
        registration_epoch: 3,
        title: 'A session',
        model: 'small',
        activity: 'idle',
        attention: { approval: false, question: false },
        health: 'live',
      },
      snapshot_id: 'cut',
      sequence: 7,
      generation: 0,
      capabilities: ['cancel_question', 'execute_command', 'upload_image'],
      transcript: [],
      history_revision: 'h0',
      pending_prompts: [],
      subagents: [],
      background_tasks: [],
      omitted: { tools: 0, subagents: 0, pending_prompts: 0, background_tasks: 0 },
    })
    expect(commands).toHaveLength(13)
    expect(commands?.map(({ name }) => name)).toEqual(commands?.map(({ name }) => name).sort())
  })

  it('[RF 14] of a run that has ended holds what was said, with its clocks, and the turn as the last one', () => {
    const session = new RemoteSession()
      .begins('r')
      .answers('Reading.', [call('c1'), call('c2', { name: 'shell', arguments: { command: 'npm test' } })], {
        responseMs: 400,
        thoughtMs: 100,
        thoughtTokens: 12,
      })
      .settles('c1', 'one')
      .settles('c2', 'failed', true)
      .goesOn()
      .answers('Done.')
      .ends()
    const snapshot = session.snapshot()
    const turn = {
      turn_id: 'turn:r',
      started_at: at(0),
      ended_at: at(5),
      elapsed_work_ms: 5000,
      outcome: 'completed',
    }
    const content = (words: string, id: string) => ({
      text: words,
      truncated: false,
      offset: 0,
      total_bytes: words.length,
      content_id: `message:h0:${id}`,
    })
    expect(snapshot.transcript).toEqual([
      {
        message_id: 'm1',
        role: 'user',
        content: content('prompt of r', 'm1'),
        origin: { kind: 'user' },
        timestamp: at(0),
        turn,
      },
      {
        message_id: 'm2',
        role: 'assistant',
        content: content('Reading.', 'm2'),
        timestamp: at(0.6),
        response_time_ms: 400,
        thought_time_ms: 100,
        thought_tokens: 12,
        thought_tokens_estimated: true,
        completed_at: at(1),
        turn,
      },
      {
        message_id: 'm2.0',
        role: 'tool',
        content: content('one', 'm2.0'),
        tool: {
          call_id: 'c1',
          name: 'read_file',
          detail: 'a.ts',
          arguments_id: 'arguments:h0:m2.0',
          success: true,
          pending: false,
        },
        timestamp: at(1),
        completed_at: at(2),
        turn,
      },
      {
        message_id: 'm2.1',
        role: 'tool',
        content: content('failed', 'm2.1'),
        tool: {
          call_id: 'c2',
          name: 'shell',
          detail: 'npm test',
          arguments_id: 'arguments:h0:m2.1',
          success: false,
          pending: false,
        },
        timestamp: at(1),
        completed_at: at(3),
        turn,
      },
      {
        message_id: 'm3',
        role: 'assistant',
        content: content('Done.', 'm3'),
        timestamp: at(4),
        completed_at: at(4),
        turn,
      },
    ])
    expect(snapshot.last_turn).toEqual(turn)
    expect(snapshot.turn).toBeUndefined()
    expect(snapshot.history_cursor).toBeUndefined()
    expect(RemoteSnapshot.parse(JSON.parse(JSON.stringify(snapshot)))).toEqual(snapshot)
  })

  it('[RF 14] of a run that goes on holds its turn: what is being said, its tools, its clocks', () => {
    const session = new RemoteSession()
      .begins('r')
      .answers('Reading.', [
        call('c1'),
        call('c2', { answer: { result: 'no', isError: true, refused: true } }),
        call('c3'),
      ])
      .settles('c1', 'one')
    session.live = { text: 'It says', thoughts: { ms: 30, tokens: 4 } }
    expect(session.snapshot().turn).toEqual({
      turn_id: 'turn:r',
      live_response: {
        text: 'It says',
        truncated: false,
        offset: 0,
        total_bytes: 7,
        content_id: 'response:turn:r',
      },
      tools: [
        { id: 'c1', name: 'read_file', detail: 'a.ts', state: 'succeeded' },
        { id: 'c2', name: 'read_file', detail: 'a.ts', state: 'failed' },
        { id: 'c3', name: 'read_file', detail: 'a.ts', state: 'running' },
      ],
      can_steer: true,
      timing: { turn_id: 'turn:r', started_at: at(0), elapsed_work_ms: 3000 },
      thought_time_ms: 30,
      thought_tokens: 4,
      thought_tokens_estimated: true,
    })
  })

  it('[RF 14] a call that waits is an item without a result, and no turn is served at a pause', () => {
    const session = new RemoteSession().begins('r').answers('Reading.', [call('c1')])
    session.pauses({ phase: { k: 'AwaitingTool', calls: [], resume: 'NextTurn' } })
    const { transcript, turn } = session.snapshot()
    expect(transcript.at(-1)).toMatchObject({
      content: { text: '', truncated: false, total_bytes: 0 },
      tool: { success: false, pending: true },
    })
    expect(transcript.at(-1)?.completed_at).toBeUndefined()
    expect(turn?.can_steer).toBe(false)
  })

  it('[RF 14] holds the newest 40 items, and the cursor of those before', () => {
    const session = new RemoteSession().begins('r')
    for (let n = 0; n < 15; n++) session.answers(`round ${n}`, [call(`x${n}`), call(`y${n}`)])
    const { transcript, history_cursor: cursor } = session.snapshot()
    expect(transcript).toHaveLength(40)
    // 1 prompt and 45 items: the first 6 are left out.
    expect([transcript[0]?.message_id, cursor]).toEqual(['m3.1', '3.2@h0'])
    expect(transcript.at(-1)?.message_id).toBe('m16.1')
  })

  it('[RF 14] lists the first 32 tools and prompts, and counts the others', () => {
    const session = new RemoteSession().begins('r')
    session.answers(
      'All.',
      Array.from({ length: 40 }, (_, n) => call(`c${n}`)),
    )
    session.pending = Array.from({ length: 35 }, (_, n) => ({
      kind: 'queue',
      text: `${n} ${'p'.repeat(600)}`,
    }))
    const { turn, pending_prompts: prompts, omitted } = session.snapshot()
    expect(turn?.tools.map(({ id }) => id)).toEqual(Array.from({ length: 32 }, (_, n) => `c${n}`))
    expect(prompts).toHaveLength(32)
    expect(prompts[0]).toEqual({
      kind: 'queue',
      text: { text: `0 ${'p'.repeat(510)}`, truncated: true, offset: 0, total_bytes: 602 },
    })
    expect(omitted).toEqual({ tools: 8, subagents: 0, pending_prompts: 3, background_tasks: 0 })
  })

  it('[D09] shows no settings where nobody knows them, or where they are too many', () => {
    const session = new RemoteSession()
    const settings = (models: number) => ({
      models: Array.from({ length: models }, (_, n) => ({
        id: `p${n}`,
        model: 'm',
        reasoning_efforts: ['default'],
      })),
      selected_model: 'p0',
      reasoning_effort: 'default',
      can_change: true,
    })
    expect(session.snapshot().settings).toBeUndefined()
    session.settings = settings(3)
    expect(session.snapshot().settings).toEqual(settings(3))
    session.settings = settings(3000)
    expect(session.snapshot().settings).toBeUndefined()
  })

  it('[RF 14] the end of a long answer is shown, cut at 32 KiB', () => {
    const session = new RemoteSession().begins('r')
    session.live = { text: '€'.repeat(20_000), thoughts: null }
    const response = session.snapshot().turn?.live_response
    expect(response).toMatchObject({ truncated: true, offset: 60_000 - 32_766, total_bytes: 60_000 })
    expect(response?.text).toBe('€'.repeat(10_922))
  })
})

describe('a snapshot that would not fit a frame', () => {
  it('[RF 14] leaves out the older half of its messages, again and again, and its cursor leads to them', () => {
    const session = new RemoteSession().begins('r')
    for (let n = 0; n < 39; n++) session.answers('\u0001'.repeat(5000))
    const snapshot = session.snapshot()
    expect(snapshot.transcript).toHaveLength(10)
    expect(frameBytes(snapshot)).toBeLessThanOrEqual(MAX_PAYLOAD_BYTES)
    const page = session.page(snapshot.history_cursor ?? null)
    expect(page.messages.at(-1)?.message_id).toBe('m30')
    expect(snapshot.transcript[0]?.message_id).toBe('m31')
  })

  it('[RF 14] then shortens the answer under way, and keeps its end', () => {
    const session = new RemoteSession().begins('r')
    session.answers('\u0001'.repeat(5000))
    session.live = { text: `${'\u0001'.repeat(40_000)}end`, thoughts: null }
    session.settings = {
      models: Array.from({ length: 900 }, (_, n) => ({
        id: `p${n}`,
        model: 'm',
        reasoning_efforts: ['default'],
      })),
      selected_model: 'p0',
      reasoning_effort: 'default',
      can_change: true,
    }
    const snapshot = session.snapshot()
    expect(snapshot.transcript).toEqual([])
    expect(snapshot.settings?.models).toHaveLength(900)
    expect(snapshot.turn?.live_response.text.endsWith('end')).toBe(true)
    expect(snapshot.turn?.live_response).toMatchObject({ truncated: true, total_bytes: 40_003 })
    expect(frameBytes(snapshot)).toBeLessThanOrEqual(MAX_PAYLOAD_BYTES)
    // Nothing is unreachable: the cursor stands behind the newest message.
    expect(session.page(snapshot.history_cursor ?? null).messages.map(({ message_id: id }) => id)).toEqual([
      'm1',
      'm2',
    ])
    expect(session.whole('response:turn:r')).toBe(session.live.text)
  })
})
