import { expect } from 'vitest'
import { loadCheckpoint } from '../../../../src/storage/session/checkpoint.ts'
import { commitStep } from '../../../../src/storage/session/commit.ts'
import {
  eachPolicy,
  forgetUnusedPolicies,
  loadPolicies,
  savePolicy,
} from '../../../../src/storage/session/policies.ts'
import { saveRunInput } from '../../../../src/storage/session/run-input.ts'
import { expireTraces, loadTurns, saveTurn } from '../../../../src/storage/session/turns.ts'
import { makeRequest } from '../../../support/core/builders.ts'
import { entry, makeState, makeTurn } from './builders.ts'
import { count, NOW, ruleInto, type StorageRule } from './rules.ts'

export const POLICY_RULES: StorageRule[] = []

const rule = ruleInto(POLICY_RULES)
const { policy } = makeRequest()

rule('a policy is kept once however many runs bring it, and found under its key', (sql) => {
  savePolicy(sql, 'sha256:a', policy)
  savePolicy(sql, 'sha256:a', policy)
  savePolicy(sql, 'sha256:b', { ...policy, source: 'other' })
  expect(count(sql, 'policies')).toBe(2)
  expect(loadPolicies(sql, ['sha256:b', 'sha256:none'])).toEqual({
    'sha256:b': { ...policy, source: 'other' },
  })
  expect([...eachPolicy(sql)].map(({ digest }) => digest)).toEqual(['sha256:a', 'sha256:b'])
})

rule('a policy that is too long is not kept, and one answer holds no more than it may', (sql) => {
  const long = (n: number, chars: number) => ({ ...policy, source: `${n}`.padEnd(chars, 'x') })
  savePolicy(sql, 'sha256:long', long(0, 65_536))
  expect(count(sql, 'policies')).toBe(0)
  for (let n = 100; n < 200; n++) savePolicy(sql, `sha256:${n}`, long(n, 60_000))
  const keys = Array.from({ length: 100 }, (_, n) => `sha256:${n + 100}`)
  const read = Object.keys(loadPolicies(sql, keys))
  expect(read.length).toBeGreaterThan(50)
  expect(read.length).toBeLessThan(70)
})

rule('[D31] a policy goes with the last trace that names it', (sql) => {
  savePolicy(sql, 'sha256:old', policy)
  savePolicy(sql, 'sha256:new', policy)
  savePolicy(sql, 'sha256:now', policy)
  const ended = (seq: number, endedAtMs: number, policyDigest: string) =>
    makeTurn(seq, { status: 'done', trace: [entry(`e${seq}`)], endedAtMs, policyDigest })
  saveTurn(sql, ended(1, NOW, 'sha256:old'))
  saveTurn(sql, ended(2, NOW + 10, 'sha256:new'))
  saveTurn(sql, makeTurn(3, { policyDigest: 'sha256:now' }))
  forgetUnusedPolicies(sql)
  expect(count(sql, 'policies')).toBe(3)
  expect(expireTraces(sql, NOW + 1, 5)).toBe(1)
  expect([...eachPolicy(sql)].map(({ digest }) => digest)).toEqual(['sha256:new', 'sha256:now'])
  expect(loadTurns(sql, 1, 9).map(({ policyDigest }) => policyDigest)).toEqual([
    'sha256:old',
    'sha256:new',
    'sha256:now',
  ])
})

rule('[EC 15] words injected long after bring the policy of their run back', (sql) => {
  const state = makeState({ policyDigest: 'sha256:old' })
  saveRunInput(sql, makeRequest())
  const writes = [{ w: 'injected_input' as const }]
  commitStep(
    sql,
    loadCheckpoint(sql),
    { state, writes, events: [], effects: [] },
    { nowMs: NOW, runInput: null, sealedId: null },
  )
  expect(Object.keys(loadPolicies(sql, ['sha256:old']))).toEqual(['sha256:old'])
})
