import { evictDurableObject } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { SessionEventsResponse } from '../../src/protocol/execution/events.ts'
import { RemoteEvent } from '../../src/protocol/remote/events.ts'
import { RemoteSnapshot } from '../../src/protocol/remote/snapshot.ts'
import { makeExecute } from '../support/workers/bodies.ts'
import { Hold } from '../support/workers/hold.ts'
import { type Client, type Headers, makeClient, parsed, refused } from '../support/workers/router.ts'
import { scriptModels } from '../support/workers/scripted-models.ts'

const models = scriptModels()

let client: Client
let id: string
beforeAll(async () => {
  client = await makeClient()
})
beforeEach(async () => {
  id = await client.newSession()
})

const ask = (after?: string, headers: Headers = {}) =>
  client.send(
    'GET',
    `/api/v1/sessions/${id}/events${after === undefined ? '' : `?after=${after}`}`,
    undefined,
    headers,
  )
const page = async (after?: string) => parsed(await ask(after), SessionEventsResponse)
const typesOf = ({ events }: SessionEventsResponse) => events.map(({ event }) => event.type)

async function runOnce(text = 'hello'): Promise<void> {
  models.script({ text: [text] })
  await (await client.execute(id, makeExecute('hi'))).text()
}

/** Everything behind a place, page after page, as far as it goes at once. */
async function allBehind(after: string): Promise<SessionEventsResponse[]> {
  const pages = [await page(after)]
  while (pages.at(-1)?.more) pages.push(await page(pages.at(-1)?.next_after))
  return pages
}

describe('[D38] GET …/events as JSON', () => {
  it('begins with the state, which is a snapshot of the remote protocol', async () => {
    await runOnce()
    const first = await page()
    expect(first.events).toEqual([])
    const snapshot = RemoteSnapshot.parse(first.snapshot)
    expect(snapshot.transcript.map(({ role, content }) => [role, content.text])).toEqual([
      ['user', 'hi'],
      ['assistant', 'hello'],
    ])
  })

  it('[U01] tells what came behind a place, in order, each event as the remote protocol has it', async () => {
    const { next_after } = await page()
    await runOnce()
    const pages = await allBehind(next_after)
    expect(pages.flatMap(typesOf)).toEqual(['turn_started', 'text_delta', 'turn_finished'])
    const numbers = pages.flatMap(({ events }) => events.map(({ sequence }) => sequence))
    expect(numbers).toEqual(numbers.map((_, at) => (numbers[0] ?? 0) + at))
    for (const { event } of pages.flatMap(({ events }) => events)) RemoteEvent.parse(event)
  })

  it('[U46] waits for what has not happened yet', async () => {
    const { next_after } = await page()
    const waiting = page(next_after)
    await runOnce()
    expect((await waiting).events[0]?.event).toMatchObject({ type: 'turn_started', prompt: { text: 'hi' } })
  })

  it('[U01] goes on across a restart of the session’s object', async () => {
    const { next_after } = await page()
    await runOnce()
    await evictDurableObject(env.SESSION.getByName(id))
    const [first] = await allBehind(next_after)
    expect(first?.resync).toBeUndefined()
    expect(first && typesOf(first)).toEqual(['turn_started', 'text_delta', 'turn_finished'])
  })

  it('[U01] a place that never was gets the reason, and the state', async () => {
    const answer = await page('4000')
    expect(answer).toMatchObject({ events: [], resync: 'sequence_gap', snapshot: { sequence: 0 } })
  })

  it('refuses what is no place', async () => {
    expect(await refused(await ask('yesterday'))).toMatchObject({ status: 400, code: 'invalid_request' })
  })

  it('works for a session that is not listed live', async () => {
    await client.send('PUT', `/api/v1/sessions/${id}`, { shared: false })
    const { next_after } = await page()
    await runOnce()
    expect((await allBehind(next_after)).flatMap(typesOf)).toContain('turn_finished')
  })
})

describe('[D38] GET …/events as a stream', () => {
  const EVENTS = { Accept: 'text/event-stream' }
  type Record = { id?: string; event?: string; data?: { type: string } }

  /** The records of a stream, one after the other. */
  function records(response: Response) {
    if (response.body === null) throw new Error('no stream')
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader()
    let text = ''
    const next = async (): Promise<Record> => {
      for (;;) {
        const end = text.indexOf('\n\n')
        if (end >= 0) {
          const lines = text.slice(0, end).split('\n')
          text = text.slice(end + 2)
          if (lines[0]?.startsWith(':')) continue
          const fields = Object.fromEntries(lines.map((line) => line.split(/: (.*)/s).slice(0, 2)))
          return { ...fields, ...(fields.data === undefined ? {} : { data: JSON.parse(fields.data) }) }
        }
        const { done, value } = await reader.read()
        if (done) throw new Error('the stream has ended')
        text += value
      }
    }
    /** The next record of this type; states in between replace nothing that is looked at here. */
    const nextOf = async (type: string): Promise<Record> => {
      for (;;) {
        const record = await next()
        if (record.data?.type === type) return record
        if (record.data?.type !== 'snapshot') throw new Error(`not ${type}: ${JSON.stringify(record)}`)
      }
    }
    return { next, nextOf, cancel: () => reader.cancel() }
  }

  it('tells the state and then what happens, under ids that a reconnection may name', async () => {
    const stream = records(await ask(undefined, EVENTS))
    expect((await stream.next()).data?.type).toBe('snapshot')
    const talking = new Hold()
    models.script({ text: ['one '], hold: talking.wait, after: ['two'] })
    const served = client.execute(id, makeExecute('hi'))
    const started = await stream.nextOf('turn_started')
    await talking.reached()
    // Before the turn is over.
    expect((await stream.nextOf('text_delta')).data).toMatchObject({ text: 'one ' })
    await stream.cancel()
    talking.release()
    await (await served).text()
    const back = records(await ask(undefined, { ...EVENTS, 'Last-Event-ID': started.id ?? '' }))
    const said: unknown[] = []
    for (let record = await back.next(); ; record = await back.next()) {
      if (record.data?.type === 'text_delta') said.push((record.data as { text?: string }).text)
      if (record.data?.type === 'turn_finished') break
    }
    expect(said.join('')).toBe('one two')
    await back.cancel()
  })

  it('[U46] may not be kept or held back on the way', async () => {
    const response = await ask(undefined, EVENTS)
    expect(response.headers.get('Content-Type')).toBe('text/event-stream')
    expect(response.headers.get('Cache-Control')).toBe('no-store, no-transform')
    await response.body?.cancel()
  })
})
