import fc from 'fast-check'
import { afterEach, describe, expect, test, vi } from 'vitest'
import type { TurnEvent } from '../../../src/protocol/execution/stream.ts'
import type { TurnResponse } from '../../../src/protocol/execution/turn.ts'
import {
  END_ONLY,
  MAX_HELD_UNITS,
  MAX_PIECE_UNITS,
  MAX_RETIRED_UNITS,
  TurnChannel,
} from '../../../src/session/turn-channel.ts'

const KIB = 1024
const MIB = 1024 * 1024
/** A unit takes three bytes in UTF-8 at most. */
const MAX_PIECE_BYTES = 3 * MAX_PIECE_UNITS

const says = (delta: string): TurnEvent => ({ type: 'text_delta', delta })
const ends = (): { k: 'outcome'; outcome: TurnResponse } => ({
  k: 'outcome',
  outcome: { status: 'idle', data: { trace_id: 'trace:1' } },
})

type Record = { n: number; type: string; delta?: string }

/** Reads at most so many pieces, then goes away; null: to the end. */
async function read(stream: ReadableStream<Uint8Array>, pieces: number | null = null): Promise<string> {
  const reader = stream.getReader()
  const decoder = new TextDecoder('utf-8', { fatal: true })
  let text = ''
  for (let n = 0; pieces === null || n < pieces; n++) {
    const { done, value } = await reader.read()
    if (done) return text + decoder.decode()
    expect(value.byteLength).toBeLessThanOrEqual(MAX_PIECE_BYTES)
    text += decoder.decode(value, { stream: true })
  }
  await reader.cancel()
  return text
}

/** Whole events of what was read: the last may be cut off. */
const recordsOf = (text: string): Record[] =>
  text
    .split('\n\n')
    .slice(0, -1)
    .flatMap((record) => {
      const match = /^id: t\.(\d+)\ndata: (.*)$/.exec(record)
      if (match?.[2] === undefined) throw new Error(`not a record: ${record.slice(0, 100)}`)
      return [{ ...JSON.parse(match[2]), n: Number(match[1]) }]
    })

const numbers = (records: readonly Record[]): number[] => records.map(({ n }) => n)
const upTo = (count: number): number[] => Array.from({ length: count }, (_, index) => index + 1)

afterEach(() => {
  vi.restoreAllMocks()
  vi.useRealTimers()
})

describe('[D19][U01] a reader that comes and goes', () => {
  test('at any place, before and after the end, reads every event once and in order', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.string({ maxLength: 40, unit: 'grapheme' }), { minLength: 1, maxLength: 12 }),
        fc.array(fc.nat({ max: 14 }), { minLength: 1, maxLength: 5 }),
        fc.nat({ max: 12 }),
        async (deltas, cuts, saidBefore) => {
          const channel = new TurnChannel('t')
          const before = Math.min(saidBefore, deltas.length)
          for (const delta of deltas.slice(0, before)) channel.push(says(delta))
          let said = before
          const seen: Record[] = []
          for (const [index, cut] of cuts.entries()) {
            // A connection breaks in the middle of what was sent: the reader knows the last whole event.
            const wanted = cut - seen.length
            const stream = channel.read(seen.at(-1)?.n ?? 0)
            if (wanted > 0 && said > seen.length) {
              seen.push(...recordsOf(await read(stream, 1)).slice(0, wanted))
            } else await stream.cancel()
            if (index > 0) continue
            for (const delta of deltas.slice(before)) channel.push(says(delta))
            said = deltas.length
          }
          channel.end(ends())
          seen.push(...recordsOf(await read(channel.read(seen.at(-1)?.n ?? 0))))
          expect(numbers(seen)).toEqual(upTo(deltas.length + 1))
          expect(seen.flatMap(({ delta }) => delta ?? [])).toEqual(deltas)
          expect(seen.at(-1)?.type).toBe('turn_end')
        },
      ),
      { seed: 11, numRuns: 150 },
    )
  })

  test('[U04] two of them, each at its own pace, see the same events under the same ids', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.string({ maxLength: 20 }), { minLength: 1, maxLength: 10 }),
        fc.nat({ max: 10 }),
        fc.nat({ max: 10 }),
        async (deltas, a, b) => {
          const channel = new TurnChannel('t')
          const comeAt = (place: number) => read(channel.read(Math.min(place, deltas.length)))
          const early = comeAt(0)
          for (const delta of deltas) channel.push(says(delta))
          const readers = [early, comeAt(a), comeAt(b)]
          channel.end(ends())
          const all = upTo(deltas.length + 1)
          const [whole = [], fromA = [], fromB = []] = await Promise.all(
            readers.map(async (text) => numbers(recordsOf(await text))),
          )
          expect(whole).toEqual(all)
          expect(fromA).toEqual(all.slice(Math.min(a, deltas.length)))
          expect(fromB).toEqual(all.slice(Math.min(b, deltas.length)))
        },
      ),
      { seed: 12, numRuns: 100 },
    )
  })

  test('after the last event gets that end once more: a stream always ends with it', async () => {
    const channel = new TurnChannel('t')
    channel.push(says('a'))
    channel.end(ends())
    for (const from of [2, 2, END_ONLY]) {
      expect(recordsOf(await read(channel.read(from))).map(({ n, type }) => [n, type])).toEqual([
        [2, 'turn_end'],
      ])
    }
  })
})

describe('[U12] a slow reader', () => {
  /** Bytes that were put into queues of streams, where they wait for whoever does not read. */
  const watchQueues = () => {
    let bytes = 0
    const enqueue = ReadableByteStreamController.prototype.enqueue
    vi.spyOn(ReadableByteStreamController.prototype, 'enqueue').mockImplementation(function (
      this: ReadableByteStreamController,
      piece: ArrayBufferView,
    ) {
      bytes += piece.byteLength
      enqueue.call(this, piece)
    })
    return () => bytes
  }

  const speak = (channel: TurnChannel, bytes: number) => {
    for (let said = 0; said < bytes; said += 32 * KIB) channel.push(says('x'.repeat(32 * KIB)))
  }

  test('that never reads has nothing put aside for it, and the turn keeps its 4 MiB and no more', async () => {
    const queued = watchQueues()
    const channel = new TurnChannel('t')
    const streams = [channel.read(0), channel.read(0)]
    speak(channel, 64 * MIB)
    await new Promise((resolve) => setImmediate(resolve))
    expect(queued()).toBe(0)
    expect(channel.heldUnits).toBeLessThanOrEqual(MAX_HELD_UNITS)
    for (const stream of streams) await stream.cancel()
  })

  test('that reads one piece has one piece, however much waits; two of them have two', async () => {
    const queued = watchQueues()
    const channel = new TurnChannel('t')
    speak(channel, 3 * MIB)
    const readers = [channel.read(0).getReader(), channel.read(0).getReader()]
    for (const reader of readers) await reader.read()
    speak(channel, 64 * MIB)
    await new Promise((resolve) => setImmediate(resolve))
    expect(queued()).toBeGreaterThan(0)
    expect(queued()).toBeLessThanOrEqual(2 * MAX_PIECE_BYTES)
    expect(channel.heldUnits).toBeLessThanOrEqual(MAX_HELD_UNITS)
    for (const reader of readers) await reader.cancel()
  })

  test('that fell behind gets the end alone, and one that kept up everything', async () => {
    const channel = new TurnChannel('t')
    const slow = channel.read(0)
    const quick = channel.read(0).getReader()
    let text = ''
    for (let n = 1; n <= 100; n++) {
      channel.push(says('x'.repeat(64 * KIB)))
      do text += new TextDecoder().decode((await quick.read()).value)
      while (!text.endsWith('\n\n'))
    }
    channel.end(ends())
    quick.releaseLock()
    expect(numbers(recordsOf(text))).toEqual(upTo(100))
    expect(recordsOf(await read(slow)).map(({ n, type }) => [n, type])).toEqual([[101, 'turn_end']])
  })

  test('gets a long event in pieces, none of which splits a character', async () => {
    const channel = new TurnChannel('t')
    const text = `a${'🚂'.repeat(200 * KIB)}`
    channel.push(says(text))
    channel.end(ends())
    expect(recordsOf(await read(channel.read(0)))[0]?.delta === text).toBe(true)
  })

  test('of a turn that another one followed holds a quarter of a MiB of it, and its end', async () => {
    const channel = new TurnChannel('t')
    const slow = channel.read(0)
    speak(channel, 4 * MIB)
    channel.end(ends())
    expect(channel.heldUnits).toBeGreaterThan(3 * MIB)
    channel.retire()
    expect(channel.heldUnits).toBeLessThanOrEqual(MAX_RETIRED_UNITS)
    expect(recordsOf(await read(slow)).map(({ type }) => type)).toEqual(['turn_end'])
  })

  test('of such a turn that is not far behind misses nothing', async () => {
    const channel = new TurnChannel('t')
    const reader = read(channel.read(0))
    speak(channel, MAX_RETIRED_UNITS / 2)
    channel.end(ends())
    channel.retire()
    expect(numbers(recordsOf(await reader))).toEqual(upTo(MAX_RETIRED_UNITS / 2 / (32 * KIB) + 1))
  })
})
