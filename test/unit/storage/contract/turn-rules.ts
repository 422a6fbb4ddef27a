import { expect } from 'vitest'
import { loadTurn, loadTurns, saveTurn } from '../../../../src/storage/session/turns.ts'
import { entry, lostCall, makeTurn } from './builders.ts'
import { NOW, ruleInto, type StorageRule } from './rules.ts'

export const TURN_RULES: StorageRule[] = []

const rule = ruleInto(TURN_RULES)

rule('[D25] a turn comes back as it was saved last', (sql) => {
  saveTurn(sql, makeTurn(1))
  const done = makeTurn(1, {
    status: 'done',
    trace: [entry('e1'), entry('e2')],
    calls: [{ ...lostCall, status: 'answered', usage: { inputTokens: 1, outputTokens: 0 }, cost: '0.5' }],
    outcome: { status: 'idle', data: { trace_id: 'trace:x' } },
    endedAtMs: NOW + 5,
    rev: 2,
  })
  saveTurn(sql, done)
  saveTurn(sql, makeTurn(2))
  expect(loadTurn(sql, 't1')).toEqual(done)
  expect(loadTurn(sql, 'nobody')).toBeNull()
  expect(loadTurns(sql, 1, 10).map(({ turnId }) => turnId)).toEqual(['t1', 't2'])
  expect(loadTurns(sql, 2, 10)).toEqual([makeTurn(2)])
  expect(loadTurns(sql, 1, 1)).toEqual([done])
})

rule('[D28] a trace beyond 256 KiB is kept whole', (sql) => {
  const trace = Array.from({ length: 3000 }, (_, n) => entry(`e${n}`))
  saveTurn(sql, makeTurn(1, { trace }))
  expect(loadTurn(sql, 't1')?.trace).toEqual(trace)
})
