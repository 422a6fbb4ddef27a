import { evictDurableObject } from 'cloudflare:test'
import { env, exports } from 'cloudflare:workers'
import { beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { RunResponse } from '../../src/protocol/execution/turn.ts'
import { TurnChannel } from '../../src/session/turn-channel.ts'
import { makeExecute } from '../support/workers/bodies.ts'
import { Hold } from '../support/workers/hold.ts'
import {
  type Client,
  makeClient,
  makeRequest,
  parsed,
  refused,
  turnAs,
  turnOf,
} from '../support/workers/router.ts'
import { scriptModels } from '../support/workers/scripted-models.ts'
import { crash, transcriptOf } from '../support/workers/session-object.ts'
import { endOf, eventsOf, type Frame, STREAM, TurnStream, textOf } from '../support/workers/turn-stream.ts'

const models = scriptModels()

let client: Client
let id: string
beforeAll(async () => {
  client = await makeClient()
})
beforeEach(async () => {
  id = await client.newSession()
})

const evict = () => evictDurableObject(env.SESSION.getByName(id))
const BREAK = { type: 'break' as const }
const TRACE_ID = expect.stringMatching(/^trace:/)
const running = {
  status: 'running',
  data: { trace_id: TRACE_ID, run_id: expect.stringMatching(/^[0-9a-f-]{36}$/) },
  allowed_continuations: ['inject', 'break'],
}
const show = async () => parsed(await client.run(id), RunResponse)
const attach = async (lastEventId?: string) =>
  new TurnStream(
    await client.run(id, {
      ...STREAM,
      ...(lastEventId === undefined ? {} : { 'Last-Event-ID': lastEventId }),
    }),
  )
const eventsIn = (frames: Frame[]) => frames.map(({ event }) => event)
const idsIn = (frames: Frame[]) => frames.map((frame) => frame.id)
const delta = (text: string) => (event: { type: string; delta?: string }) =>
  event.type === 'text_delta' && event.delta === text

describe('the current envelope', () => {
  it('[D19] of a session without a run is idle', async () => {
    expect(await show()).toEqual({ status: 'idle', data: { trace_id: `trace:${id}` } })
    expect(eventsIn(await (await attach()).rest())).toMatchObject([{ type: 'turn_end', status: 'idle' }])
  })

  it('[D19] while a turn is served says so, from before its first word on', async () => {
    const [listing, talking] = [new Hold(), new Hold()]
    models.onListing = listing.wait
    models.script({ text: ['one '], hold: talking.wait, after: ['two'] })
    const served = client.execute(id, makeExecute('hi'))
    await listing.reached()
    expect(await show()).toMatchObject({ ...running, data: { trace_id: expect.any(String) } })
    listing.release()
    await talking.reached()
    expect(await show()).toEqual(running)
    talking.release()
    const turn = await turnAs(await served, 'completed')
    expect(await show()).toEqual(turn)
  })

  it('[D19] of each pause is what the turn answered, and what may answer it', async () => {
    models.script({ calls: [{ name: 'read_file', arguments: { path: 'a' } }] })
    const paused = await turnAs(await client.execute(id, makeExecute('hi')), 'awaiting_tool')
    expect(await show()).toEqual(paused)
    models.script({ text: ['a plan'] })
    const planned = await turnOf(await client.execute(id, makeExecute('hi', { input: { command: 'plan' } })))
    expect(planned).toMatchObject({ status: 'awaiting_approval', data: { approval: { kind: 'plan' } } })
    expect(await show()).toEqual(planned)
    const remote = makeExecute('hi', {
      policy: { routing: { default: { model: 'openai-compat:cloud/big' } } },
    })
    const headers = { 'X-Smista-Provider-Cloud-Api-Key': 'k' }
    const gated = await turnOf(await client.execute(id, remote, headers))
    expect(gated).toMatchObject({
      status: 'awaiting_approval',
      data: { approval: { kind: 'remote_disclosure' } },
    })
    expect(await show()).toEqual(gated)
    await turnAs(await client.proceed(id, BREAK), 'idle')
    expect(await show()).toMatchObject({ status: 'idle' })
  })

  it('[U20] of many calls that wait lists each with its question, and one message answers them all', async () => {
    const calls = Array.from({ length: 12 }, (_, n) => ({
      name: n % 2 === 0 ? 'read_file' : 'shell',
      arguments: n % 2 === 0 ? { path: `${n}` } : { command: `run ${n}` },
    }))
    models.script({ calls })
    const policy = { tools: { permissions: { read_file: 'allow', shell: 'ask' } } } as const
    const paused = await turnAs(await client.execute(id, makeExecute('hi', { policy })), 'awaiting_tool')
    await evict()
    expect(await show()).toEqual(paused)
    const asked = paused.data.tool_requests
    expect(asked.map(({ name, requires_approval }) => [name, requires_approval])).toEqual(
      calls.map(({ name }) => [name, name === 'shell' ? 'ask' : 'allow']),
    )
    models.script({ text: ['done'] })
    const results = asked.toReversed().map(({ call_id }) => ({ call_id, content: call_id }))
    await turnAs(await client.proceed(id, { type: 'tool_results', data: { results } }), 'completed')
    const told = models.chats.at(-1)?.messages.filter(({ role }) => role === 'tool')
    expect(told?.map(({ content }) => content)).toEqual(asked.map(({ call_id }) => call_id))
  })

  it('[D19] is still served after the object was evicted, buffered and as a stream', async () => {
    models.script({ calls: [{ name: 'read_file', arguments: { path: 'a' } }] }, { text: ['Hello ', 'there'] })
    const paused = await turnAs(await client.execute(id, makeExecute('hi')), 'awaiting_tool')
    await evict()
    expect(await show()).toEqual(paused)
    const results = [{ call_id: paused.data.tool_requests[0]?.call_id ?? '', content: 'R' }]
    const done = await turnOf(await client.proceed(id, { type: 'tool_results', data: { results } }))
    await evict()
    expect(await show()).toEqual(done)
    const events = await eventsOf(await client.run(id, STREAM))
    expect(textOf(events)).toBe('Hello there')
    expect(endOf(events)).toEqual({ type: 'turn_end', ...done })
  })
})

describe('attaching to a turn', () => {
  it('[U05] that has not spoken yet: its stream then simply arrives', async () => {
    const hold = new Hold()
    models.onListing = hold.wait
    models.script({ text: ['one ', 'two'] })
    const served = client.execute(id, makeExecute('hi'))
    await hold.reached()
    const stream = await attach()
    hold.release()
    const events = eventsIn(await stream.rest())
    expect(textOf(events)).toBe('one two')
    expect(endOf(events)).toEqual({ type: 'turn_end', ...(await turnOf(await served)) })
  })

  it('[U04] twice shows each reader every event once, under the same ids', async () => {
    const hold = new Hold()
    models.script({ text: ['one ', 'two '], hold: hold.wait, after: ['three'] })
    const first = new TurnStream(await client.execute(id, makeExecute('hi'), STREAM))
    await hold.reached()
    const [second, third] = [await attach(), await attach()]
    hold.release()
    const frames = await first.rest()
    expect(await second.rest()).toEqual(frames)
    expect(await third.rest()).toEqual(frames)
    expect(textOf(eventsIn(frames))).toBe('one two three')
    expect(new Set(idsIn(frames)).size).toBe(frames.length)
  })

  it('[D19] resumes after any event, none twice and none missing', async () => {
    const hold = new Hold()
    models.script({ text: ['one ', 'two '], hold: hold.wait, after: ['three'] })
    const first = new TurnStream(await client.execute(id, makeExecute('hi'), STREAM))
    const early = await first.until(delta('two '))
    const during = await Promise.all(early.map(async (frame) => ({ frame, stream: await attach(frame.id) })))
    hold.release()
    const all = [...early, ...(await first.rest())]
    for (const { frame, stream } of during) {
      expect(await stream.rest()).toEqual(all.slice(all.findIndex(({ id }) => id === frame.id) + 1))
    }
    // The turn is over, and its events are still held. A stream always has an end, so the last one comes again.
    for (const [index, frame] of all.entries()) {
      const after = index === all.length - 1 ? [frame] : all.slice(index + 1)
      expect(await (await attach(frame.id)).rest()).toEqual(after)
    }
    expect(await (await attach()).rest()).toEqual(all)
  })

  it.each(['nonsense', 'a.b', '0.1'])(
    '[D19] from %s, which is no event, gives the turn_end alone',
    async (from) => {
      models.script({ text: ['one ', 'two'] })
      const frames = await new TurnStream(await client.execute(id, makeExecute('hi'), STREAM)).rest()
      expect(eventsIn(await (await attach(from)).rest())).toEqual([frames.at(-1)?.event])
    },
  )

  it('[D19] from an id that is no longer held gives the turn_end of that turn alone', async () => {
    models.script({ text: ['one ', 'two'] })
    const frames = await new TurnStream(await client.execute(id, makeExecute('hi'), STREAM)).rest()
    await evict()
    for (const frame of frames) {
      const left = eventsIn(await (await attach(frame.id)).rest())
      expect(left).toEqual([frames.at(-1)?.event])
    }
    models.script({ text: ['three'] })
    await turnOf(await client.execute(id, makeExecute('next')))
    expect(eventsIn(await (await attach(frames[0]?.id)).rest())).toEqual([frames.at(-1)?.event])
  })

  it('[D19] with an id that means nothing gives the current turn_end', async () => {
    models.script({ text: ['one'] })
    const done = await turnOf(await client.execute(id, makeExecute('hi')))
    for (const odd of ['nonsense', 'x.1', '.', 'x.99999999999999999999']) {
      const events = eventsIn(await (await attach(odd)).rest())
      expect(endOf(events), odd).toEqual({ type: 'turn_end', ...done })
    }
  })

  it('[U01] a reader that comes and goes at every event reads the whole', async () => {
    const pieces = Array.from({ length: 30 }, (_, n) => `${n} `)
    const hold = new Hold()
    models.script({ text: pieces.slice(0, 15), hold: hold.wait, after: pieces.slice(15) })
    const served = client.execute(id, makeExecute('hi'))
    await hold.reached()
    const seen: Frame[] = []
    for (;;) {
      const stream = await attach(seen.at(-1)?.id)
      const frame = await stream.next()
      await stream.cancel()
      if (frame === null) throw new Error('the stream ended without a turn_end')
      seen.push(frame)
      if (seen.length === 10) hold.release()
      if (frame.event.type === 'turn_end') break
    }
    expect(textOf(eventsIn(seen))).toBe(pieces.join(''))
    expect(endOf(eventsIn(seen))).toEqual({ type: 'turn_end', ...(await turnOf(await served)) })
  })
})

describe('clients that go away', () => {
  it('[U02][U27] a cancelled stream does not stop its turn', async () => {
    const hold = new Hold()
    models.script({ text: ['one '], hold: hold.wait, after: ['two'] })
    const stream = new TurnStream(await client.execute(id, makeExecute('hi'), STREAM))
    const [first] = await stream.until(delta('one '))
    await stream.cancel()
    hold.release()
    const rest = await (await attach(first?.id)).rest()
    expect(textOf(eventsIn(rest))).toBe('two')
    expect(models.aborted).toBe(0)
    expect(await transcriptOf(id)).toEqual([
      { role: 'user', text: 'hi' },
      { role: 'assistant', text: 'one two' },
    ])
  })

  it('[U02] a turn ends by itself with nobody there, and its outcome is kept', async () => {
    models.script({ text: ['one ', 'two'] })
    const stream = new TurnStream(await client.execute(id, makeExecute('hi'), STREAM))
    await stream.cancel()
    const events = eventsIn(await (await attach()).rest())
    expect(endOf(events)).toMatchObject({ status: 'completed', data: { message: { content: 'one two' } } })
    expect(await show()).toMatchObject({ status: 'completed' })
  })

  it('[U02][U27] a buffered caller that hangs up does not stop its turn', async () => {
    const hold = new Hold()
    models.script({ text: ['one '], hold: hold.wait, after: ['two'] })
    const controller = new AbortController()
    const path = `/api/v1/sessions/${id}/execute`
    const headers = { Authorization: `Bearer ${client.token}` }
    const request = new Request(makeRequest('POST', path, makeExecute('hi'), headers), {
      signal: controller.signal,
    })
    const gone = exports.default.fetch(request)
    await hold.reached()
    controller.abort()
    await expect(gone).rejects.toThrow()
    hold.release()
    const events = eventsIn(await (await attach()).rest())
    expect(endOf(events)).toMatchObject({ status: 'completed', data: { message: { content: 'one two' } } })
    expect(models.aborted).toBe(0)
  })

  it('[U12] a reader that does not read holds up neither the turn nor the others', async () => {
    const lazy = new TurnStream(
      await (async () => {
        models.script({ text: Array.from({ length: 200 }, () => 'x'.repeat(10_000)) })
        return client.execute(id, makeExecute('hi'), STREAM)
      })(),
    )
    const other = await attach()
    expect(textOf(eventsIn(await other.rest()))).toHaveLength(2_000_000)
    expect(textOf(eventsIn(await lazy.rest()))).toHaveLength(2_000_000)
  })
})

describe('the events of a turn', () => {
  const text = async (stream: ReadableStream<Uint8Array>) => new Response(stream).text()
  const idsOf = (read: string) => [...read.matchAll(/^id: t\.(\d+)$/gm)].map(([, n]) => Number(n))
  const idle = { k: 'outcome', outcome: { status: 'idle', data: { trace_id: 'trace:x' } } } as const

  it('[D19] beyond 4 MiB the oldest are let go; who is behind gets the end alone, never a hole', async () => {
    const channel = new TurnChannel('t')
    const slow = channel.read(0).getReader()
    channel.push({ type: 'text_delta', delta: 'first' })
    const { value } = await slow.read()
    expect(new TextDecoder().decode(value)).toContain('first')
    for (let n = 0; n < 50; n++) channel.push({ type: 'text_delta', delta: 'x'.repeat(100_000) })
    expect(channel.holdsAfter(0)).toBe(false)
    expect(channel.holdsAfter(1)).toBe(false)
    const early = text(channel.read(1))
    channel.end(idle)
    slow.releaseLock()
    expect(idsOf(await early)).toEqual([52])
    const kept = idsOf(await text(channel.read(30)))
    expect(kept).toEqual(Array.from({ length: 22 }, (_, n) => n + 31))
  })

  it('[U46] a comment every 15 s keeps a silent stream open, and no timer outlives its reader', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    const channel = new TurnChannel('t')
    const reader = channel.read(0).getReader()
    const first = reader.read()
    await vi.advanceTimersByTimeAsync(14_999)
    expect(vi.getTimerCount()).toBe(1)
    await vi.advanceTimersByTimeAsync(1)
    expect(new TextDecoder().decode((await first).value)).toBe(': keep-alive\n\n')
    const second = reader.read()
    await vi.advanceTimersByTimeAsync(1)
    await reader.cancel()
    await second
    expect(vi.getTimerCount()).toBe(0)
  })

  it('[EC 18] nothing follows a turn_end, and a second ending is none', async () => {
    const channel = new TurnChannel('t')
    channel.end(idle)
    channel.end({ k: 'superseded', traceId: 'trace:y' })
    const read = await text(channel.read(0))
    expect(read.match(/turn_end/g)).toHaveLength(1)
    expect(read).toContain('trace:x')
  })
})

describe('idempotent turns', () => {
  const keyed = (key: string, headers = {}) => ({ 'Idempotency-Key': key, ...headers })

  it('[D20][U15] the same key and body is one run: its outcome again, buffered and streamed', async () => {
    models.script({ text: ['one ', 'two'] })
    const body = makeExecute('hi')
    const first = await turnOf(await client.execute(id, body, keyed('k')))
    expect(await turnOf(await client.execute(id, body, keyed('k')))).toEqual(first)
    const streamed = await eventsOf(await client.execute(id, body, keyed('k', STREAM)))
    expect(textOf(streamed)).toBe('one two')
    expect(endOf(streamed)).toEqual({ type: 'turn_end', ...first })
    await evict()
    expect(await turnOf(await client.execute(id, body, keyed('k')))).toEqual(first)
    const replayed = await eventsOf(await client.execute(id, body, keyed('k', STREAM)))
    expect(textOf(replayed)).toBe('one two')
    expect(endOf(replayed)).toEqual({ type: 'turn_end', ...first })
    expect(models.chats).toHaveLength(1)
    expect(await transcriptOf(id)).toHaveLength(2)
  })

  it('[D20] the key of an earlier turn still answers with that turn', async () => {
    models.script({ text: ['first'] }, { text: ['second'] })
    const first = await turnOf(await client.execute(id, makeExecute('one'), keyed('k1')))
    await turnOf(await client.execute(id, makeExecute('two'), keyed('k2')))
    expect(await turnOf(await client.execute(id, makeExecute('one'), keyed('k1')))).toEqual(first)
    expect(models.chats).toHaveLength(2)
  })

  it('[D20] another body, or another route, is refused with 422', async () => {
    models.script({ text: ['x'] })
    await turnOf(await client.execute(id, makeExecute('hi'), keyed('k')))
    for (const answer of [
      client.execute(id, makeExecute('other'), keyed('k')),
      client.execute(id, makeExecute('other'), keyed('k', STREAM)),
      client.proceed(id, BREAK, keyed('k')),
    ]) {
      expect(await refused(await answer)).toMatchObject({ status: 422, code: 'invalid_request' })
    }
    expect(models.chats).toHaveLength(1)
  })

  it('[D20] without a key the same body is another run', async () => {
    models.script({ text: ['x'] })
    await turnOf(await client.execute(id, makeExecute('hi')))
    await turnOf(await client.execute(id, makeExecute('hi')))
    expect(models.chats).toHaveLength(2)
  })

  it('[D20][U15] a key that is in use attaches to the turn', async () => {
    const hold = new Hold()
    models.script({ text: ['one '], hold: hold.wait, after: ['two'] })
    const body = makeExecute('hi')
    const served = client.execute(id, body, keyed('k'))
    await hold.reached()
    const buffered = client.execute(id, body, keyed('k'))
    const streamed = client.execute(id, body, keyed('k', STREAM))
    expect(await refused(await client.execute(id, body, keyed('other')))).toMatchObject({ status: 409 })
    const stream = new TurnStream(await streamed)
    await stream.until(delta('one '))
    hold.release()
    const turn = await turnOf(await served)
    expect(await turnOf(await buffered)).toEqual(turn)
    expect(endOf(eventsIn(await stream.rest()))).toEqual({ type: 'turn_end', ...turn })
    expect(models.chats).toHaveLength(1)
  })

  it('[D20] two at once with one key are one run', async () => {
    models.script({ text: ['x'] })
    const body = makeExecute('hi')
    const [first, second] = await Promise.all([
      client.execute(id, body, keyed('k')).then(turnOf),
      client.execute(id, body, keyed('k')).then(turnOf),
    ])
    expect(second).toEqual(first)
    expect(models.chats).toHaveLength(1)
    expect(await transcriptOf(id)).toHaveLength(2)
  })

  it('[D20][U15] a failed run is the outcome, too', async () => {
    models.script({ status: 500 }, { text: ['never'] })
    const first = await refused(await client.execute(id, makeExecute('hi'), keyed('k')))
    expect(first).toMatchObject({ status: 503, code: 'provider_unavailable' })
    expect(await refused(await client.execute(id, makeExecute('hi'), keyed('k')))).toEqual(first)
    const streamed = await eventsOf(await client.execute(id, makeExecute('hi'), keyed('k', STREAM)))
    expect(endOf(streamed)).toMatchObject({ status: 'error', data: { error: { code: first.code } } })
    expect(models.chats).toHaveLength(1)
  })

  it('[D20] a refused request leaves its key free', async () => {
    models.script({ calls: [{ name: 'read_file', arguments: { path: 'a' } }] }, { text: ['Done.'] })
    const turn = await turnAs(await client.execute(id, makeExecute('hi')), 'awaiting_tool')
    const results = (content: string, call_id = turn.data.tool_requests[0]?.call_id ?? '') => ({
      type: 'tool_results' as const,
      data: { results: [{ call_id, content }] },
    })
    expect(await refused(await client.proceed(id, results('R', 'unknown'), keyed('k')))).toMatchObject({
      status: 422,
    })
    await turnAs(await client.proceed(id, results('R'), keyed('k')), 'completed')
  })

  it('[D20] results sent twice with one key are taken once', async () => {
    models.script({ calls: [{ name: 'read_file', arguments: { path: 'a' } }] }, { text: ['Done.'] })
    const turn = await turnAs(await client.execute(id, makeExecute('hi')), 'awaiting_tool')
    const call_id = turn.data.tool_requests[0]?.call_id ?? ''
    const results = { type: 'tool_results' as const, data: { results: [{ call_id, content: 'R' }] } }
    const done = await turnOf(await client.proceed(id, results, keyed('k')))
    expect(await turnOf(await client.proceed(id, results, keyed('k')))).toEqual(done)
    expect(models.chats).toHaveLength(2)
  })

  it('[D20] a `break` sent twice with one key does not stop what came after it', async () => {
    models.script({ calls: [{ name: 'read_file', arguments: { path: 'a' } }] })
    await turnAs(await client.execute(id, makeExecute('hi')), 'awaiting_tool')
    const idle = await turnAs(await client.proceed(id, BREAK, keyed('k')), 'idle')
    await turnAs(await client.execute(id, makeExecute('again')), 'awaiting_tool')
    expect(await turnOf(await client.proceed(id, BREAK, keyed('k')))).toEqual(idle)
    expect(await show()).toMatchObject({ status: 'awaiting_tool' })
  })

  it('[D20] an `inject` sent twice with one key is said once', async () => {
    models.script({ text: ['first'] }, { text: ['second'] })
    await turnOf(await client.execute(id, makeExecute('hi')))
    const inject = { type: 'inject' as const, data: { messages: [{ text: 'more' }] } }
    const turn = await turnOf(await client.proceed(id, inject, keyed('k')))
    expect(await turnOf(await client.proceed(id, inject, keyed('k')))).toEqual(turn)
    expect(await transcriptOf(id)).toHaveLength(4)
  })

  it('[D20] after a crash in mid-turn the same key is processed again, and nothing is doubled', async () => {
    const hold = new Hold()
    models.script({ text: ['one '], hold: hold.wait }, { text: ['whole'] })
    const body = makeExecute('hi')
    vi.spyOn(console, 'error').mockImplementation(() => {})
    const lost = client.execute(id, body, keyed('k'))
    await hold.reached()
    await crash(id)
    expect((await lost).status).toBe(500)
    const turn = await turnAs(await client.execute(id, body, keyed('k')), 'completed')
    expect(turn.data.message.content).toBe('whole')
    expect(await turnOf(await client.execute(id, body, keyed('k')))).toEqual(turn)
    expect(await transcriptOf(id)).toEqual([
      { role: 'user', text: 'hi' },
      { role: 'assistant', text: 'whole' },
    ])
    expect(models.chats).toHaveLength(2)
  })

  it.each(['', 'two words', 'x'.repeat(256)])('[D20] `%s` is no key', async (key) => {
    expect(await refused(await client.execute(id, makeExecute('hi'), keyed(key)))).toMatchObject({
      status: 422,
      code: 'invalid_request',
    })
  })
})
