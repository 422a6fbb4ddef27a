import { expect } from 'vitest'
import type { Step } from '../../../../src/core/run/step.ts'
import type { CallRecord, Write } from '../../../../src/core/run/writes.ts'
import { messageRef } from '../../../../src/protocol/execution/content-refs.ts'
import { ExecuteRequest } from '../../../../src/protocol/execution/execute.ts'
import {
  type Checkpoint,
  EMPTY_OUTBOX,
  loadCheckpoint,
  runsBegun,
} from '../../../../src/storage/session/checkpoint.ts'
import { commitStep } from '../../../../src/storage/session/commit.ts'
import { loadMessages } from '../../../../src/storage/session/messages.ts'
import { loadRunInput, saveRunInput } from '../../../../src/storage/session/run-input.ts'
import { saveSealed } from '../../../../src/storage/session/sealed-contents.ts'
import { loadSession, saveSession } from '../../../../src/storage/session/session-row.ts'
import type { Sql } from '../../../../src/storage/session/sql.ts'
import { loadTurn } from '../../../../src/storage/session/turns.ts'
import { executeRequest } from '../../../support/node/run-request.ts'
import { assistantMessage, call, lostCall, makeSession, makeState, userMessage } from './builders.ts'
import { count, NOW, ruleInto, type StorageRule } from './rules.ts'

export const STEP_RULES: StorageRule[] = []

const rule = ruleInto(STEP_RULES)

const commit = (
  sql: Sql,
  before: Checkpoint,
  writes: Write[],
  state = makeState(),
  nowMs = NOW,
  sealedId: string | null = null,
): Checkpoint => {
  const result: Step = { state, writes, events: [], effects: [] }
  return sql.transaction(() =>
    commitStep(sql, before, result, { nowMs, runInput: executeRequest('hi'), sealedId }),
  )
}
const openTurn = (turnId: string): Write => ({ w: 'open_turn', turnId, runId: 'run', turn: 1 })
const closeTurn = (turnId: string): Write => ({ w: 'close_turn', turnId, status: 'done', outcome: null })

rule(
  '[D26] a step is stored with what it owes to D1: a running turn not yet, all else from the oldest row on',
  (sql) => {
    saveSession(sql, makeSession())
    const first = commit(sql, loadCheckpoint(sql), [
      { w: 'run_input' },
      userMessage('m1', 'hi'),
      openTurn('t1'),
    ])
    expect(first.counters).toEqual({ message: 1, turn: 1, rev: 1, ringReserved: 0, runs: 1 })
    expect(first.outbox).toEqual({ ...EMPTY_OUTBOX, messagesFrom: 1 })
    const second = commit(
      sql,
      first,
      [
        assistantMessage('m2', 'hello', [call('c1')]),
        { w: 'call', turnId: 't1', call: lostCall },
        closeTurn('t1'),
      ],
      makeState(),
      NOW + 9,
    )
    expect(second.outbox).toEqual({ ...EMPTY_OUTBOX, session: true, messagesFrom: 1, turnsFrom: 1 })
    expect(loadSession(sql)).toMatchObject({ updatedAtMs: NOW + 9, rev: 2 })
    const sent: Checkpoint = { ...second, outbox: EMPTY_OUTBOX }
    const third = commit(sql, sent, [
      userMessage('m3', 'more'),
      { w: 'settle_call', callId: 'c1', isError: false, content: 'r' },
    ])
    expect(third.outbox).toEqual({ ...EMPTY_OUTBOX, messagesFrom: 2 })
    expect(loadMessages(sql, 1, 9).map(({ rev }) => rev)).toEqual([1, 3, 3])
    expect(loadCheckpoint(sql)).toEqual(third)
  },
)

rule(
  '[EC 17] messages whose texts are lost leave no gap: the next one has the place of the first of them',
  (sql) => {
    const commitSealed = (before: Checkpoint, writes: Write[]): Checkpoint =>
      commit(sql, before, writes, makeState(), NOW, 'session')
    const said = commitSealed(loadCheckpoint(sql), [userMessage('m1', ''), userMessage('m2', '')])
    saveSealed(sql, messageRef('m1'), { version: 1, algorithm: '', key_id: '', nonce: '', ciphertext: '' })
    const lost = commitSealed(said, [{ w: 'dropped', refs: [messageRef('m1'), messageRef('m2')] }])
    expect(lost.counters.message).toBe(1)
    commitSealed(lost, [{ w: 'dropped', refs: [] }, userMessage('m3', '')])
    expect(loadMessages(sql, 1, 9).map(({ seq, id }) => [seq, id])).toEqual([
      [1, 'm1'],
      [2, 'm3'],
    ])
  },
)

const SERVING = { lease: 'l', turnId: 't1', startedAtMs: NOW, leaseUntilMs: NOW + 9 }

rule(
  '[D03] a turn lists its session, under an epoch that is later than the one before whatever the clock says',
  (sql) => {
    saveSession(sql, makeSession({ epoch: NOW + 50 }))
    const served = commit(sql, loadCheckpoint(sql), [openTurn('t1')], makeState({ active: SERVING }))
    expect(loadSession(sql)).toMatchObject({ listed: true, epoch: NOW + 51, rev: 1, updatedAtMs: NOW })
    expect(served.outbox).toEqual({ ...EMPTY_OUTBOX, session: true, listing: NOW })
    const ended = commit(sql, served, [closeTurn('t1')], makeState(), NOW + 100)
    expect(loadSession(sql)).toMatchObject({ listed: true, epoch: NOW + 51, rev: 2, updatedAtMs: NOW + 100 })
    // Since when something is owed stays: by it the waits grow.
    expect(ended.outbox.listing).toBe(NOW)
    const paid: Checkpoint = { ...ended, outbox: EMPTY_OUTBOX }
    expect(commit(sql, paid, [], makeState({ active: SERVING }), NOW + 200).outbox.listing).toBe(NOW + 200)
    expect(loadSession(sql)?.epoch).toBe(NOW + 51)
  },
)

rule(
  '[D03] a turn does not list a session that was unshared, or is archived, and the end of one lists none',
  (sql) => {
    const off = [makeSession({ sharingOff: true }), makeSession({ archivedAtMs: NOW })]
    for (const session of off) {
      saveSession(sql, session)
      const served = commit(sql, loadCheckpoint(sql), [], makeState({ active: SERVING }))
      expect(served.outbox).toEqual(EMPTY_OUTBOX)
      expect(loadSession(sql)).toMatchObject({ listed: false, epoch: null })
    }
    sql.rows('DELETE FROM session')
    saveSession(sql, makeSession())
    commit(sql, loadCheckpoint(sql), [openTurn('t2'), closeTurn('t2')])
    expect(loadSession(sql)).toMatchObject({ listed: false, epoch: null })
  },
)

rule('[D23] the call that left is known before it answers, and what it came to replaces it', (sql) => {
  const open = commit(sql, loadCheckpoint(sql), [openTurn('t1'), { w: 'call', turnId: 't1', call: lostCall }])
  expect(loadTurn(sql, 't1')?.calls).toEqual([lostCall])
  const failed: CallRecord = { ...lostCall, status: 'failed' }
  const retried = commit(sql, open, [
    { w: 'call_settled', turnId: 't1', call: failed },
    { w: 'call', turnId: 't1', call: lostCall },
  ])
  const answered: CallRecord = { ...lostCall, status: 'answered', usage: { inputTokens: 3 } }
  commit(sql, retried, [{ w: 'call_settled', turnId: 't1', call: answered }])
  expect(loadTurn(sql, 't1')?.calls).toEqual([failed, answered])
})

rule(
  '[EC 15] text injected into an idle run keeps policy, preferences and paths of the last input, no more',
  (sql) => {
    const input = ExecuteRequest.parse({
      ...executeRequest('hi'),
      input: { text: 'hi', command: 'plan', explicit_model: 'ollama/other' },
      workspace: { root: '/p', referenced_paths: ['a'], git_diff: 'diff --git a/a b/a', active_file: 'a' },
      attachments: {
        files: [{ path: 'a', content: 'x', content_hash: 'sha256:0', required: true }],
        instructions: [{ source: 'AGENTS.md', content: 'x' }],
        invoked_skills: [{ name: 's', content: 'x' }],
        available_skills: [{ name: 't', content: 'x' }],
      },
    })
    saveRunInput(sql, input)
    commit(sql, loadCheckpoint(sql), [{ w: 'injected_input' }])
    const kept = loadRunInput(sql)
    expect(kept.input).toEqual({ text: 'hi' })
    expect(kept.policy).toEqual(input.policy)
    expect(kept.local_preferences).toEqual(input.local_preferences)
    expect(kept.workspace).toEqual({ ...input.workspace, git_diff: null })
    expect(kept.attachments).toEqual({
      files: [],
      instructions: [],
      invoked_skills: [],
      available_skills: [],
    })
  },
)

rule('[EC 13] approvals and plans are kept with their outcome', (sql) => {
  const made = commit(sql, loadCheckpoint(sql), [{ w: 'plan', id: 'p1', version: 2, content: 'first this' }])
  commit(
    sql,
    made,
    [
      {
        w: 'approval',
        id: 'a1',
        targetType: 'plan',
        targetId: 'p1',
        decision: 'approved',
        outcome: 'approved',
        reason: 'good',
      },
      { w: 'plan_status', id: 'p1', status: 'approved' },
    ],
    makeState(),
    NOW + 1,
  )
  expect(sql.rows('SELECT * FROM plans')).toEqual([
    { id: 'p1', content: 'first this', status: 'approved', created_at: NOW, updated_at: NOW + 1, version: 2 },
  ])
  expect(sql.rows('SELECT * FROM approvals')).toEqual([
    {
      id: 'a1',
      target_type: 'plan',
      target_id: 'p1',
      decision: 'approved',
      reason: 'good',
      created_at: NOW + 1,
      outcome: 'approved',
    },
  ])
})

rule('[D26] a step that cannot be stored whole is not stored at all', (sql) => {
  saveSession(sql, makeSession())
  const before = commit(sql, loadCheckpoint(sql), [userMessage('m1', 'hi'), openTurn('t1')])
  const writes: Write[] = [
    userMessage('m2', 'lost'),
    assistantMessage('m3', '', [call('c1'), call('c1')]),
    closeTurn('t1'),
  ]
  expect(() => commit(sql, before, writes, makeState({ turn: 2 }))).toThrow()
  expect(loadCheckpoint(sql)).toEqual(before)
  expect(loadMessages(sql, 1, 9).map(({ id }) => id)).toEqual(['m1'])
  expect(loadTurn(sql, 't1')?.status).toBe('running')
  expect(count(sql, 'tool_calls')).toBe(0)
})

rule('[D27] runs are counted as they begin, those of an older release by their turns', (sql) => {
  saveSession(sql, makeSession())
  const begin = (before: Checkpoint, turnId: string, runId: string) =>
    commit(sql, before, [{ w: 'run_input' }, { w: 'open_turn', turnId, runId, turn: 1 }])
  const first = begin(loadCheckpoint(sql), 't1', 'run')
  const same = commit(sql, first, [{ w: 'open_turn', turnId: 't2', runId: 'run', turn: 2 }])
  const second = begin(same, 't3', 'other')
  expect([first, same, second].map(({ counters }) => counters.runs)).toEqual([1, 1, 2])
  const { runs: _, ...older } = second.counters
  expect(runsBegun(sql, older)).toBe(2)
  expect(begin({ ...second, counters: older }, 't4', 'third').counters.runs).toBe(3)
})
