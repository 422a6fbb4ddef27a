import { exports } from 'cloudflare:workers'
import { beforeAll, describe, expect, it, vi } from 'vitest'
import type { TurnEvent } from '../../src/protocol/execution/stream.ts'
import { RunResponse } from '../../src/protocol/execution/turn.ts'
import { MAX_PIECE_UNITS } from '../../src/session/turn-channel.ts'
import { makeExecute } from '../support/workers/bodies.ts'
import { Hold, until } from '../support/workers/hold.ts'
import { type Client, makeClient, makeRequest, parsed } from '../support/workers/router.ts'
import { type Reply, scriptModels } from '../support/workers/scripted-models.ts'
import { transcriptOf } from '../support/workers/session-object.ts'
import { endOf, type Frame, STREAM, TurnStream, textOf } from '../support/workers/turn-stream.ts'

const models = scriptModels()

let client: Client
beforeAll(async () => {
  client = await makeClient()
})

const BEFORE = ['one ', 'two ', 'three ']
const AFTER = ['four ', 'five']
const READ = (path: string) => ({ name: 'read_file', arguments: { path } })

/** Turns that end in each of the ways in which a client may miss it. */
const TURNS: Record<string, { reply: Reply; after: string[]; events: number }> = {
  completed: { reply: {}, after: AFTER, events: 7 },
  awaiting_tool: { reply: { calls: [READ('a'), READ('b')] }, after: AFTER, events: 10 },
  // The connection to the model breaks where the others go on.
  error: { reply: { ending: 'break' }, after: [], events: 4 },
}

const show = async (id: string) => parsed(await client.run(id), RunResponse)
const attach = async (id: string, last: Frame | undefined) =>
  new TurnStream(
    await client.run(id, { ...STREAM, ...(last === undefined ? {} : { 'Last-Event-ID': last.id }) }),
  )
const eventsIn = (frames: readonly Frame[]): TurnEvent[] => frames.map(({ event }) => event)
const placesOf = (frames: readonly Frame[]): number[] => frames.map(({ id }) => Number(id.split('.').at(-1)))
const upTo = (count: number): number[] => Array.from({ length: count }, (_, index) => index + 1)
const over = async (id: string): Promise<void> => until(async () => (await show(id)).status !== 'running')

/** Reads so many events, then goes away. */
async function take(stream: TurnStream, count: number, onHalf: () => void): Promise<Frame[]> {
  const frames: Frame[] = []
  while (frames.length < count) {
    // What stands behind the hold comes only when it is released.
    if (frames.length === BEFORE.length) onHalf()
    const frame = await stream.next()
    if (frame === null) break
    frames.push(frame)
  }
  await stream.cancel()
  return frames
}

describe.each(Object.entries(TURNS))('a turn that ends as %s', (status, { reply, after, events }) => {
  const words = [...BEFORE, ...after].join('')
  const begin = async () => {
    const id = await client.newSession()
    const hold = new Hold()
    models.script({ ...reply, text: BEFORE, hold: hold.wait, after })
    const stream = new TurnStream(await client.execute(id, makeExecute('hi'), STREAM))
    return { id, hold, stream }
  }

  it.each(upTo(events + 1).map((n) => n - 1))(
    '[D19][U01] whose client is gone after %i events gives it the others, each once, whenever it comes back',
    async (cut) => {
      const { id, hold, stream } = await begin()
      await hold.reached()
      const witness = (await attach(id, undefined)).rest()
      const seen = await take(stream, cut, () => hold.release())
      // By turns it comes back while the turn is served, and when it is over.
      const whileServed = cut <= BEFORE.length && cut % 2 === 0
      if (!whileServed) {
        hold.release()
        await over(id)
      }
      const back = await attach(id, seen.at(-1))
      const again = await attach(id, seen.at(-1))
      if (whileServed) hold.release()
      const [rest, same, whole] = await Promise.all([back.rest(), again.rest(), witness])
      expect(placesOf(whole)).toEqual(upTo(events))
      // Who has seen the end gets it once more: a stream always ends with it.
      const missed = whole.slice(Math.min(cut, events - 1))
      expect(rest).toEqual(missed)
      expect(same).toEqual(missed)
      expect([...seen.slice(0, events - 1), ...missed.slice(cut < events ? 0 : -1)]).toEqual(whole)
      expect(textOf(eventsIn(whole))).toBe(words)
      expect(endOf(eventsIn(whole)).status).toBe(status)
      expect(models.chats).toHaveLength(1)
      expect((await transcriptOf(id)).map(({ text }) => text)).toEqual(['hi', words])
    },
  )

  it('[D19] that nobody followed is told whole to who comes late, and its envelope is the one of its end', async () => {
    const { id, hold, stream } = await begin()
    await stream.cancel()
    hold.release()
    await over(id)
    const whole = eventsIn(await (await attach(id, undefined)).rest())
    expect(textOf(whole)).toBe(words)
    const { type: _, ...envelope } = endOf(whole)
    expect(await show(id)).toEqual(envelope)
  })

  it('[U02] whose client comes and goes all the time is served once and told once', async () => {
    const { id, hold, stream } = await begin()
    await stream.cancel()
    const seen: Frame[] = []
    for (let visit = 0; endsNot(seen); visit++) {
      if (seen.length === BEFORE.length) hold.release()
      // Every other visit ends before anything was read.
      const visitor = await attach(id, seen.at(-1))
      if (visit % 2 === 0) await visitor.cancel()
      else seen.push(...(await take(visitor, 1, () => {})))
    }
    expect(placesOf(seen)).toEqual(upTo(events))
    expect(textOf(eventsIn(seen))).toBe(words)
    expect(models.chats).toHaveLength(1)
  })

  // A connection that breaks before the first words is another ending: then somebody else is asked.
  const moments = [
    'the model was asked',
    ...(status === 'error' ? [] : ['the first words']),
    'the last words',
  ]
  it.each(moments)(
    '[U27] whose buffered caller hangs up before %s ends as if he were there',
    async (moment) => {
      const id = await client.newSession()
      const hold = new Hold()
      const spoken =
        moment === 'the last words'
          ? { text: BEFORE, hold: hold.wait, after }
          : { text: [], after: [...BEFORE, ...after], hold: hold.wait }
      if (moment === 'the model was asked') {
        models.script(async () => {
          await hold.wait()
          return { ...reply, text: [...BEFORE, ...after] }
        })
      } else models.script({ ...reply, ...spoken })
      const caller = new AbortController()
      const request = makeRequest('POST', `/api/v1/sessions/${id}/execute`, makeExecute('hi'), {
        Authorization: `Bearer ${client.token}`,
      })
      const gone = exports.default.fetch(new Request(request, { signal: caller.signal }))
      await hold.reached()
      caller.abort()
      await expect(gone).rejects.toThrow()
      expect((await show(id)).status).toBe('running')
      hold.release()
      await over(id)
      expect(await show(id)).toMatchObject({ status })
      expect(models.chats).toHaveLength(1)
      expect((await transcriptOf(id)).map(({ text }) => text)).toEqual(['hi', words])
    },
  )
})

const endsNot = (seen: readonly Frame[]): boolean => seen.at(-1)?.event.type !== 'turn_end'

describe('[U12] answers that nobody reads', () => {
  const PIECE = 'x'.repeat(100_000)

  it('have a few pieces put aside on their way, however much is said, and the turn ends', async () => {
    const id = await client.newSession()
    let bytes = 0
    const enqueue = ReadableByteStreamController.prototype.enqueue
    vi.spyOn(ReadableByteStreamController.prototype, 'enqueue').mockImplementation(function (
      this: ReadableByteStreamController,
      piece: ArrayBuffer | ArrayBufferView,
    ) {
      bytes += piece.byteLength
      return Reflect.apply(enqueue, this, [piece])
    })
    models.script({ text: Array.from({ length: 15 }, () => PIECE) })
    const unread = [await client.execute(id, makeExecute('hi'), STREAM), await client.run(id, STREAM)]
    await over(id)
    expect(bytes).toBeLessThanOrEqual(unread.length * 4 * MAX_PIECE_UNITS)
    // A positive control: one that is read takes the whole way.
    const read = await (await client.run(id, STREAM)).text()
    expect(read.length).toBeGreaterThan(15 * PIECE.length)
    expect(bytes).toBeGreaterThan(15 * PIECE.length)
    for (const response of unread) await response.body?.cancel()
  })
})
