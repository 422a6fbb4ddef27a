import { expect, test } from 'vitest'
import { makePrivacyGuard } from '../../../../src/core/privacy/guard.ts'
import { isPrivate, planTurn, prepareCall } from '../../../../src/core/resolve.ts'
import {
  LOCAL,
  makeCall,
  makeModel,
  makePrivacy,
  makeRequest,
  makeView,
  must,
} from '../../../support/core/builders.ts'
import { checkTurns } from '../../../support/core/privacy-rules.ts'
import { checkSessions } from '../../../support/core/private-sessions.ts'

const seldom = (counts: Record<string, number>, least: number) =>
  Object.entries(counts).filter(([, times]) => times < least)

test('[U37][EC 9] in 500 random turns no byte of constrained content is in a request to a remote model', () => {
  expect(seldom(checkTurns(500, 1), 10)).toEqual([])
})

test('[U37][EC 9] in 100 sessions under changing policies no remote provider gets what a model repeats of a private file', async () => {
  expect(seldom(await checkSessions(100, 2), 10)).toEqual([])
})

// What these properties have found once.

test('[U37] what is said under mode deny stays local, even where a local-only rule would have kept the turn local anyway', () => {
  const rules = [{ name: 'here', local_only: true, model: LOCAL }]
  const privacyOf = (mode: 'allow' | 'deny') => {
    const request = makeRequest({ rules, privacy: { remote: { mode } } })
    const plan = must(planTurn(makeView(request)))
    return isPrivate(plan, prepareCall(plan, makeModel(LOCAL)))
  }
  expect([privacyOf('deny'), privacyOf('allow')]).toEqual([true, false])
})

test('[U37] a result says where its text is from, also in JSON over many lines behind something else', () => {
  const guard = makePrivacyGuard(makePrivacy({ restricted_paths: ['secrets/**'] }), [], '/w')
  const hits = JSON.stringify({ hits: [{ file: 'secrets/key', content: '42' }] }, null, 2)
  const search = (result: string) => makeCall({ name: 'search', arguments: { query: 'x' } }, result)
  expect(guard.constraintOfCall(search(`src/a.ts:1:x\n${hits}`))).toMatchObject({ path: 'secrets/key' })
  expect(guard.constraintOfCall(search(hits.replace('secrets', 'src')))).toBeNull()
})
