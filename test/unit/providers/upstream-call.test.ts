import { describe, expect, it, vi } from 'vitest'
import { readNdjson } from '../../../src/providers/ndjson.ts'
import { MalformedAnswer, UpstreamCall } from '../../../src/providers/upstream-call.ts'
import { scriptedFetch } from '../../support/node/scripted-upstream.ts'

const open = (fetch: typeof globalThis.fetch, signal = new AbortController().signal) =>
  new UpstreamCall({ fetch, signal, totalMs: 10_000, redaction: { texts: [], names: [] } })

describe('one upstream call', () => {
  it('an answer that never ends is cut before it fills the memory', async () => {
    const piece = new Uint8Array(1024 * 1024)
    let sent = 0
    const endless = new ReadableStream<Uint8Array>({
      pull: (controller) => {
        sent += 1
        controller.enqueue(piece)
      },
    })
    const call = open(async () => new Response(endless))
    const reading = call.fetch('http://lab.internal/').then((response) => response.arrayBuffer())
    const error = await reading.catch((thrown) => thrown)
    expect(call.failureOf(error)).toEqual({
      category: 'unknown',
      message: 'the provider failed: the answer is too large',
    })
    expect(sent).toBeLessThan(40)
    call.end()
  })

  it('an abort is felt at once, even where the fetch itself is deaf to it', async () => {
    const controller = new AbortController()
    const call = open(() => new Promise(() => {}), controller.signal)
    const sending = call.fetch('http://lab.internal/').catch((thrown) => thrown)
    controller.abort()
    expect(call.failureOf(await sending)).toMatchObject({ aborted: true })
    call.end()
  })

  it('the first reason stands: an abort after a broken connection does not hide it', async () => {
    const controller = new AbortController()
    const call = open(() => Promise.reject(new TypeError('fetch failed')), controller.signal)
    const error = await call.fetch('http://lab.internal/').catch((thrown) => thrown)
    controller.abort()
    expect(call.failureOf(error)).toEqual({
      category: 'provider_unavailable',
      message: 'the provider is not available: it cannot be reached',
    })
    call.end()
  })

  it('a fault of our own is not blamed on the provider', () => {
    const call = open(scriptedFetch({}).fetch)
    expect(() => call.failureOf(new TypeError('x is not a function'))).toThrow('x is not a function')
    expect(call.failureOf(new MalformedAnswer('odd'))).toEqual({
      category: 'unknown',
      message: 'the provider failed: odd',
    })
    call.end()
  })

  it('an endless error body is read only at its start', async () => {
    const endless = new ReadableStream<Uint8Array>({
      pull: (controller) => controller.enqueue(new TextEncoder().encode('x'.repeat(1024))),
    })
    const call = open(async () => new Response(endless, { status: 503 }))
    const error = await call.fetch('http://lab.internal/').catch((thrown) => thrown)
    expect(call.failureOf(error)).toEqual({
      category: 'provider_unavailable',
      message: 'the provider is not available (HTTP 503)',
      status: 503,
    })
    call.end()
  })
})

describe('newline-delimited JSON', () => {
  const read = async (body: string, chunkBytes: number) => {
    const response = await scriptedFetch({ body, chunkBytes }).fetch('http://lab.internal/')
    const values: unknown[] = []
    if (response.body !== null) for await (const value of readNdjson(response.body)) values.push(value)
    return values
  }

  it('is the same however it is split; blank lines and a missing last newline do not matter', async () => {
    const body = '{"a":"ä🚂"}\r\n\n  \n{"b":[1,\t2]}\n"last 行"'
    const bytes = new TextEncoder().encode(body).length
    for (let chunkBytes = 1; chunkBytes <= bytes; chunkBytes += 1) {
      expect(await read(body, chunkBytes)).toEqual([{ a: 'ä🚂' }, { b: [1, 2] }, 'last 行'])
    }
  })

  it('a long line in thousands of pieces is put together once', async () => {
    const joins = vi.spyOn(Array.prototype, 'join')
    const text = 'x'.repeat(1_000_000)
    expect(await read(`"${text}"\n`, 256)).toEqual([text])
    const long = joins.mock.results.filter(({ value }) => String(value).length > 1_000)
    joins.mockRestore()
    expect(long).toHaveLength(1)
  })

  it('a line that is no JSON is an error that does not quote it', async () => {
    const error = await read('{"a":1}\n{secret}\n', 4).catch((thrown) => thrown)
    expect(error).toBeInstanceOf(MalformedAnswer)
    expect(error.message).not.toContain('secret')
  })
})
