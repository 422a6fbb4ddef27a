import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { type EventFeed, eventPage, eventStream, IDLE_MS } from '../../../src/session/event-stream.ts'
import type { HeldSnapshot } from '../../../src/session/rpc.ts'

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

/** A feed that holds the events from `floor` on, each `{"n":<its number>}`. */
class PlainFeed implements EventFeed {
  last = 0
  floor = 0
  cut = { sequence: 0, id: 'c0' }
  #waiting: (() => void)[] = []

  attach(): HeldSnapshot {
    return { id: this.cut.id, sequence: this.last, body: `{"sequence":${this.last}}` }
  }

  onChange(call: () => void): () => void {
    this.#waiting.push(call)
    return () => {
      this.#waiting = this.#waiting.filter((other) => other !== call)
    }
  }

  pull(after: number, snapshotId: string | null): ReturnType<EventFeed['pull']> {
    const snapshot = this.attach()
    if (after > this.last) return { k: 'resync', reason: 'sequence_gap', snapshot }
    if (after < this.floor) return { k: 'resync', reason: 'lagged', snapshot }
    if (after === this.cut.sequence && snapshotId !== this.cut.id)
      return { k: 'resync', reason: 'sequence_gap', snapshot }
    const events = Array.from({ length: this.last - after }, (_, at) => `{"n":${after + at + 1}}`)
    const isCut = this.cut.sequence > after
    const replay = {
      first: after + 1,
      events,
      last: this.last,
      more: false,
      snapshot: isCut ? snapshot : null,
    }
    return { k: 'replay', replay }
  }

  /** So many events happen; `cut` names a change that none of them tells. */
  happen(count: number, cut?: string): void {
    this.last += count
    if (cut !== undefined) this.cut = { sequence: this.last, id: cut }
    for (const wake of this.#waiting.splice(0)) wake()
  }
}

const at = (after: number, snapshotId: string | null = null) => ({ after, snapshotId })

describe('[D38] a page of events', () => {
  const page = async (feed: PlainFeed, cursor: Parameters<typeof eventPage>[1]) =>
    JSON.parse(await eventPage(feed, cursor, 25_000))

  test('without a place is the state, and where to go on', async () => {
    const feed = new PlainFeed()
    feed.happen(3, 'c1')
    expect(await page(feed, null)).toEqual({ events: [], next_after: '3.c1', snapshot: { sequence: 3 } })
  })

  test('comes at once when something has happened', async () => {
    const feed = new PlainFeed()
    feed.happen(3)
    expect(await page(feed, at(1))).toEqual({
      events: [
        { sequence: 2, event: { n: 2 } },
        { sequence: 3, event: { n: 3 } },
      ],
      next_after: '3',
    })
  })

  test('[U46] is waited for, and comes with the first thing that happens', async () => {
    const feed = new PlainFeed()
    const asked = page(feed, at(0, 'c0'))
    await vi.advanceTimersByTimeAsync(20_000)
    feed.happen(1)
    expect(await asked).toEqual({ events: [{ sequence: 1, event: { n: 1 } }], next_after: '1.c0' })
    expect(vi.getTimerCount()).toBe(0)
  })

  test('is empty after the wait, at the same place', async () => {
    const feed = new PlainFeed()
    const asked = page(feed, at(0, 'c0'))
    await vi.advanceTimersByTimeAsync(25_000)
    expect(await asked).toEqual({ events: [], next_after: '0.c0' })
  })

  test('[RF 13] ends with the state where something happened that no event tells', async () => {
    const feed = new PlainFeed()
    feed.happen(2, 'c1')
    expect(await page(feed, at(1))).toMatchObject({
      events: [{ sequence: 2 }],
      next_after: '2.c1',
      snapshot: { sequence: 2 },
    })
  })

  test('[U01] that is not held any more says why, and brings the state', async () => {
    const feed = new PlainFeed()
    feed.happen(9)
    feed.floor = 5
    expect(await page(feed, at(1))).toEqual({
      events: [],
      next_after: '9.c0',
      resync: 'lagged',
      snapshot: { sequence: 9 },
    })
  })

  test('[U01] a changed state is no loss for whoever has every event', async () => {
    const feed = new PlainFeed()
    feed.happen(2, 'c1')
    feed.happen(0, 'c2')
    expect(await page(feed, at(2, 'c1'))).toEqual({
      events: [],
      next_after: '2.c2',
      snapshot: { sequence: 2 },
    })
  })
})

describe('[D38] a stream of events', () => {
  const open = (feed: PlainFeed, cursor: Parameters<typeof eventStream>[1], isThere = () => true) => {
    const reader = eventStream(feed, cursor, isThere).getReader()
    const decoder = new TextDecoder()
    const next = async () => {
      const { done, value } = await reader.read()
      return done ? 'end' : decoder.decode(value)
    }
    return { reader, next }
  }

  test('begins with the state, under an id that a reconnection names', async () => {
    const feed = new PlainFeed()
    feed.happen(3, 'c1')
    const { next } = open(feed, null)
    expect(await next()).toBe('id: 3.c1\ndata: {"type":"snapshot","snapshot":{"sequence":3}}\n\n')
  })

  test('tells each event once, under its number', async () => {
    const feed = new PlainFeed()
    feed.happen(2)
    const { next } = open(feed, at(1))
    expect(await next()).toBe('id: 2\ndata: {"n":2}\n\n')
    const later = next()
    feed.happen(2)
    expect(await later).toBe('id: 3\ndata: {"n":3}\n\nid: 4\ndata: {"n":4}\n\n')
  })

  test('[U01] says first that something is missing', async () => {
    const feed = new PlainFeed()
    const { next } = open(feed, at(7))
    expect(await next()).toBe(
      'event: resync\ndata: {"type":"resync_required","reason":"sequence_gap"}\n\n' +
        'id: 0.c0\ndata: {"type":"snapshot","snapshot":{"sequence":0}}\n\n',
    )
  })

  test('breaks the silence for proxies, and ends after five minutes of it', async () => {
    const feed = new PlainFeed()
    const { next } = open(feed, at(0, 'c0'))
    let silences = 0
    for (;;) {
      const piece = next()
      await vi.advanceTimersByTimeAsync(15_000)
      const text = await piece
      if (text !== ': keep-alive\n\n') {
        expect(text).toBe('retry: 15000\n\n')
        break
      }
      silences++
    }
    expect(silences).toBe(IDLE_MS / 15_000)
    expect(await next()).toBe('end')
    expect(vi.getTimerCount()).toBe(0)
  })

  test('an event starts the five minutes anew', async () => {
    const feed = new PlainFeed()
    const { next } = open(feed, at(0, 'c0'))
    for (let waited = 0; waited < IDLE_MS - 15_000; waited += 15_000) {
      const piece = next()
      await vi.advanceTimersByTimeAsync(15_000)
      await piece
    }
    feed.happen(1)
    expect(await next()).toContain('id: 1\n')
    const piece = next()
    await vi.advanceTimersByTimeAsync(15_000)
    expect(await piece).toBe(': keep-alive\n\n')
  })

  test('ends with the session', async () => {
    const feed = new PlainFeed()
    let isThere = true
    const { next } = open(feed, at(0, 'c0'), () => isThere)
    const piece = next()
    await vi.advanceTimersByTimeAsync(1)
    isThere = false
    feed.happen(0)
    expect(await piece).toBe('end')
  })

  test('[D21] a reader that leaves leaves no timer behind', async () => {
    const feed = new PlainFeed()
    const { reader, next } = open(feed, at(0, 'c0'))
    void next()
    await vi.advanceTimersByTimeAsync(1)
    await reader.cancel()
    await vi.advanceTimersByTimeAsync(0)
    expect(vi.getTimerCount()).toBe(0)
  })
})
