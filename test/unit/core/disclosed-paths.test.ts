import { describe, expect, test } from 'vitest'
import { gateFor } from '../../../src/core/gates.ts'
import { planTurn, prepareCall, seenBy } from '../../../src/core/resolve.ts'
import type { TranscriptMessage } from '../../../src/core/transcript.ts'
import {
  EARLIER_RUN,
  LOCAL,
  makeCall,
  makeFile,
  makeModel,
  makeRequest,
  makeView,
  modelSays,
  must,
  type RequestParts,
  userSays,
} from '../../support/core/builders.ts'

type Said = Omit<TranscriptMessage, 'seq'>

const BIG = 'anthropic/big'
const reads = (path: string, reference: string, fields: Partial<Said> = {}): Said => {
  const [provider = '', model = ''] = reference.split('/')
  const calls = [makeCall({ name: 'read_file', id: path, arguments: { path } }, `text of ${path}`)]
  return modelSays('let me see', { provider, model, calls, ...fields })
}
const before = { runId: EARLIER_RUN }

/** What is asked before these words go to the big model; null where nothing is. */
function asked(said: Said[], parts: RequestParts = {}, granted: string[] | null = null): string[] | null {
  const privacy = { ...parts.privacy, remote: { mode: 'ask' as const } }
  const view = makeView(makeRequest({ ...parts, privacy }), { said })
  const turn = must(planTurn(view))
  const model = makeModel(BIG)
  const given = { id: 'grant', provider: 'anthropic', model: 'big', paths: granted ?? [] }
  const state = { disclosed: granted === null ? [] : [given] }
  const gate = gateFor(turn, model, prepareCall(turn, model), state)
  return gate?.kind === 'remote_disclosure' ? gate.disclosure.paths : null
}

describe('[EC 13] a disclosure names every file whose content goes in', () => {
  test('attached ones, instructions and those of the diff', () => {
    const parts: RequestParts = {
      workspace: { root: '/w', git_diff: 'diff --git a/d.ts b/d.ts\n+x' },
      attachments: {
        files: [makeFile('/w/a.ts', 'a')],
        instructions: [{ source: 'AGENTS.md', content: 'Be brief.' }],
      },
    }
    expect(asked([userSays('go')], parts)).toEqual(['a.ts', 'AGENTS.md', 'd.ts'])
  })

  test('what a local model, or one of another provider, has read in this run', () => {
    expect(asked([userSays('go'), reads('b.ts', LOCAL)])).toEqual(['b.ts'])
    expect(asked([userSays('go'), reads('b.ts', 'openai/other'), userSays('and?')])).toEqual(['b.ts'])
  })

  test('what earlier runs have read, whoever did, and what their answers were given over', () => {
    const said = [
      userSays('go', before),
      reads('b.ts', BIG, before),
      modelSays('done', { ...before, seen: { under: 'a policy', root: '/code', files: ['/code/c.ts'] } }),
      userSays('now'),
    ]
    expect(asked(said)).toEqual(['b.ts', 'c.ts'])
  })

  test('not what models of this provider read by their own calls in this run', () => {
    expect(asked([userSays('go'), reads('b.ts', BIG)], {}, [])).toBeNull()
    expect(asked([userSays('go'), reads('b.ts', 'anthropic/small')], {}, [])).toBeNull()
  })

  test('and asks again for one that was not on the list', () => {
    const said = [userSays('go'), reads('b.ts', LOCAL), reads('c.ts', LOCAL)]
    expect(asked(said, {}, ['b.ts', 'c.ts'])).toBeNull()
    expect(asked(said, {}, ['b.ts'])).toEqual(['b.ts', 'c.ts'])
  })

  test('not a message that is left out', () => {
    const parts: RequestParts = { privacy: { restricted_paths: ['secrets/**'] } }
    const said = [userSays('go', before), reads('secrets/key', LOCAL, before), userSays('now')]
    expect(asked(said, parts)).toEqual([])
  })

  test('not a call that has no result yet', () => {
    const pending = modelSays('', {
      calls: [makeCall({ name: 'read_file', arguments: { path: 'b.ts' } }, null)],
    })
    expect(asked([userSays('go'), pending, userSays('wait')])).toEqual([])
  })
})

test('[U37] what a later policy is held against is every reading of a diff, not only what is told of it', () => {
  const git_diff = 'diff --git a/docs/read me.md b/other.ts\n@@ -1 +1 @@\n-x'
  const turn = must(planTurn(makeView(makeRequest({ workspace: { git_diff } }))))
  const { files, readings } = seenBy(turn, prepareCall(turn, makeModel(LOCAL)))
  expect(files).toEqual(['/code/other.ts'])
  expect(readings).toContain('/code/docs/read me.md')
  expect(asked([userSays('go')], { workspace: { git_diff } })).toEqual(['other.ts'])
})
