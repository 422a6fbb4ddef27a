import { describe, expect, test } from 'vitest'
import { mentionsOf } from '../../../src/core/privacy/mentions.ts'
import { planTurn } from '../../../src/core/resolve.ts'
import { callPaths, parsePathArguments } from '../../../src/core/transcript.ts'
import {
  EARLIER_RUN,
  makeCall,
  makeRequest,
  makeView,
  modelSays,
  must,
  userSays,
} from '../../support/core/builders.ts'

const PAST = [makeCall({ name: 'read_file', arguments: { path: 'secrets/key' } }, '')]
const PRIVATE = makeRequest({ privacy: { restricted_paths: ['secrets/**'] } })

describe('calls of rounds that are no longer read', () => {
  test('[U37][D28] of the current run still bind it to local models', () => {
    const said = [userSays('now'), modelSays('so')]
    const because = (pastCalls = PAST) =>
      must(planTurn({ ...makeView(PRIVATE, { said }), pastCalls })).demands.localBecause
    expect([because(), because([])]).toEqual(['required_content', null])
  })

  test('[U37][D28] of an earlier run still constrain what was said after them, and the current run is free', () => {
    const said = [modelSays('the key is', { runId: EARLIER_RUN }), userSays('now')]
    const plan = (pastCalls = PAST) => must(planTurn({ ...makeView(PRIVATE, { said }), pastCalls }))
    const constrained = ({ candidates }: ReturnType<typeof plan>) => candidates.map((one) => one.constrained)
    expect(constrained(plan())).toEqual([true])
    expect(constrained(plan([]))).toEqual([false])
    expect(plan().demands.localBecause).toBeNull()
  })

  test('[D11][D28] still count for the kinds of context that rules ask for', () => {
    const classification = { rules: [{ intent: 'review' as const, requires_any_context: ['file_changed'] }] }
    const view = makeView(makeRequest({ classification }), {
      said: [userSays('now'), modelSays('so')],
    })
    const changed = [makeCall({ name: 'write_file', changesFiles: true }, '')]
    const intentOf = (pastCalls = changed) => must(planTurn({ ...view, pastCalls })).classification.intent
    expect([intentOf(), intentOf([])]).toEqual(['review', 'chat'])
  })
})

test('[D28] arguments without long contents name the same paths', () => {
  const long = 'x '.repeat(5000)
  const args = {
    path: 'a.ts',
    content: long,
    command: `cat b.ts ${long}`,
    edits: [{ file_path: 'c.ts', text: long }, long, 'd.ts'],
    files: ['e.ts', long],
  }
  const kept = { arguments: parsePathArguments(JSON.stringify(args)) }
  expect(callPaths(kept)).toEqual(callPaths({ arguments: args }))
  expect(mentionsOf(kept)).toEqual(mentionsOf({ arguments: args }))
  expect(JSON.stringify(kept).length).toBeLessThan(11_000)
})
