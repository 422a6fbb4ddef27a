import { describe, expect, it } from 'vitest'
import {
  actionBytes,
  approvalBatch,
  CALL_RISK,
  gateRisk,
} from '../../../../src/core/remote/approval-batch.ts'
import { parseContentId } from '../../../../src/core/remote/content-ids.ts'
import {
  historyCursor,
  itemId,
  parseHistoryCursor,
  parseItemId,
} from '../../../../src/core/remote/positions.ts'
import { RemoteApprovalBatch } from '../../../../src/protocol/remote/question.ts'

const action = (text: string, target?: string) => ({
  toolName: 'shell',
  target,
  details: { text },
  risk: CALL_RISK,
})

describe('a batch of calls', () => {
  it('[RF 19] lists every action, with its tool, what it is about and its arguments', () => {
    const batch = approvalBatch('b', [action('{"command":"ls"}', 'ls'), action('{}')])
    expect(batch).toEqual({
      batch_id: 'b',
      actions: [
        {
          tool_name: 'shell',
          summary: 'shell · ls',
          risk: CALL_RISK,
          details: {
            text: '{"command":"ls"}',
            truncated: false,
            offset: 0,
            total_bytes: 16,
            content_id: 'approval:b:0',
          },
        },
        {
          tool_name: 'shell',
          summary: 'shell',
          risk: CALL_RISK,
          details: { text: '{}', truncated: false, offset: 0, total_bytes: 2, content_id: 'approval:b:1' },
        },
      ],
    })
    expect(RemoteApprovalBatch.parse(batch)).toEqual(batch)
  })

  it.each([
    [1, 32_768],
    [3, 10_922],
    [128, 256],
    [500, 256],
  ])('[RF 19] of %i shows %i bytes of the details of each', (actions, bytes) => {
    expect(actionBytes(actions)).toBe(bytes)
    const batch = approvalBatch(
      'b',
      Array.from({ length: actions }, () => action('x'.repeat(40_000))),
    )
    for (const { details } of batch.actions)
      expect([details.text.length, details.truncated, details.total_bytes]).toEqual([bytes, true, 40_000])
  })

  it('[RF 19] says how long arguments are of which the rest was not read', () => {
    const [shown] = approvalBatch('b', [
      { ...action('abc'), details: { text: 'abc', totalBytes: 900 } },
    ]).actions
    expect(shown?.details).toMatchObject({ text: 'abc', truncated: true, total_bytes: 900 })
  })

  it('[RF 19] cuts a summary to 160 characters, and says so', () => {
    const [shown] = approvalBatch('b', [action('{}', 'y'.repeat(500))]).actions
    expect([...(shown?.summary ?? '')]).toHaveLength(160)
    expect(shown?.summary).toBe(`shell · ${'y'.repeat(151)}…`)
  })

  it('[D02] each kind of gate has its own sentence on what it risks', () => {
    const risks = [
      gateRisk('remote_disclosure', false),
      gateRisk('remote_disclosure', true),
      gateRisk('cost_limit', false),
      gateRisk('plan', false),
    ]
    expect(new Set(risks).size).toBe(4)
  })
})

describe('names of contents and places', () => {
  it.each([
    ['message:h0:m12', { k: 'message', revision: 'h0', messageId: 'm12' }],
    ['arguments:h2:m1.4', { k: 'arguments', revision: 'h2', messageId: 'm1.4' }],
    ['approval:0192-x:0', { k: 'approval', batchId: '0192-x', index: 0 }],
    ['approval:a:b:17', { k: 'approval', batchId: 'a:b', index: 17 }],
    ['response:turn:r', { k: 'response', turnId: 'turn:r' }],
    ['', null],
    ['message:h0', null],
    ['message:h0:m1:more', null],
    ['approval:b:-1', null],
    ['approval:b:01', null],
    ['approval:b:9999999', null],
    ['other:h0:m1', null],
  ])('[RF 2] %j is %j', (id, parsed) => expect(parseContentId(id)).toEqual(parsed))

  it('[RF 15] a place is told by its item and by its cursor alike', () => {
    for (const place of [
      { seq: 1, part: 0 },
      { seq: 12, part: 1 },
      { seq: 99_999, part: 128 },
    ]) {
      expect(parseItemId(itemId(place))).toEqual(place)
      expect(parseHistoryCursor(historyCursor(place, 'h3'), 'h3')).toEqual(place)
      expect(parseHistoryCursor(historyCursor(place, 'h3'), 'h4')).toBeNull()
    }
    expect([itemId({ seq: 3, part: 0 }), itemId({ seq: 3, part: 1 })]).toEqual(['m3', 'm3.0'])
  })

  it.each(['', 'm', 'm0', 'm01', 'm1.', 'm1.01', 'm-1', 'x1', 'm1.2.3', 'm99999999999999999'])(
    '[RF 2] %j names no item',
    (id) => expect(parseItemId(id)).toBeNull(),
  )

  it.each(['', '1@h0', '0.0@h0', '1.0', '1.0@', '1.x@h0', '01.0@h0', '1.0@h00', ' 1.0@h0'])(
    '[RF 15] %j is no cursor',
    (cursor) => expect(parseHistoryCursor(cursor, 'h0')).toBeNull(),
  )
})
