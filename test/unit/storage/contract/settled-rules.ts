import { expect } from 'vitest'
import type { SettledOutcome, Write } from '../../../../src/core/run/writes.ts'
import { insertApproval, settledApprovals } from '../../../../src/storage/session/approvals.ts'
import { callStandings } from '../../../../src/storage/session/call-status.ts'
import { insertMessage, settleCall } from '../../../../src/storage/session/messages.ts'
import { assistantMessage, call } from './builders.ts'
import { NOW, ruleInto, type StorageRule } from './rules.ts'

export const SETTLED_RULES: StorageRule[] = []

const rule = ruleInto(SETTLED_RULES)

const approval = (
  id: string,
  outcome: SettledOutcome,
  target: Pick<Extract<Write, { w: 'approval' }>, 'targetType' | 'targetId'> = {
    targetType: 'gate',
    targetId: id,
  },
): Extract<Write, { w: 'approval' }> => ({
  w: 'approval',
  id,
  ...target,
  decision: outcome === 'approved' ? 'approved' : 'rejected',
  outcome,
})

rule('[U21][U22] what became of an approval is found under its id: of a gate, and of a plan', (sql) => {
  insertApproval(sql, approval('yes', 'approved'), NOW)
  insertApproval(sql, approval('no', 'rejected'), NOW)
  insertApproval(sql, approval('stopped', 'cancelled'), NOW)
  insertApproval(sql, approval('plan', 'superseded', { targetType: 'plan', targetId: 'p1' }), NOW)
  expect(Object.fromEntries(settledApprovals(sql, ['plan', 'no', 'yes', 'stopped', 'unknown']))).toEqual({
    yes: 'approved',
    no: 'rejected',
    stopped: 'cancelled',
    plan: 'superseded',
  })
  expect(settledApprovals(sql, ['p1']).size).toBe(0)
  expect(settledApprovals(sql, []).size).toBe(0)
})

rule('[U21] the decision on a call is none of its approvals: the call itself tells', (sql) => {
  insertApproval(sql, approval('a1', 'approved', { targetType: 'tool_call', targetId: 'c1' }), NOW)
  expect(settledApprovals(sql, ['a1', 'c1']).size).toBe(0)
})

rule(
  '[D32] a gate that an older release settled, under an id of its own and without an outcome, is found',
  (sql) => {
    sql.rows(
      `INSERT INTO approvals (id, target_type, target_id, decision, reason, created_at)
     VALUES ('row', 'gate', 'gate', 'rejected', NULL, ?), ('other', 'tool_call', 'c1', 'approved', NULL, ?)`,
      NOW,
      NOW,
    )
    expect([...settledApprovals(sql, ['gate', 'c1'])]).toEqual([['gate', 'rejected']])
  },
)

rule('[U21][U24] a call tells how it stands; one that the session never had does not', (sql) => {
  const answer = { result: 'no', isError: true, refused: true }
  insertMessage(sql, 1, assistantMessage('m1', '', [call('c1'), call('c2'), call('c3', { answer })]), NOW, 1)
  settleCall(sql, { w: 'settle_call', callId: 'c1', isError: false, content: 'r' }, NOW)
  expect(Object.fromEntries(callStandings(sql, ['c1', 'c2', 'c3', 'c4']))).toEqual({
    c1: { status: 'completed' },
    c2: { status: 'pending' },
    c3: { status: 'failed' },
  })
})

rule('[U22] a call tells what the user decided about it, and whether a stop or new input ended it', (sql) => {
  const ids = ['yes', 'no', 'stopped', 'replaced', 'given up', 'said so']
  insertMessage(
    sql,
    1,
    assistantMessage(
      'm1',
      '',
      ids.map((id) => call(id)),
    ),
    NOW,
    1,
  )
  const settle = (callId: string, content: string, isError = true) =>
    settleCall(sql, { w: 'settle_call', callId, isError, content }, NOW)
  settle('yes', 'r', false)
  insertApproval(sql, approval('a1', 'approved', { targetType: 'tool_call', targetId: 'yes' }), NOW)
  settle('no', 'not that')
  insertApproval(sql, approval('a2', 'rejected', { targetType: 'tool_call', targetId: 'no' }), NOW)
  // A decision on something else that bears the id of a call.
  insertApproval(sql, approval('a3', 'approved', { targetType: 'gate', targetId: 'stopped' }), NOW)
  settle('stopped', 'Cancelled by the user.')
  settle('replaced', 'Cancelled: the user gave new input.')
  settle('given up', 'Cancelled: the user started something else.')
  settle('said so', 'Cancelled by the user.', false)
  expect(Object.fromEntries(callStandings(sql, ids))).toEqual({
    yes: { status: 'completed', decision: 'approved' },
    no: { status: 'failed', decision: 'rejected' },
    stopped: { status: 'failed', outcome: 'cancelled' },
    replaced: { status: 'failed', outcome: 'superseded' },
    'given up': { status: 'failed', outcome: 'superseded' },
    'said so': { status: 'completed' },
  })
})
