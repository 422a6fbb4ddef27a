import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import type { EventPush } from '../../../src/gateway/rpc.ts'
import type { RemoteEvent } from '../../../src/protocol/remote/events.ts'
import { Feed, type FeedStart } from '../../../src/session/feed.ts'
import type { Replay } from '../../../src/session/rpc.ts'
import { HeldRing } from '../../../src/storage/session/ring-segments.ts'

const resolved = (n: number): RemoteEvent => ({ type: 'question_resolved', question_id: `q${n}` })

/** A feed over a ring in memory, with a gateway that answers as it is told. */
class Rig {
  readonly store = new HeldRing()
  readonly pushes: EventPush[] = []
  readonly feed: Feed
  /** How the gateway answers; by default at once that somebody follows. */
  answer: () => Promise<{ watched: boolean }> = async () => ({ watched: true })
  stored = 0
  isFull = false
  #cuts = 0
  #reserved = 0

  constructor(start: Partial<FeedStart> = {}) {
    this.feed = new Feed(
      {
        store: this.store,
        gateway: () => ({
          pushEvents: async (_, push) => {
            this.pushes.push(push)
            return this.answer()
          },
        }),
        registration: () => ({ userId: 'u', sessionId: 's', epoch: 7 }),
        snapshot: ({ id, sequence }) => ({ id, sequence, body: `{"sequence":${sequence}}` }),
        clock: () => ({ timing: null, thoughts: null }),
        save: (work) => {
          this.stored++
          if (this.isFull) throw new Error('the storage is full')
          work()
          this.#reserved = this.feed.record.ringReserved
        },
        reserved: () => this.#reserved,
        newId: () => 'cut-fresh',
        failed: () => {},
        keepAlive: () => {},
      },
      { next: 1, reserved: 0, lost: 0, cut: { sequence: 0, id: 'cut-0' }, watched: false, ...start },
    )
  }

  /** A step with so many events. */
  step(count: number, { cut = false, ended = false } = {}): void {
    const from = this.feed.last
    this.feed.closeForStep()
    const events = Array.from({ length: count }, (_, n) => resolved(from + n + 1))
    this.feed.storeStep(events, cut ? `cut-${++this.#cuts}` : null)
    this.#reserved = this.feed.record.ringReserved
    this.feed.stepStored({ ended })
  }

  get numbers(): number[] {
    return this.pushes.flatMap(({ first, events }) => events.map((_, n) => first + n))
  }

  texts(after: number): string[] {
    const answer = this.feed.pull(after, 'cut-0')
    if (answer.k !== 'replay') throw new Error(`not replayed: ${answer.reason}`)
    return answer.replay.events.map((json) => JSON.parse(json).text)
  }
}

/** All answers to whoever begins at the start and goes on behind each. */
function pullAll(rig: Rig, snapshotId: string | null): Replay[] {
  const answers: Replay[] = []
  for (let after = 0, more = true; more; ) {
    const answer = rig.feed.pull(after, snapshotId)
    if (answer.k !== 'replay') throw new Error(`not replayed: ${answer.reason}`)
    expect(answer.replay.first).toBe(after + 1)
    answers.push(answer.replay)
    after = answer.replay.last
    more = answer.replay.more
  }
  return answers
}

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

describe('a session that nobody follows', () => {
  test('[D33] tells the gateway of nothing', async () => {
    const rig = new Rig()
    rig.step(3, { cut: true })
    rig.feed.text('hello')
    await vi.advanceTimersByTimeAsync(5000)
    expect(rig.pushes).toEqual([])
  })

  test('[D33] stores text each second, and everything else at once', async () => {
    const rig = new Rig()
    rig.feed.text('Hel')
    rig.feed.text('lo')
    expect(rig.store.extent()).toBeNull()
    await vi.advanceTimersByTimeAsync(1000)
    expect(rig.store.extent()).toMatchObject({ firstSeq: 1, lastSeq: 1 })
    rig.feed.text(' there')
    rig.step(1)
    expect(rig.store.extent()).toMatchObject({ lastSeq: 3 })
    expect(rig.texts(0).slice(0, 2)).toEqual(['Hello', ' there'])
  })
})

test('[D33] text that cannot be stored ends no turn: a snapshot stands for it', async () => {
  const rig = new Rig()
  vi.spyOn(console, 'error').mockImplementation(() => {})
  rig.step(1)
  rig.isFull = true
  rig.feed.text('lost')
  await vi.advanceTimersByTimeAsync(1000)
  rig.isFull = false
  rig.feed.text('kept')
  rig.step(1)
  expect(rig.feed.pull(1, 'cut-0')).toMatchObject({
    k: 'replay',
    replay: { events: [], snapshot: { sequence: 4, id: 'cut-fresh' } },
  })
})

describe('[D34] attaching', () => {
  test('is one cut: what was said until then is below its watermark, what follows above', async () => {
    const rig = new Rig()
    rig.feed.text('before')
    rig.feed.watch()
    const snapshot = rig.feed.attach()
    expect(snapshot.sequence).toBe(1)
    rig.feed.text('after')
    expect(rig.texts(snapshot.sequence)).toEqual(['after'])
  })

  test('answers a cursor with exactly the events behind it', () => {
    const rig = new Rig()
    rig.step(5)
    const answer = rig.feed.pull(2, 'cut-0')
    expect(answer).toMatchObject({
      k: 'replay',
      replay: { first: 3, last: 5, more: false, snapshot: null },
    })
  })

  test('with a change that no event tells, the snapshot follows the events', () => {
    const rig = new Rig()
    rig.step(2, { cut: true })
    rig.step(2)
    const answer = rig.feed.pull(1, 'cut-0')
    expect(answer).toMatchObject({
      k: 'replay',
      replay: { first: 2, last: 4, snapshot: { sequence: 4, id: 'cut-1' } },
    })
  })

  test('[D34] a snapshot that has to follow comes behind the last event, in however many answers', () => {
    const rig = new Rig()
    rig.step(1, { cut: true })
    const long = { type: 'text_delta', text: 'x'.repeat(2000) } as const
    rig.feed.storeStep(Array(1500).fill(long), null)
    const answers = pullAll(rig, 'cut-0')
    expect(answers.map(({ snapshot }) => snapshot?.sequence ?? null)).toEqual([null, null, 1501])
    expect(answers.at(-1)).toMatchObject({ last: 1501, snapshot: { id: 'cut-1' } })
  })

  test('whoever names no snapshot gets the one it lacks before that is forgotten', () => {
    const rig = new Rig()
    rig.step(1, { cut: true })
    const long = { type: 'text_delta', text: 'x'.repeat(2000) } as const
    rig.feed.storeStep(Array(1500).fill(long), null)
    expect(pullAll(rig, null)).toMatchObject([
      { first: 1, more: false, snapshot: { id: 'cut-1', sequence: 1501 } },
    ])
  })

  test('many events come in several answers', () => {
    const rig = new Rig()
    const long = { type: 'text_delta', text: 'x'.repeat(2000) } as const
    rig.feed.storeStep(Array(1500).fill(long), null)
    const answers = pullAll(rig, 'cut-0')
    expect([answers.at(-1)?.last, answers.length]).toEqual([1500, 3])
  })
})

test('[D47] what a step of a sealed session told is forgotten with the step that was not stored', () => {
  const rig = new Rig()
  rig.step(1)
  rig.feed.storeStep([resolved(2)], null)
  rig.feed.reset(1)
  rig.step(1)
  expect(rig.feed.pull(1, 'cut-fresh')).toMatchObject({ k: 'replay', replay: { first: 2, last: 2 } })
  expect(rig.store.extent()).toMatchObject({ firstSeq: 1, lastSeq: 2 })
})

describe('an object that died', () => {
  test('[D33] while it streamed: a cursor that it had stored goes on with a snapshot, a lost one is a gap', () => {
    const rig = new Rig()
    rig.step(3)
    const again = new Rig({ next: 1025, reserved: 1024, cut: { sequence: 1024, id: 'cut-0' } })
    again.store.append(rig.store.read(0))
    expect(again.feed.pull(1, 'cut-0')).toMatchObject({
      k: 'replay',
      replay: { first: 2, last: 3, snapshot: { sequence: 1024 } },
    })
    expect(again.feed.pull(3, 'cut-0')).toMatchObject({ k: 'replay', replay: { first: 4, last: 3 } })
    expect(again.feed.pull(4, 'cut-0')).toMatchObject({ k: 'resync', reason: 'sequence_gap' })
  })

  test('[D33] no number is given out before the block that it belongs to is stored', () => {
    const rig = new Rig({ next: 1024, reserved: 1024 })
    rig.feed.watch()
    rig.feed.text('a')
    expect([rig.feed.last, rig.stored]).toEqual([1024, 0])
    rig.step(0)
    rig.feed.text('b')
    expect([rig.feed.last, rig.stored, rig.feed.record.ringReserved]).toEqual([1025, 1, 2048])
  })

  test('[D34] with followers tells them where it is when it comes up', async () => {
    const rig = new Rig({ next: 6, watched: true })
    rig.feed.announce()
    await vi.runAllTimersAsync()
    expect(rig.pushes).toEqual([
      { sessionId: 's', registrationEpoch: 7, first: 6, events: [], last: 5, snapshot: expect.anything() },
    ])
  })
})

describe('[D34] followers are told', () => {
  test('of the first words at once, then of what gathers, in one call each', async () => {
    const rig = new Rig()
    rig.feed.watch()
    rig.feed.text('a')
    await vi.advanceTimersByTimeAsync(0)
    expect(rig.pushes).toHaveLength(1)
    for (const bit of ['b', 'c', 'd']) rig.feed.text(bit)
    await vi.advanceTimersByTimeAsync(74)
    expect(rig.pushes).toHaveLength(1)
    await vi.advanceTimersByTimeAsync(1)
    expect(rig.pushes.map(({ events }) => events.length)).toEqual([1, 1])
    expect(rig.texts(0)).toEqual(['a', 'bcd'])
  })

  test('by one call at a time; what happens meanwhile goes with the next', async () => {
    const rig = new Rig()
    rig.feed.watch()
    let free = (): void => {}
    rig.answer = () => new Promise((resolve) => (free = () => resolve({ watched: true })))
    rig.step(1)
    rig.step(2)
    rig.step(1, { cut: true })
    await vi.advanceTimersByTimeAsync(100)
    expect(rig.pushes).toHaveLength(1)
    free()
    await vi.advanceTimersByTimeAsync(0)
    expect(rig.numbers).toEqual([1, 2, 3, 4])
    expect(rig.pushes[1]).toMatchObject({ first: 2, last: 4, snapshot: { sequence: 4, id: 'cut-1' } })
  })

  test('once a call has failed, of where it is: what they lack is pulled', async () => {
    const rig = new Rig()
    rig.feed.watch()
    rig.answer = async () => {
      throw new Error('the network')
    }
    vi.spyOn(console, 'warn').mockImplementation(() => {})
    rig.step(2)
    await vi.advanceTimersByTimeAsync(0)
    rig.answer = async () => ({ watched: true })
    await vi.advanceTimersByTimeAsync(500)
    expect(rig.pushes.at(-1)).toMatchObject({ first: 3, events: [], last: 2 })
    rig.step(1)
    await vi.advanceTimersByTimeAsync(0)
    expect(rig.pushes.at(-1)).toMatchObject({ first: 3, last: 3, snapshot: null })
  })

  test('who waits here for a change hears of one that no event tells', () => {
    const rig = new Rig()
    const heard = vi.fn()
    const forgotten = vi.fn()
    rig.feed.onChange(heard)
    rig.feed.onChange(forgotten)()
    rig.feed.storeStep([], 'cut-9')
    rig.feed.announce()
    expect([heard.mock.calls.length, forgotten.mock.calls.length]).toEqual([1, 0])
  })

  test('a gateway that stays away is told again when the alarm rings, and the object has to wake for that', async () => {
    const rig = new Rig()
    rig.feed.watch()
    rig.answer = async () => {
      throw new Error('the network')
    }
    vi.spyOn(console, 'warn').mockImplementation(() => {})
    rig.step(1)
    await vi.advanceTimersByTimeAsync(10_000)
    const tries = rig.pushes.length
    expect(rig.feed.retryAtMs).toBeGreaterThan(Date.now())
    rig.answer = async () => ({ watched: true })
    rig.feed.announce()
    await vi.advanceTimersByTimeAsync(0)
    expect(rig.pushes.length).toBe(tries + 1)
    expect(rig.feed.retryAtMs).toBeNull()
  })

  test('no more when the gateway says that nobody follows', async () => {
    const rig = new Rig()
    rig.feed.watch()
    rig.answer = async () => ({ watched: false })
    rig.step(1)
    await vi.advanceTimersByTimeAsync(0)
    rig.step(1)
    rig.feed.text('a')
    await vi.advanceTimersByTimeAsync(2000)
    expect(rig.pushes).toHaveLength(1)
    expect(rig.feed.record.watched).toBe(false)
  })

  test('who attaches while the gateway says that nobody follows is told all the same', async () => {
    const rig = new Rig()
    rig.feed.watch()
    let free = (): void => {}
    rig.answer = () => new Promise((resolve) => (free = () => resolve({ watched: false })))
    rig.step(1)
    await vi.advanceTimersByTimeAsync(0)
    rig.feed.watch()
    rig.answer = async () => ({ watched: true })
    free()
    rig.step(1)
    await vi.advanceTimersByTimeAsync(0)
    expect(rig.numbers).toEqual([1, 2])
    expect(rig.feed.record.watched).toBe(true)
  })

  test('a gateway that hangs is given up after 30 s, and holds up nothing', async () => {
    const rig = new Rig()
    rig.feed.watch()
    rig.answer = () => new Promise(() => {})
    rig.step(1)
    await vi.advanceTimersByTimeAsync(30_000)
    rig.answer = async () => ({ watched: true })
    rig.step(1)
    await vi.advanceTimersByTimeAsync(0)
    expect(rig.pushes).toHaveLength(2)
  })
})
