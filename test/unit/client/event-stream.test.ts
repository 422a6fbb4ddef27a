import { afterEach, describe, expect, test, vi } from 'vitest'
import {
  type IdentifiedEvent,
  readEvents,
  SILENCE_MS,
  type StreamBreak,
} from '../../../src/client/event-stream.ts'
import { encodeEvent } from '../../support/node/scripted-router.ts'
import { awaitingTool, call, completed, text } from '../../support/node/scripted-router-turns.ts'

const body = (chunks: Uint8Array[]): ReadableStream<Uint8Array> =>
  new ReadableStream({
    start: (controller) => {
      for (const chunk of chunks) controller.enqueue(chunk)
      controller.close()
    },
  })

async function readAll(
  stream: ReadableStream<Uint8Array>,
): Promise<{ events: IdentifiedEvent[]; end: StreamBreak | undefined }> {
  const events: IdentifiedEvent[] = []
  const reading = readEvents(stream)
  for (;;) {
    const next = await reading.next()
    if (next.done) return { events, end: next.value }
    events.push(next.value)
  }
}

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text)

afterEach(() => {
  vi.useRealTimers()
})

describe('readEvents', () => {
  const wire = [
    ': keep-alive\n\n',
    encodeEvent({ id: '1.1', event: text('Größe 😀 — “q”') }),
    encodeEvent({ id: '1.2', event: { type: 'never_heard_of', x: 1 } }),
    encodeEvent({ event: text('second\nline') }),
    encodeEvent({ id: '1.3', event: awaitingTool(call('c1', 'shell', { command: 'ls' }, 'ask')) }),
  ].join('')
  const expected: IdentifiedEvent[] = [
    { id: '1.1', event: text('Größe 😀 — “q”') },
    { id: undefined, event: text('second\nline') },
    { id: '1.3', event: awaitingTool(call('c1', 'shell', { command: 'ls' }, 'ask')) },
  ]

  test('[EC 18] a stream split at any byte gives the same events', async () => {
    const all = bytes(wire)
    for (let cut = 0; cut <= all.length; cut++) {
      const { events, end } = await readAll(body([all.slice(0, cut), all.slice(cut)]))
      expect({ cut, events, end }).toEqual({ cut, events: expected, end: undefined })
    }
  })

  test('[EC 18] a stream that arrives byte by byte, with CRLF, gives the same events', async () => {
    const single = [...bytes(wire.replaceAll('\n\n', '\r\n\r\n'))].map((byte) => Uint8Array.of(byte))
    expect((await readAll(body(single))).events).toEqual(expected)
  })

  test('[EC 29.8] unknown event types and unknown fields are ignored', async () => {
    const { events } = await readAll(
      body([
        bytes(
          encodeEvent({ event: { type: 'weather', sunny: true } }) +
            encodeEvent({ event: { ...completed('x'), extra: [1] } }),
        ),
      ]),
    )
    expect(events.map(({ event }) => event)).toEqual([completed('x')])
  })

  test('nothing is read after turn_end', async () => {
    const { events } = await readAll(
      body([bytes(encodeEvent({ event: completed('x') }) + encodeEvent({ event: text('late') }))]),
    )
    expect(events).toHaveLength(1)
  })

  test('a stream that ends without turn_end is lost, not finished', async () => {
    const { events, end } = await readAll(body([bytes(encodeEvent({ event: text('half') }))]))
    expect(events).toHaveLength(1)
    expect(end?.kind).toBe('lost')
  })

  test.each([
    ['not JSON', 'data: oops\n\n'],
    ['no type', 'data: {"delta":"x"}\n\n'],
    ['a known type of another shape', 'data: {"type":"text_delta","delta":7}\n\n'],
  ])('an event with %s ends the stream as malformed', async (_what, raw) => {
    expect((await readAll(body([bytes(raw)]))).end?.kind).toBe('malformed')
  })

  test('[D19] a router that keeps alive and then falls silent is taken for lost', async () => {
    vi.useFakeTimers()
    const silent = new ReadableStream<Uint8Array>({
      start: (controller) => controller.enqueue(bytes(': keep-alive\n\n')),
    })
    const reading = readAll(silent)
    await vi.advanceTimersByTimeAsync(SILENCE_MS)
    expect(await reading).toEqual({
      events: [],
      end: { kind: 'lost', message: 'nothing was heard from the router' },
    })
  })

  test('a router that sends neither comments nor ids may think as long as it likes', async () => {
    vi.useFakeTimers()
    let finish: () => void = () => undefined
    const slow = new ReadableStream<Uint8Array>({
      start: (controller) => {
        controller.enqueue(bytes(encodeEvent({ event: text('a') })))
        finish = () => controller.enqueue(bytes(encodeEvent({ event: completed('ab') })))
      },
    })
    const reading = readAll(slow)
    await vi.advanceTimersByTimeAsync(10 * SILENCE_MS)
    finish()
    expect((await reading).end).toBeUndefined()
  })

  test('a consumer that stops early closes the connection', async () => {
    let cancelled = false
    const stream = new ReadableStream<Uint8Array>({
      start: (controller) => controller.enqueue(bytes(encodeEvent({ event: text('a') }))),
      cancel: () => {
        cancelled = true
      },
    })
    for await (const _event of readEvents(stream)) break
    expect(cancelled).toBe(true)
  })
})
