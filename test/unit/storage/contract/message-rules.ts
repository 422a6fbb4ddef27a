import { expect } from 'vitest'
import { MAX_TOOL_RESULT_BYTES } from '../../../../src/storage/limits.ts'
import {
  insertMessage,
  keepRunLocal,
  loadMessages,
  settleCall,
} from '../../../../src/storage/session/messages.ts'
import { assistantMessage, call, userMessage } from './builders.ts'
import { NOW, ruleInto, type StorageRule } from './rules.ts'

export const MESSAGE_RULES: StorageRule[] = []

const rule = ruleInto(MESSAGE_RULES)

rule('[D25] messages come back in their order with everything they had', (sql) => {
  insertMessage(sql, 1, userMessage('m1', 'hello\u0000ü'), NOW, 3)
  const opaque = { signature: 'abc', nested: { n: 1 } }
  const answer = { result: 'the skill', isError: false, refused: false }
  const calls = [
    call('c1', { providerCallId: 'p1', opaque }),
    call('c2', { recordsDiff: true }),
    call('c3', { name: 'a_skill', arguments: {}, answer }),
    call('c4', { answer: { result: 'no', isError: true, refused: true } }),
  ]
  insertMessage(sql, 2, assistantMessage('m2', '', calls), NOW + 1, 4)
  insertMessage(sql, 3, { ...assistantMessage('m3', 'half a', [], true), localOnly: true }, NOW + 2, 5)
  const plain = { name: 'read_file', arguments: { path: 'a.ts' }, isError: false, changesFiles: false }
  const said = { runId: 'run', provider: 'ollama', model: 'small' }
  expect(loadMessages(sql, 1, 10)).toEqual([
    {
      seq: 1,
      id: 'm1',
      runId: 'run',
      role: 'user',
      text: 'hello\u0000ü',
      interrupted: false,
      calls: [],
      createdAtMs: NOW,
      rev: 3,
    },
    {
      ...said,
      seq: 2,
      id: 'm2',
      role: 'assistant',
      text: '',
      interrupted: false,
      calls: [
        { ...plain, id: 'c1', providerCallId: 'p1', opaque },
        { ...plain, id: 'c2', changesFiles: true },
        { ...plain, id: 'c3', name: 'a_skill', arguments: {}, result: 'the skill' },
        { ...plain, id: 'c4', result: 'no', isError: true },
      ],
      createdAtMs: NOW + 1,
      rev: 4,
    },
    {
      ...said,
      seq: 3,
      id: 'm3',
      role: 'assistant',
      text: 'half a',
      interrupted: true,
      localOnly: true,
      calls: [],
      createdAtMs: NOW + 2,
      rev: 5,
    },
  ])
})

rule('[U09] a window of messages is read without the others, calls too', (sql) => {
  for (let seq = 1; seq <= 5; seq++) {
    insertMessage(sql, seq, assistantMessage(`m${seq}`, `${seq}`, [call(`c${seq}`)]), NOW, 1)
  }
  const window = loadMessages(sql, 2, 2)
  expect(window.map(({ seq, calls }) => [seq, calls.map(({ id }) => id)])).toEqual([
    [2, ['c2']],
    [3, ['c3']],
  ])
  expect(loadMessages(sql, 6, 10)).toEqual([])
  expect(loadMessages(sql, 1, Number.MAX_SAFE_INTEGER)).toHaveLength(5)
})

rule('[EC 12.4] a result settles its call, and a file change with it', (sql) => {
  const calls = [call('c1', { recordsDiff: true }), call('c2', { recordsDiff: true }), call('c3')]
  insertMessage(sql, 1, assistantMessage('m1', '', calls), NOW, 1)
  const settle = (callId: string, isError: boolean) =>
    settleCall(sql, { w: 'settle_call', callId, isError, content: `result of ${callId}` }, NOW + 1)
  expect([settle('c1', false), settle('c2', true), settle('c3', false)]).toEqual([1, 1, 1])
  expect(sql.rows('SELECT id, status, diff_status, completed_at FROM tool_calls ORDER BY ordinal')).toEqual([
    { id: 'c1', status: 'completed', diff_status: 'applied', completed_at: NOW + 1 },
    { id: 'c2', status: 'failed', diff_status: 'rejected', completed_at: NOW + 1 },
    { id: 'c3', status: 'completed', diff_status: null, completed_at: NOW + 1 },
  ])
  const [message] = loadMessages(sql, 1, 1)
  expect(message?.calls.map(({ result, isError }) => [result, isError])).toEqual([
    ['result of c1', false],
    ['result of c2', true],
    ['result of c3', false],
  ])
})

rule('[EC 12.4] a result for a call that does not exist changes nothing', (sql) => {
  const write = { w: 'settle_call', callId: 'nobody', isError: false, content: 'x' } as const
  expect(settleCall(sql, write, NOW)).toBeNull()
})

rule('[U24] the id of a call is unique in its session', (sql) => {
  insertMessage(sql, 1, assistantMessage('m1', '', [call('c1')]), NOW, 1)
  expect(() => insertMessage(sql, 2, assistantMessage('m2', '', [call('c1')]), NOW, 1)).toThrow()
})

rule('[D27] a tool result of 8 MiB and long arguments are kept whole', (sql) => {
  const content = '🚂'.repeat(MAX_TOOL_RESULT_BYTES / 4)
  const args = { path: 'a', content: 'ü'.repeat(300_000) }
  insertMessage(sql, 1, assistantMessage('m1', '', [call('c1', { arguments: args })]), NOW, 1)
  settleCall(sql, { w: 'settle_call', callId: 'c1', isError: false, content }, NOW)
  const kept = loadMessages(sql, 1, 1)[0]?.calls[0]
  expect(kept?.result === content).toBe(true)
  expect(kept?.arguments).toEqual(args)
})

rule('[U37] what an answer’s prompt held is kept with it, however much it was', (sql) => {
  const few = { under: 'k', root: '/code', files: ['a.ts', 'privé/b.ts'], messages: '1-57,60' }
  const many = {
    under: 'k',
    root: '/code',
    files: Array.from({ length: 500 }, (_, n) => `${'deep/'.repeat(200)}${n}.ts`),
  }
  insertMessage(sql, 1, { ...assistantMessage('m1', 'one'), seen: few }, NOW, 1)
  insertMessage(sql, 2, { ...assistantMessage('m2', 'two'), seen: many }, NOW, 1)
  insertMessage(sql, 3, assistantMessage('m3', 'three'), NOW, 1)
  expect(loadMessages(sql, 1, 3).map(({ seen }) => seen)).toEqual([few, many, undefined])
})

rule('[U37] a run is kept for local models as a whole, and no other run is', (sql) => {
  insertMessage(sql, 1, userMessage('m1', 'before', 'earlier'), NOW, 1)
  insertMessage(sql, 2, userMessage('m2', 'go'), NOW, 1)
  insertMessage(sql, 3, { ...assistantMessage('m3', 'one'), localOnly: true }, NOW, 1)
  insertMessage(sql, 4, assistantMessage('m4', 'two'), NOW, 1)
  insertMessage(sql, 5, { ...userMessage('m5', 'among us', 'later'), localOnly: true }, NOW, 1)
  expect(keepRunLocal(sql, 'run', 9)).toEqual([2, 4])
  expect(loadMessages(sql, 1, 9).map(({ localOnly, rev }) => [localOnly, rev])).toEqual([
    [undefined, 1],
    [true, 9],
    [true, 1],
    [true, 9],
    [true, 1],
  ])
})
