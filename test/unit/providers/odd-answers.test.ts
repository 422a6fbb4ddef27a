import { describe, expect, it } from 'vitest'
import { mediate } from '../../../src/core/mediate.ts'
import type { PromptMessage } from '../../../src/core/prompt.ts'
import { MAX_TOKEN_COUNT } from '../../../src/providers/bounds.ts'
import type { ModelEvent } from '../../../src/providers/provider.ts'
import { checkConversation } from '../../support/node/conversation-checker.ts'
import { scriptedFetch } from '../../support/node/scripted-upstream.ts'
import type { ScriptedCall, ScriptedCompletion } from '../../support/node/scripted-upstream-completion.ts'
import { DIALECTS, type FaultDialect } from './fault-dialects.ts'
import { collect, collectAll, KEY, makeContext, READ_FILE, reportsIn, usageIn } from './support.ts'

type CallEvent = Extract<ModelEvent, { type: 'tool_call' }>

const callsIn = (events: readonly ModelEvent[]): CallEvent[] =>
  events.flatMap((event) => (event.type === 'tool_call' ? [event] : []))

async function answered({ provider, request, wire }: FaultDialect, frames: readonly string[]) {
  const answer = { headers: { 'content-type': wire.contentType }, body: frames.join('') }
  const { context } = makeContext({ credential: KEY, fetch: scriptedFetch(answer).fetch })
  return collectAll(provider, request(), context)
}

/** The request of the next round, after these calls and what the router answers to them. */
async function nextRequest({ provider, request, wire }: FaultDialect, calls: readonly CallEvent[]) {
  const tools = [{ ...READ_FILE, executor: 'client', mode: 'allow', changesFiles: false } as const]
  const made = mediate(calls, tools, {}).map((mediated, index) => ({
    ...mediated,
    callId: mediated.call.providerCallId ?? `own-${index}`,
  }))
  const messages: PromptMessage[] = [
    ...request().messages,
    {
      role: 'assistant',
      text: '',
      toolCalls: made.map(({ call, callId }) => ({ callId, name: call.name, arguments: call.arguments })),
    },
    {
      role: 'tool',
      results: made.map((one) => ({
        callId: one.callId,
        name: one.call.name,
        content: one.to === 'model' ? one.result : 'read',
        isError: one.to === 'model' && one.isError,
      })),
    },
  ]
  const upstream = scriptedFetch({ body: wire.frames({ text: ['ok'] }).join('') })
  const { context } = makeContext({ credential: KEY, fetch: upstream.fetch })
  await collect(provider, { ...request(), messages }, context)
  return upstream.requests[0]?.body
}

/** The stream of one completion in which texts of the wire stand for others. */
const changed = ({ wire }: FaultDialect, completion: ScriptedCompletion, ...changes: [string, string][]) =>
  wire
    .frames(completion)
    .map((frame) => changes.reduce((text, [from, to]) => text.replaceAll(from, to), frame))

const call = (id: string, rest: Partial<ScriptedCall> = {}): ScriptedCall => ({
  id,
  name: 'read_file',
  arguments: { path: 'a' },
  ...rest,
})

describe.each(DIALECTS)('an odd answer that is served, in the dialect $name', (dialect) => {
  const { name, wire } = dialect
  /** Arguments are a text of their own in these dialects, and a value in the others. */
  const asText = name === 'anthropic' || name === 'responses' || name === 'chat'

  it('[U22] arguments that are no JSON object come as they were, and the model reads them with the error', async () => {
    const travelling = { calls: [call('c1', { travel: 'last' })] }
    const events = await answered(
      dialect,
      asText
        ? changed(dialect, travelling, ['{\\"path\\":\\"a\\"}', '{\\"path\\":\\"a'])
        : changed(dialect, travelling, ['{"path":"a"}', '"{\\"path\\":\\"a"']),
    )
    const calls = callsIn(events)
    expect(calls).toMatchObject([
      { name: 'read_file', arguments: {}, malformedArguments: expect.any(String) },
    ])
    const body = await nextRequest(dialect, calls)
    expect(checkConversation(name, body)).toEqual([])
    // However often it was quoted on its way.
    const sent = JSON.stringify(body).replaceAll('\\', '')
    expect(sent).toMatch(/The arguments are not a JSON object. They came as: "?{"path":"a/)
  })

  it('[U22][U24] the second call under one id is told apart, and both have their result on the next turn', async () => {
    const events = await answered(dialect, wire.frames({ calls: [call('c1'), call('c1')] }))
    const calls = callsIn(events)
    expect(calls).toMatchObject([
      { name: 'read_file', arguments: { path: 'a' } },
      { name: 'read_file', arguments: { path: 'a' } },
    ])
    expect(calls.map(({ providerCallId }) => providerCallId)).toEqual(['c1', undefined])
    expect(checkConversation(name, await nextRequest(dialect, calls))).toEqual([])
  })

  it('[U22] a name that no provider takes back does not end the session', async () => {
    const names = ['functions.read_file', 'read file, please', `x${'y'.repeat(200)}`]
    const events = await answered(
      dialect,
      wire.frames({ calls: names.map((name, index) => call(`c${index}`, { name })) }),
    )
    const calls = callsIn(events)
    expect(calls.map(({ name }) => name)).toEqual(names)
    expect(checkConversation(name, await nextRequest(dialect, calls))).toEqual([])
  })

  it('a call without an id is one without an id, or the answer is broken', async () => {
    const events = await answered(
      dialect,
      changed(dialect, { calls: [call('c1')] }, ['"id":"c1",', ''], ['"call_id":"c1",', '']),
    )
    const strict = name === 'anthropic' || name === 'responses'
    if (strict) expect(events.at(-1)).toMatchObject({ type: 'failed', failure: { category: 'unknown' } })
    else {
      expect(callsIn(events)).toEqual([{ type: 'tool_call', name: 'read_file', arguments: { path: 'a' } }])
    }
  })

  it.each([
    ['negative', '-5'],
    ['no whole number', '1.5'],
    ['beyond every window', String(MAX_TOKEN_COUNT + 1)],
  ])('[U43] a count of tokens that is %s is unknown, and the answer stands', async (_what, count) => {
    const completion = { text: ['Hm'], usage: { input: 7654321, output: 31 } }
    const events = await answered(dialect, changed(dialect, completion, [':7654321', `:${count}`]))
    expect(events.filter(({ type }) => !type.startsWith('usage'))).toEqual([
      { type: 'text_delta', delta: 'Hm' },
      { type: 'finished', reason: 'stop' },
    ])
    for (const usage of [...reportsIn(events), usageIn(events)]) {
      expect(usage).not.toHaveProperty('inputTokens')
    }
  })

  it('[U43] a count of tokens that is no number breaks the answer where the dialect is read strictly', async () => {
    const completion = { text: ['Hm'], usage: { input: 7654321, output: 31 } }
    for (const count of ['"many"', '1e999']) {
      const events = await answered(dialect, changed(dialect, completion, [':7654321', `:${count}`]))
      const end =
        name === 'ollama' ? { type: 'finished' } : { type: 'failed', failure: { category: 'unknown' } }
      expect(events.at(-1)).toMatchObject(end)
      expect(usageIn(events)).not.toHaveProperty('inputTokens')
    }
  })
})
