import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { ErrorCode } from '../../src/protocol/execution/errors.ts'
import type { ExecuteRequest } from '../../src/protocol/execution/execute.ts'
import type { TurnEvent } from '../../src/protocol/execution/stream.ts'
import { type MockFixture, startMockProvider } from '../support/node/mock-provider.ts'
import { framesOf, hasFrames, openRaw, type RawAnswer } from '../support/node/raw-request.ts'
import { makeAccount, must, type RouterAccount } from '../support/node/router-account.ts'
import { RouterProcess } from '../support/node/router-process.ts'
import { executeRequest, smallPolicy } from '../support/node/run-request.ts'
import {
  CALL_PROOF,
  FILE_CONTENT,
  OLLAMA_MODEL,
  PROVIDER_KINDS,
  type ProviderKind,
  REASONING_PROOF,
  startScriptedKind,
} from '../support/node/scripted-kinds.ts'
import { type StatefulFolder, statefulFolder } from '../support/node/stateful-folder.ts'

/** Each kind of provider behind a real router, as a stranger's mock speaks it and as we know it. */

/** How soon a stop must reach the upstream call (U26). */
const STOP_REACHES_UPSTREAM_MS = 2_000
const KEY = 'key-of-the-test-51c7d0'

const KINDS: [name: string, kind: ProviderKind][] = PROVIDER_KINDS.map((kind) => [kind.provider, kind])

/** A router whose providers all stand in for real ones, and an account on it. */
type Yard = { router: RouterProcess; account: RouterAccount }

async function openYard(folder: StatefulFolder, originOf: (kind: ProviderKind) => string): Promise<Yard> {
  const vars = Object.assign({}, ...PROVIDER_KINDS.map((kind) => kind.vars(originOf(kind))))
  const router = await RouterProcess.start({ persistTo: folder.path, vars })
  return { router, account: await makeAccount(router.url) }
}

const post = async ({ router, account }: Yard, session: string, verb: string, body: unknown) =>
  openRaw(`${router.url}/api/v1/sessions/${session}/${verb}`, {
    method: 'POST',
    headers: {
      ...account.headers,
      Accept: 'text/event-stream',
      ...Object.fromEntries(
        ['anthropic', 'gemini', 'openai', 'lab'].map((name) => [`X-Smista-Provider-${name}-Api-Key`, KEY]),
      ),
    },
    body,
  })

const task = ({ provider, model }: ProviderKind, prompt: string): ExecuteRequest => ({
  ...executeRequest(prompt),
  policy: smallPolicy({
    routing: { default: { model: `${provider}/${model}` } },
    tools: { permissions: { read_file: 'allow' } },
    privacy: { remote: { mode: 'allow' } },
  }),
})

const execute = (yard: Yard, session: string, kind: ProviderKind, prompt: string) =>
  post(yard, session, 'execute', task(kind, prompt))

const eventsOf = async (answer: RawAnswer): Promise<TurnEvent[]> =>
  framesOf(await answer.whole()).map(({ event }) => event)

const run = async (yard: Yard, kind: ProviderKind, prompt: string): Promise<TurnEvent[]> =>
  eventsOf(await execute(yard, await yard.account.newSession(), kind, prompt))

const textOf = (events: readonly TurnEvent[]): string =>
  events.map((event) => (event.type === 'text_delta' ? event.delta : '')).join('')

/** What the trace of a session says that its calls used; a call whose usage is unknown is not among them. */
async function costsOf({ account: { client } }: Yard, session: string): Promise<unknown[]> {
  const { events } = must(await client.trace(session, { limit: 100, offset: 0 }))
  return events.flatMap((event) =>
    event.event_type === 'cost' && 'plaintext' in event.payload ? [event.payload.plaintext] : [],
  )
}

async function expectAnswer(yard: Yard, kind: ProviderKind): Promise<void> {
  const events = await run(yard, kind, '<answer>')
  expect(events.at(-1)).toMatchObject({
    type: 'turn_end',
    status: 'completed',
    data: {
      message: { content: 'Größe: 🚂 fährt.', provider: kind.provider, model: kind.model },
      routing: { provider: kind.provider, model: kind.model, fallback_used: false },
    },
  })
  expect(textOf(events)).toBe('Größe: 🚂 fährt.')
  expect(events.filter(({ type }) => type === 'text_delta').length).toBeGreaterThan(1)
}

/** Two calls, their results, an answer. */
async function expectToolRound(yard: Yard, kind: ProviderKind): Promise<void> {
  const session = await yard.account.newSession()
  const paused = await eventsOf(await execute(yard, session, kind, '<tools>'))
  expect(paused.at(-1)).toMatchObject({ type: 'turn_end', status: 'awaiting_tool' })
  const calls = paused.filter((event) => event.type === 'tool_call_requested')
  expect(calls).toMatchObject([
    { name: 'read_file', arguments: { path: 'a.txt' }, requires_approval: 'allow' },
    { name: 'read_file', arguments: { path: 'b.txt' }, requires_approval: 'allow' },
  ])
  const results = calls.map(({ call_id }) => ({ call_id, content: FILE_CONTENT, is_error: false }))
  const resumed = await post(yard, session, 'continue', { type: 'tool_results', data: { results } })
  expect((await eventsOf(resumed)).at(-1)).toMatchObject({
    status: 'completed',
    data: { message: { content: 'Both are read.', provider: kind.provider } },
  })
}

async function expectError(yard: Yard, kind: ProviderKind, prompt: string, code: ErrorCode): Promise<void> {
  const events = await run(yard, kind, prompt)
  expect(events, prompt).toMatchObject([{ type: 'turn_end', status: 'error', data: { error: { code } } }])
  expect(JSON.stringify(events)).not.toContain(KEY)
}

/** A stream that breaks off after its first text is an error, and the text stays. */
async function expectCut(yard: Yard, kind: ProviderKind): Promise<void> {
  const session = await yard.account.newSession()
  const events = await eventsOf(await execute(yard, session, kind, '<cut>'))
  const said = textOf(events)
  expect(said).not.toBe('')
  expect(events.at(-1)).toMatchObject({
    type: 'turn_end',
    status: 'error',
    data: { error: { code: expect.stringMatching(/^provider_(error|unavailable)$/) } },
  })
  const { messages } = must(await yard.account.client.sessions.get(session))
  expect(messages.at(-1)).toMatchObject({
    role: 'assistant',
    content: { plaintext: said },
    interrupted: true,
  })
}

describe('[U39] each kind of provider, as a mock that is not ours speaks it', () => {
  const fixtures: MockFixture[] = [
    {
      match: { userMessage: '<answer>' },
      response: { content: 'Größe: 🚂 fährt.' },
      latency: 5,
      chunkSize: 4,
    },
    {
      match: { userMessage: '<tools>', hasToolResult: false },
      response: {
        toolCalls: [
          { id: 'call_1', name: 'read_file', arguments: { path: 'a.txt' } },
          { id: 'call_2', name: 'read_file', arguments: { path: 'b.txt' } },
        ],
      },
    },
    { match: { userMessage: '<tools>', hasToolResult: true }, response: { content: 'Both are read.' } },
    ...[401, 429, 500].map((status) => ({
      match: { userMessage: `<${status}>` },
      response: { error: { message: 'no', type: 'refused' }, status },
    })),
    {
      match: { userMessage: '<cut>' },
      response: { content: 'a long text that is cut off '.repeat(5) },
      latency: 10,
      chunkSize: 6,
      // Some dialects say a lot before the first word.
      truncateAfterChunks: 9,
    },
    // The mock lists the models that its fixtures name, and Ollama's are looked up.
    { match: { userMessage: '<nothing>', model: OLLAMA_MODEL }, response: { content: '' } },
  ]
  let folder: StatefulFolder
  let mock: Awaited<ReturnType<typeof startMockProvider>>
  let yard: Yard

  beforeAll(async () => {
    folder = statefulFolder()
    mock = await startMockProvider(fixtures)
    yard = await openYard(folder, () => mock.url)
  })

  afterAll(async () => {
    await yard?.router.stop()
    await mock?.stop()
    folder?.remove()
  })

  test.each(KINDS)('%s answers in a stream', (_name, kind) => expectAnswer(yard, kind))

  test.each(KINDS.filter(([name]) => ['anthropic', 'gemini', 'openai'].includes(name)))(
    '[U43] a usage of zero, as the mock reports it for %s, is known',
    async (_name, kind) => {
      const session = await yard.account.newSession()
      await eventsOf(await execute(yard, session, kind, '<answer>'))
      expect(await costsOf(yard, session)).toMatchObject([{ input_tokens: 0, output_tokens: 0 }])
    },
  )

  test.each(KINDS)('[U24] %s calls two tools and goes on with their results', (_name, kind) =>
    expectToolRound(yard, kind),
  )

  test.each(KINDS)('[EC 3] a refusal of %s has its code', async (_name, kind) => {
    await Promise.all([
      expectError(yard, kind, '<401>', 'invalid_provider_credentials'),
      expectError(yard, kind, '<429>', 'rate_limited'),
      expectError(yard, kind, '<500>', 'provider_unavailable'),
    ])
  })

  test.each(KINDS)('[D24] a stream of %s that is cut is an error', (_name, kind) => expectCut(yard, kind))
})

describe('[U22] each kind of provider, which takes only what the real one takes', () => {
  const upstreams = new Map<ProviderKind, Awaited<ReturnType<typeof startScriptedKind>>>()
  let folder: StatefulFolder
  let yard: Yard

  const upstreamOf = (kind: ProviderKind) => {
    const upstream = upstreams.get(kind)
    if (upstream === undefined) throw new Error(`nothing stands in for ${kind.provider}`)
    return upstream
  }

  beforeAll(async () => {
    folder = statefulFolder()
    for (const kind of PROVIDER_KINDS) upstreams.set(kind, await startScriptedKind(kind))
    yard = await openYard(folder, (kind) => upstreamOf(kind).url)
  })

  afterAll(async () => {
    await yard?.router.stop()
    for (const upstream of upstreams.values()) await upstream.close()
    folder?.remove()
  })

  test.each(KINDS)('%s answers in a stream', (_name, kind) => expectAnswer(yard, kind))

  test.each(KINDS)('[U40] %s calls two tools, gets its proofs back and goes on', async (_name, kind) => {
    const { requests } = upstreamOf(kind)
    const before = requests.length
    await expectToolRound(yard, kind)
    const last = JSON.stringify(requests.at(-1)?.body)
    expect(requests.length).toBeGreaterThanOrEqual(before + 2)
    expect(last.split(FILE_CONTENT)).toHaveLength(3)
    const proofs = {
      anthropic: [REASONING_PROOF],
      gemini: [CALL_PROOF],
      responses: [REASONING_PROOF],
      chat: [CALL_PROOF],
      ollama: [],
    }
    for (const proof of proofs[kind.conversation]) expect(last).toContain(proof)
  })

  test.each(KINDS)('[EC 3] a refusal of %s in its own words has its code', async (_name, kind) => {
    await Promise.all([
      expectError(yard, kind, '<bad_key>', 'invalid_provider_credentials'),
      expectError(yard, kind, '<rate_limited>', 'rate_limited'),
      expectError(yard, kind, '<server_error>', 'provider_unavailable'),
      expectError(yard, kind, '<too_long>', 'context_length_exceeded'),
    ])
  })

  test.each(KINDS)('[D24] a stream of %s that is cut is an error', (_name, kind) => expectCut(yard, kind))

  test.each(KINDS)('[U26] break reaches %s within two seconds', async (_name, kind) => {
    const session = await yard.account.newSession()
    const stream = await execute(yard, session, kind, '<hang>')
    await stream.until(hasFrames(1))
    const stoppedAt = performance.now()
    const stopped = await post(yard, session, 'continue', { type: 'break' })
    await upstreamOf(kind).callerLeft
    expect(performance.now() - stoppedAt).toBeLessThan(STOP_REACHES_UPSTREAM_MS)
    expect((await eventsOf(stopped)).at(-1)).toMatchObject({ status: 'idle' })
    expect((await eventsOf(stream)).at(-1)).toMatchObject({ status: 'idle' })
    // Of these only Anthropic counts at the beginning, and its counts are not lost (EC 15, U43).
    expect(await costsOf(yard, session)).toMatchObject(
      kind.provider === 'anthropic' ? [{ provider: 'anthropic', input_tokens: 12, output_tokens: 1 }] : [],
    )
  })

  test.each(KINDS)('[D16] %s found nothing to refuse and saw no key outside a header', (_name, kind) => {
    const { requests, faults } = upstreamOf(kind)
    expect(faults).toEqual([])
    expect(requests.length).toBeGreaterThan(7)
    const keys = requests.filter(({ headers }) => JSON.stringify(headers).includes(KEY))
    expect(keys.length > 0).toBe(kind.provider !== 'ollama')
    for (const { headers: _, ...rest } of requests) expect(JSON.stringify(rest)).not.toContain(KEY)
  })
})
