import { beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { FIRST_BYTE_MS, MAX_CALLS_PER_ANSWER } from '../../src/providers/bounds.ts'
import { type BodyChanges, makeExecute, routeTo } from '../support/workers/bodies.ts'
import { eachCase } from '../support/workers/each-case.ts'
import { type Client, makeClient, refused, turnAs } from '../support/workers/router.ts'
import { type Script, scriptModels } from '../support/workers/scripted-models.ts'
import { transcriptOf, turnsOf } from '../support/workers/session-object.ts'
import { endOf, eventsOf, STREAM, textOf } from '../support/workers/turn-stream.ts'

const models = scriptModels()

let client: Client
let id: string
beforeAll(async () => {
  client = await makeClient()
})
beforeEach(async () => {
  id = await client.newSession()
})

const CLOUD = { 'X-Smista-Provider-Cloud-Api-Key': 'key-1' }
const REMOTE: BodyChanges['policy'] = { privacy: { remote: { mode: 'allow' } } }
const CHAIN = routeTo('openai-compat:cloud/big', 'ollama/small')

/** What the endpoint of `cloud/big` sends, whatever that is. */
type Sent = {
  status?: number
  type?: string
  body?: string
  /** Follows the body again and again. */
  repeat?: string
  ending?: 'break' | 'hang'
}

/** Lets the cloud answer so, and notes whether its connection was given up; the others answer as they are scripted. */
function cloudSends(sent: Sent | 'refused'): { askedTimes: number; left: number } {
  const seen = { askedTimes: 0, left: 0 }
  const others = vi.mocked(globalThis.fetch).getMockImplementation()
  if (others === undefined) throw new Error('no model is scripted')
  vi.mocked(globalThis.fetch).mockImplementation(async (input, init) => {
    if (!String(input).startsWith('https://cloud.test/')) return others(input, init)
    seen.askedTimes += 1
    if (sent === 'refused') throw new TypeError('connection refused')
    const { status = 200, type = 'text/event-stream' } = sent
    init?.signal?.addEventListener('abort', () => {
      seen.left += 1
    })
    const headers = { 'content-type': type, location: 'https://elsewhere.test/' }
    return new Response(bodyOf(sent, init?.signal), { status, headers })
  })
  return seen
}

function bodyOf(
  { body = '', repeat, ending }: Sent,
  signal?: AbortSignal | null,
): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder()
  const repeated = encoder.encode(repeat)
  let begun = body === ''
  return new ReadableStream<Uint8Array>(
    {
      start: (controller) => {
        signal?.addEventListener('abort', () => controller.error(signal.reason))
      },
      pull: async (controller) => {
        if (!begun) {
          begun = true
          controller.enqueue(encoder.encode(body))
        } else if (repeat !== undefined) controller.enqueue(repeated)
        else if (ending === 'break') controller.error(new TypeError('terminated'))
        else if (ending === 'hang') await new Promise<void>(() => {})
        else controller.close()
      },
    },
    { highWaterMark: 0 },
  )
}

const event = (data: unknown): string => `data: ${JSON.stringify(data)}\n\n`
const chunk = (delta: object, finish: string | null = null): string =>
  event({ id: 'c', choices: [{ index: 0, delta, finish_reason: finish }] })
const calls = (...made: object[]): string => chunk({ tool_calls: made })
const call = (index: number, name: string, args: string): object => ({
  index,
  id: `p${index}`,
  type: 'function',
  function: { name, arguments: args },
})

const BEFORE_THE_FIRST_TOKEN: { name: string; sent: Sent | 'refused' }[] = [
  { name: 'a refused connection', sent: 'refused' },
  { name: 'a redirect', sent: { status: 307 } },
  { name: 'no byte within the deadline', sent: { ending: 'hang' } },
  { name: 'an end at once', sent: {} },
  { name: 'a connection that breaks at once', sent: { ending: 'break' } },
  { name: 'a web page', sent: { type: 'text/html', body: '<!doctype html><title>Sign in</title>' } },
  { name: 'garbage', sent: { body: 'data: {"choices":[\n\n' } },
  {
    name: 'an error with status 200',
    sent: { type: 'application/json', body: '{"error":{"message":"no"}}' },
  },
  { name: 'an error inside the stream', sent: { body: event({ error: { message: 'overloaded' } }) } },
  { name: 'a line without an end', sent: { body: 'data: ', repeat: 'x'.repeat(500_000) } },
  {
    name: 'empty pieces without an end',
    sent: { repeat: chunk({ content: '' }).replace('\n', `${' '.repeat(500_000)}\n`) },
  },
  {
    name: 'arguments without an end',
    sent: {
      body: calls(call(0, 'read_file', '{"path":"')),
      repeat: calls({ index: 0, function: { arguments: 'x'.repeat(100_000) } }),
    },
  },
  {
    name: 'calls without an end',
    sent: {
      body: Array.from({ length: MAX_CALLS_PER_ANSWER + 1 }, (_, index) =>
        calls(call(index, 'read_file', '{"path":"a"}')),
      ).join(''),
      ending: 'hang',
    },
  },
  { name: 'a call without a name', sent: { body: calls(call(0, '', '{}')) + chunk({}, 'tool_calls') } },
]

const said = chunk({ content: 'one ' }) + chunk({ content: 'two' })
const AFTER_THE_FIRST_TOKEN: { name: string; sent: Sent; code: string; text?: string }[] = [
  { name: 'an end', sent: { body: said }, code: 'provider_error' },
  { name: 'garbage', sent: { body: `${said}data: {"choices":[\n\n` }, code: 'provider_error' },
  {
    name: 'an error',
    sent: { body: said + event({ error: { message: 'rate limit reached' } }) },
    code: 'rate_limited',
  },
  {
    name: 'a line without an end',
    sent: { body: said, repeat: 'x'.repeat(500_000) },
    code: 'provider_error',
  },
  {
    name: 'text without an end',
    sent: { repeat: chunk({ content: 'x'.repeat(500_000) }) },
    code: 'provider_error',
    text: 'x'.repeat(2_000_000),
  },
]

/** Every deadline for a first byte is over as soon as it is set. */
function hurryFirstBytes(): void {
  const set = globalThis.setTimeout
  const hurried = (work: () => void, ms = 0) => set(work, ms === FIRST_BYTE_MS ? 0 : ms)
  vi.spyOn(globalThis, 'setTimeout').mockImplementation(hurried as typeof setTimeout)
}

const execute = (policy: BodyChanges['policy'], headers = {}) =>
  client.execute(id, makeExecute('hi', { policy: { ...REMOTE, ...policy } }), { ...CLOUD, ...headers })

/** The lock is free, and what happened before makes no request that a model would refuse. */
async function expectNextRunServed(): Promise<void> {
  models.script({ text: ['and on'] })
  const turn = await turnAs(await execute(routeTo('ollama/small')), 'completed')
  expect(turn.data.message.content).toBe('and on')
}

describe('a provider that does what it must not', () => {
  eachCase(
    BEFORE_THE_FIRST_TOKEN,
    ({ name }) => `[D24][D23] before the first token ${name} leads to the next model`,
    async ({ sent }) => {
      if (sent !== 'refused' && sent.body === undefined && sent.ending === 'hang') hurryFirstBytes()
      const seen = cloudSends(sent)
      models.script({ text: ['from the second'] })
      const turn = await turnAs(await execute(CHAIN), 'completed')
      expect(turn.data.message).toMatchObject({ content: 'from the second', model: 'small' })
      expect(turn.data.routing).toMatchObject({ fallback_used: true })
      expect(seen).toEqual({ askedTimes: 1, left: sent === 'refused' ? 0 : 1 })
      const [served] = await turnsOf(id)
      expect(served?.calls).toMatchObject([
        { model: 'big', status: 'failed', usage: null },
        { model: 'small', status: 'answered' },
      ])
      expect(await transcriptOf(id)).toEqual([
        { role: 'user', text: 'hi' },
        { role: 'assistant', text: 'from the second' },
      ])
      await expectNextRunServed()
    },
  )

  eachCase(
    AFTER_THE_FIRST_TOKEN,
    ({ name, code }) => `[D24][U41] after the first token ${name} is ${code}, and the words are kept`,
    async ({ sent, code, text = 'one two' }) => {
      const seen = cloudSends(sent)
      models.script({ text: ['never'] })
      const events = await eventsOf(await execute(CHAIN, STREAM))
      expect(endOf(events)).toMatchObject({ status: 'error', data: { error: { code } } })
      expect(textOf(events) === text).toBe(true)
      expect(models.chats).toHaveLength(0)
      expect(seen).toEqual({ askedTimes: 1, left: 1 })
      const [user, partial, ...more] = await transcriptOf(id)
      expect({ user, more }).toEqual({ user: { role: 'user', text: 'hi' }, more: [] })
      expect(partial).toMatchObject({ role: 'assistant', interrupted: true })
      expect(partial?.text === text).toBe(true)
      const [served] = await turnsOf(id)
      expect(served?.calls).toMatchObject([{ model: 'big', status: 'failed', usage: null }])
      await expectNextRunServed()
    },
  )
})

describe('a call with arguments that are no JSON object', () => {
  const broken = { body: calls(call(0, 'read_file', '{"path":"a')) + chunk({}, 'tool_calls') }

  it('[U22] is told to the model with what came, and the model goes on', async () => {
    const seen = cloudSends(broken)
    const repaired: Script = () => ({ text: ['Sorry.'] })
    models.script(repaired)
    // The first round is the cloud's; of the second one only the request is of interest.
    const sent: string[] = []
    const now = vi.mocked(globalThis.fetch).getMockImplementation()
    vi.mocked(globalThis.fetch).mockImplementation(async (input, init) => {
      if (!String(input).startsWith('https://cloud.test/') || seen.askedTimes === 0)
        return (now ?? fetch)(input, init)
      sent.push(String(init?.body))
      return new Response(chunk({ content: 'Sorry.' }) + chunk({}, 'stop'), {
        headers: { 'content-type': 'text/event-stream' },
      })
    })
    const turn = await turnAs(await execute(CHAIN), 'completed')
    expect(turn.data.message.content).toBe('Sorry.')
    expect(sent).toHaveLength(1)
    const { messages } = JSON.parse(sent[0] ?? '')
    expect(messages.slice(-2)).toEqual([
      {
        role: 'assistant',
        content: expect.toSatisfy((content) => content === null || content === ''),
        tool_calls: [{ id: 'p0', type: 'function', function: { name: 'read_file', arguments: '{}' } }],
      },
      {
        role: 'tool',
        tool_call_id: 'p0',
        content: 'Error: The arguments are not a JSON object. They came as: {"path":"a',
      },
    ])
  })

  it('again and again ends the run, with the lock free', async () => {
    const seen = cloudSends(broken)
    expect(await refused(await execute(CHAIN))).toMatchObject({
      code: 'provider_error',
      details: { rounds: 8 },
    })
    expect(seen.askedTimes).toBe(8)
    await expectNextRunServed()
  })
})
