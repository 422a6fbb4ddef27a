import { describe, expect, test } from 'vitest'
import { gatherCandidates, runUnits } from '../../../src/core/candidates.ts'
import {
  type Candidate,
  collapseDoubles,
  contextOutcome,
  makeCandidate,
  recency,
  selectContext,
} from '../../../src/core/context.ts'
import { makePrivacyGuard } from '../../../src/core/privacy/guard.ts'
import { estimateTokens } from '../../../src/core/tokens.ts'
import type { TurnView } from '../../../src/core/turn-view.ts'
import {
  EARLIER_RUN,
  makeCall,
  makeFact,
  makeFile,
  makePrivacy,
  makeRequest,
  makeView,
  modelSays,
  userSays,
} from '../../support/core/builders.ts'

const candidate = (key: string, fields: Partial<Candidate> = {}): Candidate => ({
  ...makeCandidate({
    key,
    kind: 'file',
    label: key,
    path: key,
    content: 'x',
    required: false,
    constrained: false,
    score: 1000,
  }),
  ...fields,
})

const gather = (
  view: TurnView,
  {
    restricted = [],
    referenced = [],
    focus = [],
  }: { restricted?: string[]; referenced?: string[]; focus?: string[] } = {},
) =>
  gatherCandidates(view, {
    guard: makePrivacyGuard(makePrivacy({ restricted_paths: restricted }), [], '/code'),
    isReferenced: (path) => referenced.includes(path),
    inFocus: (path) => focus.includes(path),
  })

describe('[EC 10.1] candidates', () => {
  test('every source with its kind, rank and whether it may be left out', () => {
    const view = makeView(
      makeRequest({
        workspace: { git_diff: 'diff --git a/x b/x' },
        attachments: {
          files: [makeFile('plain.ts', '1'), makeFile('flagged.ts', '2', true), makeFile('named.ts', '3')],
          instructions: [{ source: 'AGENTS.md', content: '4' }],
          invoked_skills: [{ name: 'deploy', content: '5' }],
          available_skills: [{ name: 'review', content: '# Look\n6' }],
        },
      }),
      {
        said: [
          userSays('old', { runId: EARLIER_RUN }),
          modelSays('older', { runId: EARLIER_RUN }),
          userSays('now'),
        ],
        memories: [
          makeFact({ key: 'editor', content: 'vim' }),
          makeFact({ scope: 'session', content: 'a fact' }),
        ],
      },
    )
    const rows = gather(view, { referenced: ['named.ts'] }).map(
      ({ kind, label, required, score, content }) => [kind, label, required, score, content],
    )
    expect(rows).toEqual([
      ['file', 'plain.ts', false, 5000, '1'],
      ['file', 'flagged.ts', true, 5000, '2'],
      ['file', 'named.ts', true, 5500, '3'],
      ['instruction', 'AGENTS.md', true, 5000, '4'],
      ['skill', 'skill deploy', true, 5000, '5'],
      ['git_diff', 'current git diff', false, 4000, 'diff --git a/x b/x'],
      ['message', 'user message', false, 3000, 'old'],
      ['message', 'assistant message', false, 3499, 'older'],
      ['memory', 'memory editor', false, 2000, 'editor: vim'],
      ['memory', 'session memory', false, 2000, 'a fact'],
      ['skill', 'skill review', false, 1000, 'review: Look'],
    ])
  })

  test('a file that the winning rule names is required, too', () => {
    const view = makeView(makeRequest({ attachments: { files: [makeFile('a.ts', '1')] } }))
    expect(gather(view, { focus: ['a.ts'] })[0]).toMatchObject({ required: true, score: 5500 })
  })

  test('the newer a message, the higher; a single one gains nothing', () => {
    expect([0, 1, 2, 3].map((index) => recency(index, 4))).toEqual([0, 166, 332, 499])
    expect(recency(0, 1)).toBe(0)
  })

  test('older rounds of this run rank above earlier runs', () => {
    const view = makeView(makeRequest(), {
      said: [
        userSays('before', { runId: EARLIER_RUN }),
        userSays('now'),
        modelSays('', { calls: [makeCall({ name: 'one' })] }),
        modelSays('', { calls: [makeCall({ name: 'two' })] }),
      ],
    })
    expect(gather(view).map(({ key, score }) => [key, score])).toEqual([
      ['message:1', 3000],
      ['message:3', 3999],
    ])
  })

  test.each([
    ['a command that names one', { command: 'cat secrets/key' }],
    ['a folder of them', { path: 'secrets' }],
    ['one deep in its arguments', { edits: [{ path: 'secrets/key' }] }],
  ])('[U37] history is constrained by a call with %s', (_, args) => {
    const view = makeView(makeRequest(), {
      said: [
        userSays('look', { runId: EARLIER_RUN }),
        modelSays('', { runId: EARLIER_RUN, calls: [makeCall({ name: 'shell', arguments: args })] }),
        userSays('now'),
      ],
    })
    const constrained = gather(view, { restricted: ['secrets/**'] }).filter((one) => one.constrained)
    expect(constrained.map(({ key }) => key)).toEqual(['message:2'])
  })

  test('[U37] what was answered over constrained content is constrained in later runs', () => {
    const view = makeView(makeRequest(), {
      said: [
        userSays('what is in @secrets/key?', { runId: EARLIER_RUN }),
        modelSays('It says 42.', { runId: EARLIER_RUN, localOnly: true }),
        userSays('now'),
      ],
    })
    const constrained = gather(view).filter((one) => one.constrained)
    expect(constrained.map(({ key }) => key)).toEqual(['message:2'])
  })

  test('[EC 9] history is constrained from the call on that touched a constrained path', () => {
    const secret = makeCall({ name: 'read_file', arguments: { file_path: 'secrets/key' } })
    const view = makeView(makeRequest(), {
      said: [
        userSays('look', { runId: EARLIER_RUN }),
        modelSays('I look.', {
          runId: EARLIER_RUN,
          calls: [makeCall({ name: 'x', arguments: { path: 'a' } })],
        }),
        modelSays('', { runId: EARLIER_RUN, calls: [secret] }),
        modelSays('It says 42.', { runId: EARLIER_RUN }),
        userSays('thanks', { runId: 'another' }),
        modelSays('Welcome.', { runId: 'another' }),
        userSays('now'),
      ],
    })
    const constrained = gather(view, { restricted: ['secrets/**'] }).filter((one) => one.constrained)
    expect(constrained.map(({ key }) => key)).toEqual(['message:3', 'message:4'])
  })

  test.each([
    ['a file', makeRequest({ attachments: { files: [makeFile('secrets/key', 's')] } })],
    [
      'an instruction',
      makeRequest({ attachments: { instructions: [{ source: 'secrets/AGENTS.md', content: 's' }] } }),
    ],
    ['a diff', makeRequest({ workspace: { git_diff: 'diff --git a/secrets/key b/public/key' } })],
    ['a diff of nobody knows what', makeRequest({ workspace: { git_diff: '+SECRET=1' } })],
  ])('[EC 9] %s is constrained by the paths that it shows', (_, request) => {
    const [first] = gather(makeView(request), { restricted: ['secrets/**'] })
    expect(first).toMatchObject({ constrained: true })
    expect(gather(makeView(request))[0]).toMatchObject({ constrained: false })
  })
})

describe('[EC 10.1] doubles', () => {
  test('one path twice is one candidate: required before higher score, in the place of the first', () => {
    const kept = collapseDoubles([
      candidate('one', { path: 'a', score: 9 }),
      candidate('other', { path: 'b' }),
      candidate('two', { path: 'a', required: true, score: 1 }),
      candidate('three', { path: 'a', score: 99 }),
    ])
    expect(kept.map(({ key }) => key)).toEqual(['two', 'other'])
  })

  test('the higher score where both are alike, the first where both are equal', () => {
    const pick = (first: number, second: number) =>
      collapseDoubles([
        candidate('1', { path: 'a', score: first }),
        candidate('2', { path: 'a', score: second }),
      ]).map(({ key }) => key)
    expect([pick(1, 2), pick(2, 1), pick(1, 1)]).toEqual([['2'], ['1'], ['1']])
  })

  test('without a path the same content is one candidate, and a constrained copy constrains it', () => {
    const fact = (key: string, fields: Partial<Candidate>): Candidate => {
      const { path: _, ...rest } = candidate(key, { kind: 'memory', content: 'same', ...fields })
      return rest
    }
    expect(collapseDoubles([fact('1', {}), fact('2', { constrained: true })])).toMatchObject([
      { key: '1', constrained: true },
    ])
    expect(collapseDoubles([fact('1', {}), fact('2', { content: 'other' })])).toHaveLength(2)
  })

  test('two messages that say the same stay two', () => {
    const said = [
      userSays('yes', { runId: EARLIER_RUN }),
      userSays('yes', { runId: 'another' }),
      userSays('now'),
    ]
    expect(gather(makeView(makeRequest(), { said }))).toHaveLength(2)
  })
})

describe('[EC 10.3] what goes in', () => {
  const included = (candidates: Candidate[], budgetTokens: number, local = true) =>
    selectContext(candidates, { budgetTokens, local, images: true })
      .filter((verdict) => verdict.included)
      .map(({ candidate: { key } }) => key)

  test('what is required always does, also where nothing else fits', () => {
    const required = candidate('must', { required: true, tokens: 500 })
    expect(included([candidate('may', { tokens: 1 }), required], 100)).toEqual(['must'])
  })

  test('the rest by score, each that still fits: one that does not stops none behind it', () => {
    const candidates = [
      candidate('low', { score: 1, tokens: 30 }),
      candidate('big', { score: 9, tokens: 90 }),
      candidate('high', { score: 10, tokens: 50 }),
      candidate('mid', { score: 5, tokens: 20 }),
    ]
    expect(included(candidates, 100)).toEqual(['low', 'high', 'mid'])
    expect(included(candidates, 75)).toEqual(['high', 'mid'])
  })

  test('equal scores keep their order', () => {
    expect(included([candidate('a', { tokens: 10 }), candidate('b', { tokens: 10 })], 10)).toEqual(['a'])
  })

  test('[EC 9] on a remote model what is constrained stays out, whatever room there is', () => {
    const candidates = [candidate('open'), candidate('closed', { constrained: true, score: 9999 })]
    expect(included(candidates, 1000, false)).toEqual(['open'])
    expect(included(candidates, 1000, true)).toEqual(['open', 'closed'])
  })

  test('every candidate has one verdict with its reason, in the order of the candidates', () => {
    const verdicts = selectContext(
      [
        candidate('a', { tokens: 9 }),
        candidate('b', { required: true, tokens: 1 }),
        candidate('c', { constrained: true }),
        candidate('d', { tokens: 1 }),
      ],
      { budgetTokens: 5, local: false, images: true },
    )
    expect(verdicts.map(({ candidate: { key }, reason }) => [key, reason])).toEqual([
      ['a', 'does not fit the window'],
      ['b', 'required'],
      ['c', 'only local models may see it'],
      ['d', 'relevant and fits the window'],
    ])
  })
})

describe('[EC 6] the current run', () => {
  test('the words of the user and the newest round stay; a call is never parted from its result', () => {
    const view = makeView(makeRequest(), {
      said: [
        userSays('before', { runId: EARLIER_RUN }),
        userSays('now'),
        modelSays('first', { calls: [makeCall({ name: 'one' })] }),
        userSays('also this'),
        modelSays('second', { calls: [makeCall({ name: 'two' })] }),
      ],
    })
    const { fixed, droppable } = runUnits(view)
    expect(fixed.map(({ message }) => message.text)).toEqual(['now', 'also this', 'second'])
    expect(droppable.map(({ text }) => text)).toEqual(['first'])
    // What a round costs is its text, its calls and their results.
    expect(fixed.at(-1)?.tokens).toBe(estimateTokens('second\ntwo{}done'))
  })
})

describe('[EC 10.4] the report', () => {
  test('labels of what went in and what did not; history is a count', () => {
    const message = (key: string, included: boolean) => ({
      candidate: candidate(key, { kind: 'message' as const, label: 'user message' }),
      included,
      reason: '',
    })
    const verdicts = [
      { candidate: candidate('a.ts'), included: true, reason: '' },
      { candidate: candidate('b.ts'), included: false, reason: 'too long' },
      message('m1', true),
      message('m2', false),
    ]
    expect(contextOutcome(verdicts, 0)).toEqual({
      included: ['a.ts', '1 earlier message'],
      excluded: ['b.ts', '1 earlier message'],
      exclusions: [
        { item: 'b.ts', reason: 'too long' },
        { item: '1 earlier message', reason: 'too long ago, or too long for the window' },
      ],
    })
    expect(contextOutcome([], 0)).toEqual({ included: [], excluded: [] })
  })

  test('[D28] messages beyond the newest thousand count as left out', () => {
    expect(contextOutcome([], 41)).toMatchObject({ included: [], excluded: ['41 earlier messages'] })
  })

  test('[U37] messages that are withheld from a remote model are told apart from those that did not fit', () => {
    const message = (key: string, fields: Partial<Candidate>) =>
      candidate(key, { kind: 'message' as const, label: 'assistant message', ...fields })
    const reason = '`.env` matches `.env` of restricted_paths'
    const candidates = [
      message('m1', { constrained: true, constraint: reason }),
      message('m2', { constrained: true, constraint: reason }),
      message('m3', { tokens: 900 }),
      message('m4', { tokens: 5 }),
    ]
    const select = (local: boolean) =>
      contextOutcome(selectContext(candidates, { budgetTokens: 100, local, images: false }), 7)
    expect(select(false)).toEqual({
      included: ['1 earlier message'],
      excluded: ['2 earlier messages (only local models may see them)', '8 earlier messages'],
      exclusions: [
        {
          item: '2 earlier messages (only local models may see them)',
          reason: `only local models may see it: ${reason}`,
        },
        { item: '8 earlier messages', reason: 'too long ago, or too long for the window' },
      ],
    })
    expect(select(true)).toMatchObject({
      included: ['3 earlier messages'],
      excluded: ['8 earlier messages'],
    })
  })
})
