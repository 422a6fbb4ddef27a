import { describe, expect, it } from 'vitest'
import type { PromptMessage } from '../../../../src/core/prompt.ts'
import { EgressViolation } from '../../../../src/providers/egress.ts'
import type { ModelEvent } from '../../../../src/providers/provider.ts'
import { checkConversation } from '../../../support/node/conversation-checker.ts'
import { type SeenRequest, scriptedFetch } from '../../../support/node/scripted-upstream.ts'
import type { ScriptedCompletion } from '../../../support/node/scripted-upstream-completion.ts'
import { collect, KEY, makeContext, toolRound } from '../support.ts'
import { type DialectUnderTest, makeRunner, ORIGIN } from './dialect.ts'

const SYSTEM: PromptMessage = { role: 'system', text: 'Be brief.' }
const later: PromptMessage[] = [
  {
    role: 'assistant',
    text: '',
    toolCalls: [{ callId: '019a0000-0000-7000-8000-000000000001', name: 'read_file', arguments: {} }],
  },
  {
    role: 'tool',
    results: [
      { callId: '019a0000-0000-7000-8000-000000000001', name: 'read_file', content: '', isError: false },
    ],
  },
]

/** Conversations as the router makes them. */
const CONVERSATIONS: Record<string, PromptMessage[]> = {
  'a first prompt': [SYSTEM, { role: 'user', text: 'Why?' }],
  'an earlier exchange': [
    SYSTEM,
    { role: 'user', text: 'Why?' },
    { role: 'assistant', text: 'Because.', toolCalls: [] },
    { role: 'user', text: 'And how?' },
  ],
  'a round of two calls': [SYSTEM, ...toolRound],
  'two rounds, an answer without words and an empty result': [SYSTEM, ...toolRound, ...later],
  'a round, and the user who says something else': [
    SYSTEM,
    ...toolRound,
    { role: 'user', text: 'Stop, look at c.' },
  ],
  'words that are only white space around a call': [
    SYSTEM,
    ...toolRound.map((message) => (message.role === 'assistant' ? { ...message, text: ' \n' } : message)),
  ],
  'a picture': [
    SYSTEM,
    { role: 'user', text: 'What is this?', images: [{ mediaType: 'image/png', base64: 'iVBORw0KGgo=' }] },
  ],
  'pictures in what was said before and in what is said now': [
    SYSTEM,
    { role: 'user', text: 'What is this?', images: [{ mediaType: 'image/png', base64: 'iVBORw0KGgo=' }] },
    { role: 'assistant', text: 'A cat.', toolCalls: [] },
    {
      role: 'user',
      text: 'And these?',
      images: [
        { mediaType: 'image/jpeg', base64: '/9j/4AAQ', handle: 'h-1' },
        { mediaType: 'image/png', base64: 'iVBORw0KGgoA', handle: 'h-2' },
      ],
    },
  ],
}

/** What leaves for a provider is what it accepts, goes where it should, and gives back what was entrusted. */
export function describeRequests(dialect: DialectUnderTest): void {
  const { makeProvider, makeRequest, wire, conversation, keyHeader } = dialect
  const { run, streamed } = makeRunner(dialect)

  const requestFor = async (messages: PromptMessage[], options: Parameters<typeof makeRequest>[0] = {}) => {
    const request = makeRequest(options)
    const withImages = { ...request.model.capabilities, images: true }
    const answer = options.streaming === false ? wire.buffered({ text: ['a'] }) : streamed({ text: ['a'] })
    const { events, upstream } = run(answer, {
      ...request,
      model: { ...request.model, capabilities: withImages },
      messages,
    })
    expect((await events).at(-1)).toEqual({ type: 'finished', reason: 'stop' })
    expect(upstream.requests).toHaveLength(1)
    return upstream.requests[0]
  }

  describe(`${dialect.name}: requests`, () => {
    it.each(Object.entries(CONVERSATIONS))('[U22] the provider takes %s', async (_name, messages) => {
      for (const streaming of [true, false]) {
        for (const reasoning of [true, false]) {
          const seen = await requestFor(messages, { streaming, reasoning })
          expect(checkConversation(conversation, seen?.body)).toEqual([])
        }
      }
    })

    it('every picture goes with the words that it came with, and nothing of how it is kept', async () => {
      const messages = CONVERSATIONS['pictures in what was said before and in what is said now'] ?? []
      for (const streaming of [true, false]) {
        const sent = JSON.stringify((await requestFor(messages, { streaming }))?.body)
        const places = [
          [sent.indexOf('iVBORw0KGgo='), sent.indexOf('What is this?')],
          [sent.indexOf('A cat.')],
          [sent.indexOf('/9j/4AAQ'), sent.indexOf('iVBORw0KGgoA'), sent.indexOf('And these?')],
        ].map((group) => group.sort((a, b) => a - b))
        expect(places.flat()[0]).toBeGreaterThan(-1)
        expect(places.flat()).toEqual(places.flat().sort((a, b) => a - b))
        expect(sent).not.toContain('h-1')
      }
    })

    it('[U40] what the provider signed comes back to it verbatim, in a conversation that it takes', async () => {
      const completion: ScriptedCompletion = {
        ...(dialect.signs.includes('reasoning')
          ? { reasoning: ['Let me ', 'see: „größe“'], signature: 'EqQBCgIYAhIM+sealed/9Zw==' }
          : {}),
        ...(dialect.signs.includes('redacted') ? { redacted: 'EmwKAhgBEgy+redacted/w==' } : {}),
        text: ['Reading.'],
        calls: [
          {
            id: 'call_a',
            name: 'read_file',
            arguments: { path: 'a' },
            ...(dialect.signs.includes('calls') ? { signature: 'CiIBVKhc+call/a7w==' } : {}),
          },
          { id: 'call_b', name: 'read_file', arguments: { path: 'b' } },
        ],
      }
      const signatures = [
        ...(dialect.signs.includes('reasoning') ? ['EqQBCgIYAhIM+sealed/9Zw=='] : []),
        ...(dialect.signs.includes('redacted') ? ['EmwKAhgBEgy+redacted/w=='] : []),
        ...(dialect.signs.includes('calls') ? ['CiIBVKhc+call/a7w=='] : []),
      ]
      for (const streaming of [true, false]) {
        const answer = streaming ? streamed(completion) : wire.buffered(completion)
        const { events } = run(answer, makeRequest({ streaming, reasoning: true }))
        const messages = answered(await events)
        const seen = await requestFor(messages, { reasoning: true })
        expect(checkConversation(conversation, seen?.body)).toEqual([])
        const sent = JSON.stringify(seen?.body)
        for (const signature of signatures) expect(sent.split(signature)).toHaveLength(2)
        if (dialect.signs.includes('reasoning')) {
          // The proof is of these words, so they go back with it, before the call that came of them.
          const [before = '', after = ''] = sent.split('EqQBCgIYAhIM+sealed/9Zw==')
          expect(`${before}${after}`).toContain('Let me see: „größe“')
          expect(after).toContain('call_a')
          expect(before).not.toContain('call_a')
        }
        const bare = await requestFor(messages.map(withoutProofs), { reasoning: true })
        expect(checkConversation(conversation, bare?.body)).toEqual([])
        for (const signature of signatures) expect(JSON.stringify(bare?.body)).not.toContain(signature)
      }
    })

    it('[D16] the key goes into its header and nowhere else', async () => {
      const seen: SeenRequest | undefined = await requestFor([SYSTEM, { role: 'user', text: 'Why?' }])
      const { headers = {}, ...rest } = seen ?? {}
      const { [keyHeader.name]: key, ...others } = headers
      expect(key).toBe(keyHeader.value)
      expect(JSON.stringify([rest, others])).not.toContain(KEY)
    })

    it('[U38] a route is recorded before the request, with the model and where it went', async () => {
      const seenAtRequest: number[] = []
      const upstream = scriptedFetch(() => {
        seenAtRequest.push(routes.length)
        return streamed({ text: ['a'] })
      })
      const { context, routes } = makeContext({ credential: KEY, fetch: upstream.fetch })
      const request = makeRequest()
      await collect(makeProvider(ORIGIN), request, context)
      expect(seenAtRequest).toEqual([1])
      expect(routes).toEqual([
        {
          purpose: 'completion',
          provider: 'openai-compat:lab',
          model: request.model.model,
          local: request.model.local,
          chosenBy: 'default route',
          origin: ORIGIN,
        },
      ])
      expect(JSON.stringify(routes)).not.toContain(KEY)
    })

    it('[U37] a remote model in a local-only turn throws, and nothing leaves', async () => {
      const upstream = scriptedFetch(streamed({ text: ['a'] }))
      const { context, routes } = makeContext({
        credential: KEY,
        fetch: upstream.fetch,
        remoteAllowed: false,
      })
      const request = makeRequest()
      const remote = { ...request, model: { ...request.model, local: false } }
      await expect(collect(makeProvider(ORIGIN), remote, context)).rejects.toThrow(EgressViolation)
      expect({ routes, requests: upstream.requests }).toEqual({ routes: [], requests: [] })
      // The same call, where it may leave, does.
      const allowed = makeContext({ credential: KEY, fetch: upstream.fetch })
      await collect(makeProvider(ORIGIN), remote, allowed.context)
      expect(upstream.requests).toHaveLength(1)
    })

    it('[D16] a redirect is not followed', async () => {
      const { events, upstream } = run({ status: 307, headers: { location: `${ORIGIN}/elsewhere` } })
      expect(await events).toEqual([
        {
          type: 'failed',
          failure: { category: 'unknown', message: 'the provider failed: a redirect, HTTP 307' },
        },
      ])
      expect(upstream.requests).toHaveLength(1)
      expect(upstream.inits[0]?.redirect).toBe('manual')
    })

    it('[D16] nothing is sent twice, whatever the status', async () => {
      for (const status of [408, 409, 429, 500, 503, 529]) {
        const { events, upstream } = run({ status, body: '{}' })
        await events
        expect(upstream.requests).toHaveLength(1)
      }
    })
  })
}

/** The conversation in which these calls have been answered. What is kept of them has been stored in between. */
function answered(events: readonly ModelEvent[]): PromptMessage[] {
  const calls = events.filter((event) => event.type === 'tool_call')
  const toolCalls = calls.map(({ providerCallId, name, arguments: args, opaque }, index) => ({
    callId: providerCallId ?? `own_${index}`,
    name,
    arguments: args,
    ...(opaque === undefined ? {} : { opaque: JSON.parse(JSON.stringify(opaque)) }),
  }))
  const text = events.map((event) => (event.type === 'text_delta' ? event.delta : '')).join('')
  return [
    SYSTEM,
    { role: 'user', text: 'Compare a and b.' },
    { role: 'assistant', text, toolCalls },
    {
      role: 'tool',
      results: toolCalls.map(({ callId, name }) => ({ callId, name, content: 'x', isError: false })),
    },
  ]
}

/** As after a change of the provider: nothing of what the other one signed is left. */
const withoutProofs = (message: PromptMessage): PromptMessage =>
  message.role === 'assistant'
    ? { ...message, toolCalls: message.toolCalls.map(({ opaque: _, ...call }) => call) }
    : message
