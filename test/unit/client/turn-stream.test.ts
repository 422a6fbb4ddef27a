import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { SwitchyardClient } from '../../../src/client/client.ts'
import type { StreamEvent } from '../../../src/client/turn-stream.ts'
import type { ExecuteRequest } from '../../../src/protocol/execution/execute.ts'
import { executeRequest } from '../../support/node/run-request.ts'
import {
  hangUp,
  json,
  numbered,
  openStream,
  refusal,
  type ScriptedRouter,
  startScriptedRouter,
  stream,
} from '../../support/node/scripted-router.ts'
import {
  awaitingTool,
  call,
  completed,
  idle,
  paths,
  SESSION,
  text,
} from '../../support/node/scripted-router-turns.ts'

const request: ExecuteRequest = executeRequest('hello')
const backoff = { firstMs: 1, maxMs: 2, attempts: 3, openAttempts: 2 }

let router: ScriptedRouter
let client: SwitchyardClient

beforeEach(async () => {
  router = await startScriptedRouter()
  client = new SwitchyardClient({ baseUrl: router.url, token: 'tok', backoff })
})
afterEach(async () => {
  expect(router.unexpected).toEqual([])
  await router.close()
})

async function collect(events: AsyncIterable<StreamEvent>): Promise<StreamEvent[]> {
  const all: StreamEvent[] = []
  for await (const event of events) all.push(event)
  return all
}

const turn = [text('one '), text('two '), text('three'), completed('one two three')]

describe('a streamed turn', () => {
  test('[D19] a connection cut after any event is resumed, and no event comes twice', async () => {
    const all = numbered(4, turn)
    for (let cut = 1; cut < all.length; cut++) {
      router.script('POST', paths.execute, stream(all.slice(0, cut), 'cut'))
      // The router repeats the last event, as one that crashed before it noted the delivery would.
      router.script('GET', paths.run, stream(all.slice(cut - 1)))
      expect(await collect(client.executeStream(SESSION, request))).toEqual(turn)
      const resumed = router.requests.at(-1)
      expect(resumed?.headers['last-event-id']).toBe(`4.${cut}`)
      expect(resumed?.headers.accept).toBe('text/event-stream')
    }
  })

  test('[D19] a connection cut again and again is one sequence, since progress renews the patience', async () => {
    const all = numbered(1, [...Array.from({ length: 8 }, (_, i) => text(`${i}`)), completed('01234567')])
    router.script('POST', paths.execute, stream(all.slice(0, 1), 'cut'))
    for (let i = 1; i < all.length - 1; i++)
      router.script('GET', paths.run, stream(all.slice(i, i + 1), 'cut'))
    router.script('GET', paths.run, stream(all.slice(-1)))
    expect(await collect(client.executeStream(SESSION, request))).toEqual(all.map(({ event }) => event))
  })

  test('[D19] an id that is no longer held gives the turn_end only', async () => {
    router.script('POST', paths.execute, stream(numbered(1, turn).slice(0, 1), 'cut'))
    router.script('GET', paths.run, stream(numbered(1, turn).slice(-1)))
    expect(await collect(client.executeStream(SESSION, request))).toEqual([turn[0], turn.at(-1)])
  })

  test('[D20] a request at which the router itself failed is repeated once, under the same idempotency key', async () => {
    const failed = refusal(500, 'internal_error')
    router.script('POST', paths.execute, failed, stream(numbered(1, turn)))
    expect(await collect(client.executeStream(SESSION, request))).toEqual(turn)
    const keys = router.requests.map(({ headers }) => headers['idempotency-key'])
    expect(new Set(keys).size).toBe(1)
    router.always('POST', paths.execute, failed)
    router.requests.length = 0
    expect(await collect(client.executeStream(SESSION, request))).toMatchObject([
      { type: 'failed', failure: { code: 'internal_error' } },
    ])
    expect(router.count('POST', paths.execute)).toBe(2)
  })

  test('[D20] a request without any answer is repeated under the same idempotency key', async () => {
    router.script('POST', paths.execute, hangUp, hangUp, stream(numbered(1, turn)))
    expect(await collect(client.executeStream(SESSION, request))).toEqual(turn)
    const keys = router.requests.map(({ headers }) => headers['idempotency-key'])
    expect(keys).toHaveLength(3)
    expect(new Set(keys).size).toBe(1)
    expect(keys[0]).toMatch(/^[0-9a-f-]{36}$/)
  })

  test('[D20] the first copy that did arrive is attached to, not reported as a conflict', async () => {
    router.script('POST', paths.execute, hangUp, refusal(409, 'run_in_flight'))
    router.script('GET', paths.run, stream(numbered(1, turn)))
    expect(await collect(client.executeStream(SESSION, request))).toEqual(turn)
  })

  test('a conflict with another run is reported at once', async () => {
    router.script('POST', paths.execute, refusal(409, 'run_in_flight'))
    const events = await collect(client.executeStream(SESSION, request))
    expect(events).toEqual([
      {
        type: 'failed',
        failure: { kind: 'http', status: 409, code: 'run_in_flight', message: 'scripted run_in_flight' },
      },
    ])
  })

  test.each([
    ['the answer to an earlier prompt', completed('old answer')],
    ['idle', idle],
  ])(
    '[D20] a turn that a crash lost is sent again, and %s is not taken for its end',
    async (_what, earlier) => {
      router.script(
        'POST',
        paths.execute,
        stream(numbered(2, [text('one '), text('tw')]), 'cut'),
        // The turn is served anew, and numbers its events as the lost one did.
        stream(numbered(2, turn)),
      )
      router.script('GET', paths.run, stream(numbered(1, [earlier])))
      expect(await collect(client.executeStream(SESSION, request))).toEqual([
        text('one '),
        text('tw'),
        { type: 'turn_restarted' },
        ...turn,
      ])
      const [first, , second] = router.requests
      expect(second?.headers['idempotency-key']).toBe(first?.headers['idempotency-key'])
      expect(second?.body).toEqual(first?.body)
    },
  )

  test('[D20] a turn that was lost is begun anew also when only its end comes', async () => {
    router.script(
      'POST',
      paths.execute,
      stream(numbered(2, [text('one ')]), 'cut'),
      stream(numbered(2, [completed('another')])),
    )
    router.script('GET', paths.run, stream(numbered(1, [idle])))
    expect(await collect(client.executeStream(SESSION, request))).toEqual([
      text('one '),
      { type: 'turn_restarted' },
      completed('another'),
    ])
  })

  test('[D05] a turn that another request overtook is followed to where the run went', async () => {
    router.script(
      'POST',
      paths.execute,
      stream(numbered(2, [text('one ')]), 'cut'),
      refusal(409, 'run_in_flight'),
    )
    const overtaking = numbered(3, [text('new'), completed('new')])
    router.script('GET', paths.run, stream(overtaking), stream(overtaking))
    expect(await collect(client.executeStream(SESSION, request))).toEqual([
      text('one '),
      { type: 'turn_restarted' },
      text('new'),
      completed('new'),
    ])
    expect(router.requests.at(-1)?.headers['last-event-id']).toBeUndefined()
  })

  test('[D20] a connection cut before the first event repeats the request, never asks for the run at large', async () => {
    router.script('POST', paths.execute, stream([], 'cut'), stream(numbered(1, turn)))
    expect(await collect(client.executeStream(SESSION, request))).toEqual(turn)
    expect(router.count('GET', paths.run)).toBe(0)
  })

  test('[D19] ids of another form are resumed as they are', async () => {
    router.script('POST', paths.execute, stream([{ id: 'aa', event: text('one ') }], 'cut'))
    router.script('GET', paths.run, stream([{ id: 'bb', event: completed('one two') }]))
    expect(await collect(client.executeStream(SESSION, request))).toEqual([
      text('one '),
      completed('one two'),
    ])
    expect(router.requests.at(-1)?.headers['last-event-id']).toBe('aa')
  })

  test('a router without event ids is asked for the outcome only, so that no text comes twice', async () => {
    router.script('POST', paths.execute, stream([{ event: text('one ') }], 'cut'))
    const { type: _type, ...envelope } = completed('one two three')
    router.script(
      'GET',
      paths.run,
      json({ status: 'running', data: { trace_id: 't' }, allowed_continuations: ['inject', 'break'] }),
      json(envelope),
    )
    expect(await collect(client.executeStream(SESSION, request))).toEqual([
      text('one '),
      completed('one two three'),
    ])
    expect(router.requests.at(-1)?.headers.accept).toBe('application/json')
  })

  test('an answer in one piece counts as the end of the turn', async () => {
    const { type: _type, ...envelope } = awaitingTool(call('c1', 'shell', { command: 'ls' }))
    router.script('POST', paths.execute, json(envelope))
    expect(await collect(client.executeStream(SESSION, request))).toEqual([
      awaitingTool(call('c1', 'shell', { command: 'ls' })),
    ])
  })

  test('the patience is bounded: a router that stays away ends in one failure', async () => {
    router.script('POST', paths.execute, stream(numbered(1, [text('one ')]), 'cut'))
    router.always('GET', paths.run, hangUp)
    const waits: number[] = []
    const events = await collect(
      client.executeStream(SESSION, request, { onReconnect: ({ waitMs }) => waits.push(waitMs) }),
    )
    expect(events.map(({ type }) => type)).toEqual(['text_delta', 'failed'])
    expect(events.at(-1)).toMatchObject({ failure: { kind: 'network' } })
    expect(router.count('GET', paths.run)).toBe(backoff.attempts)
    expect(waits).toEqual([1, 2, 2])
  })

  test('a proxy that answers for a restarting router is waited out', async () => {
    router.script('POST', paths.execute, stream(numbered(1, turn).slice(0, 2), 'cut'))
    const badGateway = (response: import('node:http').ServerResponse) => {
      response.writeHead(502, { 'Content-Type': 'text/html' })
      response.end('<h1>Bad Gateway</h1>')
    }
    router.script(
      'GET',
      paths.run,
      badGateway,
      refusal(500, 'internal_error'),
      stream(numbered(1, turn).slice(2)),
    )
    expect(await collect(client.executeStream(SESSION, request))).toEqual(turn)
  })

  test('[EC 29.9] a refusal before the turn is an http failure and is not repeated', async () => {
    router.script('POST', paths.execute, refusal(503, 'fallback_exhausted'))
    const events = await collect(client.executeStream(SESSION, request))
    expect(events).toMatchObject([
      { type: 'failed', failure: { kind: 'http', status: 503, code: 'fallback_exhausted' } },
    ])
    expect(router.requests).toHaveLength(1)
  })

  test('the signal ends the stream with one aborted failure and closes the connection', async () => {
    const stop = new AbortController()
    let closed: Promise<void> | undefined
    router.script(
      'POST',
      paths.execute,
      openStream(numbered(1, [text('one ')]), (response) => {
        closed = new Promise((resolve) => response.on('close', () => resolve()))
      }),
    )
    const events: StreamEvent[] = []
    for await (const event of client.executeStream(SESSION, request, { signal: stop.signal })) {
      events.push(event)
      stop.abort()
    }
    expect(events.map(({ type }) => type)).toEqual(['text_delta', 'failed'])
    expect(events.at(-1)).toMatchObject({ failure: { kind: 'aborted' } })
    await closed
  })

  test('[D19] attaching to a turn names the event to go on after', async () => {
    router.script('GET', paths.run, stream(numbered(7, turn).slice(2)))
    const events = await collect(client.currentRunStream(SESSION, { lastEventId: '7.2' }))
    expect(events).toEqual(turn.slice(2))
    expect(router.requests[0]?.headers['last-event-id']).toBe('7.2')
  })
})
