import { describe, expect, test } from 'vitest'
import { planTurn } from '../../../src/core/resolve.ts'
import type { Classification } from '../../../src/protocol/execution/turn.ts'
import {
  EARLIER_RUN,
  makeCall,
  makeFile,
  makeRequest,
  makeView,
  modelSays,
  must,
  type RequestParts,
  userSays,
} from '../../support/core/builders.ts'

type ViewFields = Parameters<typeof makeView>[1]

/** A sentence that states the rule, what the request says, what the run has come to, what is expected. */
type Row<Expected> = [says: string, parts: RequestParts, fields: ViewFields, expected: Expected]

const classified = (parts: RequestParts, fields: ViewFields): Classification =>
  must(planTurn(makeView(makeRequest(parts), fields))).classification

const READ = makeCall({ name: 'read_file', arguments: { path: 'a' } })
const CHANGE = makeCall({ name: 'edit_file', changesFiles: true })
const FAILED = makeCall({ name: 'shell', isError: true })
const OPEN = makeCall({ name: 'shell', id: 'open' }, null)

/** The kinds that a rule may name: those of the contract, those of a run's state, and one that is never there. */
const KINDS = [
  'git_diff',
  'git_branch',
  'active_file',
  'referenced_paths',
  'tool_results',
  'tool_error',
  'file_changed',
  'plan_approved',
  'invoked_skill',
  'image',
  'pull_request',
]

/** The kinds that are present: those that a rule can be made to match on. */
const presentKinds = (parts: RequestParts, fields: ViewFields): string[] =>
  KINDS.filter((kind) => {
    const classification = { rules: [{ intent: 'edit' as const, requires_any_context: [kind] }] }
    return classified({ ...parts, classification }, fields).intent === 'edit'
  })

describe('[EC 7] context kinds of the workspace: presence, not content', () => {
  test.each<Row<string[]>>([
    ['a prompt brings none', { text: 'git_diff pull_request' }, {}, []],
    ['a diff is one', { workspace: { git_diff: 'diff --git a/x b/x' } }, {}, ['git_diff']],
    ['an empty diff still counts', { workspace: { git_diff: '' } }, {}, ['git_diff']],
    ['a branch', { workspace: { git_branch: 'main' } }, {}, ['git_branch']],
    ['an empty branch still counts', { workspace: { git_branch: '' } }, {}, ['git_branch']],
    ['an active file', { workspace: { active_file: 'a' } }, {}, ['active_file']],
    ['a referenced path', { workspace: { referenced_paths: ['a'] } }, {}, ['referenced_paths']],
    ['an empty list of paths is none', { workspace: { referenced_paths: [] } }, {}, []],
    ['null is absent', { workspace: { git_branch: null, git_diff: null, active_file: null } }, {}, []],
    [
      'several at once',
      { workspace: { git_branch: 'main', git_diff: '', active_file: 'a', referenced_paths: ['a'] } },
      {},
      ['git_diff', 'git_branch', 'active_file', 'referenced_paths'],
    ],
  ])('%s', (_, parts, fields, expected) => {
    expect(presentKinds(parts, fields)).toEqual(expected)
  })
})

describe('[D11] context kinds of the state of a run', () => {
  test.each<Row<string[]>>([
    [
      'an invoked skill is one',
      { attachments: { invoked_skills: [{ name: 's', content: '' }] } },
      {},
      ['invoked_skill'],
    ],
    [
      'a skill that is merely available is none',
      { attachments: { available_skills: [{ name: 's', content: '' }] } },
      {},
      [],
    ],
    [
      'a picture that is attached',
      { attachments: { files: [makeFile('a.png', 'data:image/png;base64,iVBORw0KGgoA')] } },
      {},
      ['image'],
    ],
    [
      'a text by the name of a picture is none',
      { attachments: { files: [makeFile('a.png', 'no picture')] } },
      {},
      [],
    ],
    ['an approved plan', {}, { planApproved: true }, ['plan_approved']],
    ['a plan in the making is none', {}, { planning: true }, []],
    [
      'results of calls; the paths that calls name are referenced',
      {},
      { said: [userSays('go'), modelSays('', { calls: [READ] })] },
      ['referenced_paths', 'tool_results'],
    ],
    [
      'a call without a result is no result',
      {},
      { said: [userSays('go'), modelSays('', { calls: [OPEN] })] },
      [],
    ],
    [
      'a call that failed is a result, too',
      {},
      { said: [userSays('go'), modelSays('', { calls: [FAILED] })] },
      ['tool_results', 'tool_error'],
    ],
    [
      'one failure among successes is an error',
      {},
      { said: [userSays('go'), modelSays('', { calls: [READ, FAILED] })] },
      ['referenced_paths', 'tool_results', 'tool_error'],
    ],
    [
      'a file that was changed makes a diff',
      {},
      { said: [userSays('go'), modelSays('', { calls: [CHANGE] })] },
      ['git_diff', 'tool_results', 'file_changed'],
    ],
    [
      'a change that failed makes none',
      {},
      { said: [userSays('go'), modelSays('', { calls: [{ ...CHANGE, isError: true }] })] },
      ['tool_results', 'tool_error'],
    ],
    [
      'results and errors are the latest ones only, and paths stay',
      {},
      { said: [userSays('go'), modelSays('', { calls: [FAILED] }), modelSays('', { calls: [READ] })] },
      ['referenced_paths', 'tool_results'],
    ],
    [
      'a change of earlier rounds stays; what the user says behind results ends them',
      {},
      { said: [userSays('go'), modelSays('', { calls: [CHANGE] }), userSays('and now?')] },
      ['git_diff', 'file_changed'],
    ],
    [
      'what earlier runs did is past',
      {},
      {
        said: [
          userSays('go', { runId: EARLIER_RUN }),
          modelSays('', { runId: EARLIER_RUN, calls: [CHANGE, READ, FAILED] }),
          userSays('now'),
        ],
      },
      [],
    ],
  ])('%s', (_, parts, fields, expected) => {
    expect(presentKinds(parts, fields)).toEqual(expected)
  })
})

const RULES: RequestParts = {
  text: 'explain this',
  classification: {
    rules: [
      { intent: 'review', keywords: ['explain'] },
      { intent: 'edit', keywords: ['repair'] },
    ],
  },
}
const said = (...messages: Parameters<typeof modelSays>[]) => [
  userSays('hello'),
  ...messages.map((message) => modelSays(...message)),
]

describe('[D11] keywords are looked for in the newest words of the user', () => {
  test.each<Row<Classification['intent']>>([
    ['the prompt', RULES, {}, 'review'],
    [
      'what was injected last, and the prompt no longer',
      RULES,
      { said: [userSays('explain this'), modelSays('ok', { interrupted: true }), userSays('no: repair it')] },
      'edit',
    ],
    [
      'an injected text without a keyword leaves the default',
      RULES,
      { said: [userSays('explain this'), userSays('go on')] },
      'chat',
    ],
    [
      'the prompt again in later rounds of its run',
      RULES,
      { said: [userSays('explain this'), modelSays('', { calls: [READ] })] },
      'review',
    ],
    ['not what a model said', RULES, { said: said(['I will repair it.']) }, 'chat'],
    [
      'not what a tool returned',
      RULES,
      { said: said(['', { calls: [makeCall({ name: 'read_file' }, 'repair explain')] }]) },
      'chat',
    ],
    [
      'not the arguments of a call',
      RULES,
      { said: said(['', { calls: [makeCall({ name: 'shell', arguments: { command: 'repair' } })] }]) },
      'chat',
    ],
    [
      'not the words of an earlier run',
      RULES,
      { said: [userSays('repair it', { runId: EARLIER_RUN }), userSays('hello')] },
      'chat',
    ],
    [
      'not what is attached',
      {
        ...RULES,
        text: 'hello',
        attachments: { instructions: [{ source: 'A', content: 'repair explain' }] },
      },
      {},
      'chat',
    ],
    ['not the diff', { ...RULES, text: 'hello', workspace: { git_diff: '+repair' } }, {}, 'chat'],
    [
      'not what is remembered',
      { ...RULES, text: 'hello' },
      { memories: [{ scope: 'user', id: 'm', content: 'repair', updatedAtMs: 0 }] },
      'chat',
    ],
  ])('%s', (_, parts, fields, expected) => {
    expect(classified(parts, fields).intent).toBe(expected)
  })
})

describe('[EC 7.1] a command counts in the first turn of its run', () => {
  test.each<Row<Pick<Classification, 'intent' | 'source'>>>([
    [
      'in the first turn it decides',
      { ...RULES, command: 'plan' },
      {},
      { intent: 'plan', source: 'explicit' },
    ],
    [
      'in a later turn the rules do',
      { ...RULES, command: 'plan' },
      { firstTurn: false },
      { intent: 'review', source: 'inferred' },
    ],
    [
      '[EC 26.14] behind an approved plan the rules do',
      { ...RULES, command: 'plan' },
      { firstTurn: false, planApproved: true },
      { intent: 'review', source: 'inferred' },
    ],
    ['null is no command', { ...RULES, command: null }, {}, { intent: 'review', source: 'inferred' }],
  ])('%s', (_, parts, fields, expected) => {
    expect(classified(parts, fields)).toMatchObject(expected)
  })
})
