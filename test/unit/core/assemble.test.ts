import { describe, expect, test } from 'vitest'
import { BASE_INSTRUCTION } from '../../../src/core/assemble.ts'
import type { PromptMessage } from '../../../src/core/prompt.ts'
import { planTurn, prepareCall } from '../../../src/core/resolve.ts'
import type { TurnView } from '../../../src/core/turn-view.ts'
import type { ModelDescriptor } from '../../../src/protocol/execution/models.ts'
import {
  EARLIER_RUN,
  LOCAL,
  makeCall,
  makeFact,
  makeFile,
  makeModel,
  makeRequest,
  makeView,
  modelSays,
  must,
  REMOTE,
  userSays,
} from '../../support/core/builders.ts'

/** The conversation for a model, after the system message. */
function prompt(view: TurnView, model: ModelDescriptor = makeModel(LOCAL)): PromptMessage[] {
  const { messages } = prepareCall(must(planTurn(view)), model).request
  expect(messages[0]?.role).toBe('system')
  return messages.slice(1)
}

const system = (view: TurnView, model: ModelDescriptor = makeModel(LOCAL)): string => {
  const [first] = prepareCall(must(planTurn(view)), model).request.messages
  return first?.role === 'system' ? first.text : ''
}

const user = (text: string): PromptMessage => ({ role: 'user', text })
const assistant = (text: string): PromptMessage => ({ role: 'assistant', text, toolCalls: [] })

const toolRound = (text: string, ids: string[], fields: object = {}) =>
  modelSays(text, {
    calls: ids.map((id) =>
      makeCall({ name: 'read_file', id, arguments: { path: id }, ...fields }, `got ${id}`),
    ),
  })

describe('[EC 11] the system message', () => {
  test('the base instruction, then instructions and invoked skills under their names, then what is known', () => {
    const view = makeView(
      makeRequest({
        attachments: {
          instructions: [{ source: 'AGENTS.md', content: 'Use tabs.' }],
          invoked_skills: [{ name: 'deploy', content: 'Push it.' }],
          available_skills: [{ name: 'review', content: '# Reviews\nbody' }],
        },
      }),
      { memories: [makeFact({ key: 'editor', content: 'vim' })] },
    )
    expect(system(view)).toBe(
      [
        BASE_INSTRUCTION,
        '# AGENTS.md\nUse tabs.',
        '# skill deploy\nPush it.',
        'What was remembered earlier follows, as background. It may be out of date: what the conversation says wins.',
        'About the user:\n- editor: vim',
        'Skills that can be loaded by calling them:\n- review: Reviews',
      ].join('\n\n'),
    )
  })

  test('[EC 12.5] a model without tools is not told of skills that it could not call', () => {
    const view = makeView(
      makeRequest({ attachments: { available_skills: [{ name: 'review', content: 'x' }] } }),
    )
    expect(system(view, makeModel(LOCAL, { capabilities: {} }))).toBe(BASE_INSTRUCTION)
  })

  test('[EC 14] while planning it says so', () => {
    expect(system(makeView(makeRequest(), { planning: true }))).toContain('You are planning.')
    expect(system(makeView(makeRequest()))).not.toContain('planning')
  })
})

describe('[EC 11] the conversation', () => {
  test('a bare prompt is one user message', () => {
    expect(prompt(makeView(makeRequest({ text: 'hi' })))).toEqual([user('hi')])
  })

  test('files and the diff lead the prompt, each under its path, once', () => {
    const view = makeView(
      makeRequest({
        text: 'fix it',
        workspace: { git_diff: 'diff --git a/a.ts b/a.ts' },
        attachments: { files: [makeFile('/code/a.ts', 'A'), makeFile('b.ts', 'B')] },
      }),
      { said: [userSays('fix it'), toolRound('', ['c1']), userSays('and this')] },
    )
    const [first, , , last] = prompt(view)
    expect(first).toEqual(
      user(
        'Context of the request:\n\n# a.ts\nA\n\n# b.ts\nB\n\n# Current git diff\ndiff --git a/a.ts b/a.ts\n\nRequest:\nfix it',
      ),
    )
    expect(last).toEqual(user('and this'))
  })

  test('earlier runs come first, as they were said', () => {
    const view = makeView(makeRequest(), {
      said: [
        userSays('one', { runId: EARLIER_RUN }),
        modelSays('two', { runId: EARLIER_RUN }),
        userSays('three'),
      ],
    })
    expect(prompt(view)).toEqual([user('one'), assistant('two'), user('three')])
  })

  test('each round of calls stands directly before its results, all rounds of the run are there', () => {
    const view = makeView(makeRequest(), {
      said: [userSays('go'), toolRound('Looking.', ['a', 'b']), toolRound('', ['c'])],
    })
    const call = (id: string) => ({ callId: id, name: 'read_file', arguments: { path: id } })
    const result = (id: string) => ({ callId: id, name: 'read_file', content: `got ${id}`, isError: false })
    expect(prompt(view)).toEqual([
      user('go'),
      { role: 'assistant', text: 'Looking.', toolCalls: [call('a'), call('b')] },
      { role: 'tool', results: [result('a'), result('b')] },
      { role: 'assistant', text: '', toolCalls: [call('c')] },
      { role: 'tool', results: [result('c')] },
    ])
  })

  test('roles alternate: what one role said in a row is one message', () => {
    const view = makeView(makeRequest(), {
      said: [
        userSays('one'),
        userSays('two'),
        modelSays('cut of', { interrupted: true }),
        toolRound('then', ['a']),
        userSays('three'),
        userSays('four'),
      ],
    })
    expect(prompt(view).map(({ role, ...rest }) => [role, 'text' in rest ? rest.text : null])).toEqual([
      ['user', 'one\n\ntwo'],
      ['assistant', 'cut of\n\nthen'],
      ['tool', null],
      ['user', 'three\n\nfour'],
    ])
  })

  test('a prompt whose run gave no answer and the next one stay two requests', () => {
    const view = makeView(makeRequest(), { said: [userSays('one', { runId: EARLIER_RUN }), userSays('two')] })
    expect(prompt(view).map(({ role, ...rest }) => [role, 'text' in rest ? rest.text : null])).toEqual([
      ['user', 'one'],
      ['assistant', expect.stringContaining('No answer')],
      ['user', 'two'],
    ])
  })

  test('an answer without text and calls leaves nothing', () => {
    const view = makeView(makeRequest(), {
      said: [userSays('a'), modelSays(''), userSays('b')],
    })
    expect(prompt(view)).toEqual([user('a\n\nb')])
  })

  test('a conversation begins with the user, also where its beginning did not fit', () => {
    const view = makeView(makeRequest(), {
      said: [
        userSays('x'.repeat(4000), { runId: EARLIER_RUN }),
        modelSays('an answer', { runId: EARLIER_RUN }),
        userSays('now'),
      ],
    })
    const model = makeModel(LOCAL, { max_context_tokens: 900, max_output_tokens: 100 })
    expect(prompt(view, model)).toEqual([
      user('The beginning of this conversation is left out.'),
      assistant('an answer'),
      user('now'),
    ])
  })

  test('[EC 14] an approved plan stays, and the user says yes to it: the model does not go on after its own words', () => {
    const said = [userSays('plan it'), modelSays('1. do it')]
    const approved = user('The plan is approved. Carry it out.')
    expect(prompt(makeView(makeRequest(), { said, planApproved: true }))).toEqual([
      user('plan it'),
      assistant('1. do it'),
      approved,
    ])
    const later = [...said, toolRound('', ['a'])]
    expect(
      prompt(makeView(makeRequest(), { said: later, planApproved: true })).map(({ role }) => role),
    ).toEqual(['user', 'assistant', 'user', 'assistant', 'tool'])
  })

  test('[EC 15] a plan that the user answered with something else is not said to be approved', () => {
    const said = [userSays('plan it'), modelSays('1. do it'), userSays('no, other'), modelSays('2. other')]
    const texts = prompt(makeView(makeRequest(), { said, planApproved: true }))
    expect(texts.filter((message) => JSON.stringify(message).includes('approved'))).toHaveLength(1)
  })
})

describe('[U22] every call in a prompt has a result', () => {
  test.each([
    [
      'a call that was cancelled',
      makeCall({ name: 'shell', isError: true }, 'Cancelled by the user.'),
      'Cancelled by the user.',
    ],
    [
      'a call that was denied',
      makeCall({ name: 'shell', isError: true }, 'The policy denies this call.'),
      'The policy denies this call.',
    ],
    ['a call that never got one', makeCall({ name: 'shell' }, null), 'This call was not run.'],
  ])('%s', (_, call, content) => {
    const view = makeView(makeRequest(), {
      said: [
        userSays('go', { runId: EARLIER_RUN }),
        modelSays('', { runId: EARLIER_RUN, calls: [call] }),
        userSays('now'),
      ],
    })
    expect(prompt(view)[2]).toEqual({
      role: 'tool',
      results: [{ callId: 'call-shell', name: 'shell', content, isError: true }],
    })
  })
})

describe('[U40] what only one provider understands goes to that provider only', () => {
  const said = [
    userSays('go'),
    modelSays('', {
      provider: 'anthropic',
      calls: [makeCall({ name: 'shell', id: 'ours', providerCallId: 'theirs', opaque: { signature: 's' } })],
    }),
  ]

  test('its ids and opaque fields come back to it', () => {
    const [, round, results] = prompt(makeView(makeRequest(), { said }), makeModel(REMOTE))
    expect(round).toMatchObject({ toolCalls: [{ callId: 'theirs', opaque: { signature: 's' } }] })
    expect(results).toMatchObject({ results: [{ callId: 'theirs' }] })
  })

  test('another provider sees our id and nothing opaque', () => {
    const [, round, results] = prompt(makeView(makeRequest(), { said }), makeModel('openai/x'))
    expect(round).toMatchObject({ toolCalls: [{ callId: 'ours' }] })
    expect(JSON.stringify(round)).not.toContain('signature')
    expect(results).toMatchObject({ results: [{ callId: 'ours' }] })
  })

  test('its own call without an id of its own goes by ours', () => {
    const own = [
      userSays('go'),
      modelSays('', { provider: 'anthropic', calls: [makeCall({ name: 'shell', id: 'ours' })] }),
    ]
    expect(prompt(makeView(makeRequest(), { said: own }), makeModel(REMOTE))[1]).toMatchObject({
      toolCalls: [{ callId: 'ours' }],
    })
  })
})

describe('[EC 6] history is for any model', () => {
  test('a model without tools is offered none, and reads as text what others called', () => {
    const view = makeView(makeRequest(), {
      said: [
        userSays('go'),
        modelSays('Looking.', {
          calls: [
            makeCall({ name: 'read_file', arguments: { path: 'a' } }, 'text of a'),
            makeCall({ name: 'shell', isError: true }, 'exit 1'),
          ],
        }),
      ],
    })
    const { request } = prepareCall(
      must(planTurn(view)),
      makeModel(LOCAL, { capabilities: { tools: false } }),
    )
    expect(request.tools).toEqual([])
    expect(request.messages.slice(1)).toEqual([
      user('go'),
      assistant('Looking.\n\nCalled read_file with {"path":"a"}.\n\nCalled shell with {}.'),
      user('read_file gave:\ntext of a\n\nshell failed:\nexit 1'),
    ])
  })
})
