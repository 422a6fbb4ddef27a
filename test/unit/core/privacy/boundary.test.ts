import { describe, expect, test } from 'vitest'
import { boundaryBreach } from '../../../../src/core/privacy/boundary.ts'
import { type PreparedCall, planTurn, prepareCall } from '../../../../src/core/resolve.ts'
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
  REMOTE,
  type RequestParts,
  userSays,
} from '../../../support/core/builders.ts'

const SECRET = 'the quick brown fox keeps the key under the mat'

const parts: RequestParts = {
  privacy: { restricted_paths: ['secrets/**'], remote: { mode: 'allow' } },
  attachments: {
    files: [makeFile('secrets/fox', `first line\n${SECRET}\nlast line`), makeFile('src/a.ts', 'let a = 1')],
    available_skills: [
      { name: 'keys', content: '# How the keys are kept in this house', path: 'secrets/keys.md' },
    ],
  },
}
const said = [
  userSays('go', { runId: EARLIER_RUN }),
  modelSays('It is kept where nobody would ever look.', {
    runId: EARLIER_RUN,
    calls: [
      makeCall(
        { name: 'read_file', arguments: { path: 'secrets/key' } },
        'four six eight ten twelve fourteen',
      ),
    ],
  }),
  userSays('now'),
]

const turn = must(planTurn(makeView(makeRequest(parts), { said })))
const remote = makeModel(REMOTE, { auth: 'none' })
const prepared = prepareCall(turn, remote)

/** The prompt with a text put into it that the selection never would have. */
const withText = (text: string): PreparedCall => ({
  ...prepared,
  request: { ...prepared.request, messages: [...prepared.request.messages, { role: 'user', text }] },
})

describe('[U37] the last look before a prompt leaves', () => {
  test('finds nothing in what was selected for a remote model, and does not look at what goes to a local one', () => {
    expect(boundaryBreach(turn, prepared)).toBeNull()
    const home = prepareCall(turn, makeModel(LOCAL))
    expect(JSON.stringify(home.request)).toContain(SECRET)
    expect(boundaryBreach(turn, home)).toBeNull()
  })

  test.each([
    ['a line of a private file', SECRET],
    ['the same, indented', `see:\n    ${SECRET}  \n`],
    ['what a model said over private content', 'It is kept where nobody would ever look.'],
    ['what a private call gave', 'four six eight ten twelve fourteen'],
  ])('refuses %s, however it came there', (_, text) => {
    expect(boundaryBreach(turn, withText(text))).toBe('a line of private content is in the prompt')
  })

  test('lets pass what a permitted item holds as well, and lines that tell nothing', () => {
    const same = makeView(makeRequest(parts), {
      said: [...said.slice(0, -1), userSays(`is it true that\n${SECRET}`)],
    })
    const asked = must(planTurn(same))
    expect(boundaryBreach(asked, prepareCall(asked, remote))).toBeNull()
    expect(boundaryBreach(turn, withText('first line'))).toBeNull()
  })

  test('lets pass what the router itself says, though a private answer repeats it', () => {
    const long = 'src/a/very/long/name/of/a/file.ts'
    const echo = [
      `Called read_file with {"path":"${long}"}.`,
      'Skills that can be loaded by calling them:',
      '(The user sent no text.)',
    ].join('\n')
    const open = { name: 'deploy', content: 'Run it.' }
    const view = makeView(makeRequest({ ...parts, text: ' ', attachments: { available_skills: [open] } }), {
      said: [
        userSays('go', { runId: EARLIER_RUN }),
        modelSays(echo, { runId: EARLIER_RUN, localOnly: true }),
        userSays(' '),
        modelSays('', { calls: [makeCall({ name: 'read_file', arguments: { path: long } })] }),
      ],
    })
    const asked = must(planTurn(view))
    expect(boundaryBreach(asked, prepareCall(asked, remote))).toBeNull()
    const noTools = makeModel(REMOTE, { auth: 'none', capabilities: {} })
    expect(boundaryBreach(asked, prepareCall(asked, noTools))).toBeNull()
  })

  test('refuses a private item, tool or message that was let in', () => {
    const included = prepared.verdicts.map((verdict) => ({ ...verdict, included: true }))
    expect(boundaryBreach(turn, { ...prepared, verdicts: included })).toBe('secrets/fox is among the context')
    expect(boundaryBreach(turn, { ...prepared, tools: turn.tools })).toBe('the private skill keys is offered')
    const bound = must(
      planTurn(makeView(makeRequest(parts), { said: [...said, modelSays('ok', { localOnly: true })] })),
    )
    expect(boundaryBreach(bound, prepared)).toBe('the turn is bound to local models (required_content)')
    const unbound = { ...bound, demands: { ...bound.demands, localBecause: null } }
    expect(boundaryBreach(unbound, prepared)).toMatch('is in the prompt')
  })
})

test('[EC 12.5] a private skill is neither listed nor offered to a remote model, and both to a local one', () => {
  const offers = (call: PreparedCall) => [
    call.request.tools.some(({ name }) => name === 'keys'),
    JSON.stringify(call.request).includes('How the keys are kept'),
  ]
  expect(offers(prepared)).toEqual([false, false])
  expect(offers(prepareCall(turn, makeModel(LOCAL)))).toEqual([true, true])
})
