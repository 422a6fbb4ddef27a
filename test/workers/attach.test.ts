import { evictDurableObject } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { beforeEach, describe, expect, it } from 'vitest'
import { makeExecute } from '../support/workers/bodies.ts'
import { type Frame, type PairedDevice, pairDevice } from '../support/workers/device.ts'
import { Hold, until } from '../support/workers/hold.ts'
import { type Client, makeClient, turnAs } from '../support/workers/router.ts'
import { scriptModels } from '../support/workers/scripted-models.ts'
import { watchTimers } from '../support/workers/timers.ts'

const models = scriptModels()

let client: Client
let phone: PairedDevice
beforeEach(async () => {
  client = await makeClient()
  phone = await pairDevice(client)
})

type Attached = {
  gateway_id: string
  instance_id: string
  snapshot: Frame & { sequence: number; snapshot_id: string; transcript: { content: { text: string } }[] }
}

/** A session that is listed live, after one run. */
async function liveSession(): Promise<{ id: string; envelope: Frame }> {
  const id = await client.newSession('Fix the parser')
  models.script({ text: ['Hello'] })
  await turnAs(await client.execute(id, makeExecute('hi')), 'completed')
  const { result } = await phone.device.request({ type: 'list_sessions' })
  const [row] = (result as { sessions: Frame[] }).sessions
  return { id, envelope: { session_id: id, registration_epoch: row?.registration_epoch } }
}

async function attach(envelope: Frame): Promise<Attached> {
  const { result } = await phone.device.request({ type: 'attach_session' }, envelope)
  return result as Attached
}

const textsOf = ({ snapshot }: Pick<Attached, 'snapshot'>) =>
  snapshot.transcript.map(({ content }) => content.text)
const eventOf = (frame: Frame) => (frame as { event: Frame }).event
/** All frames up to an event. */
async function framesUntil(isLast: (event: Frame) => boolean): Promise<Frame[]> {
  const frames: Frame[] = []
  for (;;) {
    const frame = await phone.device.next()
    frames.push(frame)
    if (frame.kind === 'event' && isLast(eventOf(frame))) return frames
  }
}
const isIdleSnapshot = ({ type, snapshot }: Frame) =>
  type === 'snapshot' && (snapshot as Frame).turn === undefined

describe('a device that is attached', () => {
  it('[U05] sees a run that the laptop drives from its prompt to its end, in one sequence', async () => {
    const { id, envelope } = await liveSession()
    const attached = await attach(envelope)
    expect(textsOf(attached)).toEqual(['hi', 'Hello'])
    const hold = new Hold()
    models.script({ text: ['one '], hold: hold.wait, after: ['two'] })
    const answer = client.execute(id, makeExecute('go on'))
    const before = await framesUntil(({ type }) => type === 'text_delta')
    hold.release()
    await turnAs(await answer, 'completed')
    const after = await framesUntil(isIdleSnapshot)
    const numbered = [...before, ...after].filter((frame) => eventOf(frame).type !== 'snapshot')
    expect(numbered.map((frame) => [frame.sequence, eventOf(frame).type])).toEqual(
      ['turn_started', 'text_delta', 'text_delta', 'turn_finished'].map((type, n) => [
        attached.snapshot.sequence + n + 1,
        type,
      ]),
    )
  })

  it('[U10][D07] prompts, and the session answers without any laptop', async () => {
    const { envelope } = await liveSession()
    await attach(envelope)
    models.script({ text: ['From afar'] })
    phone.device.send({
      protocol_version: 1,
      request_id: 'p1',
      ...envelope,
      operation: { type: 'submit_prompt', prompt: 'and now?' },
    })
    const frames = await framesUntil(isIdleSnapshot)
    expect(frames.filter(({ kind }) => kind === 'response')).toEqual([
      {
        kind: 'response',
        protocol_version: 1,
        request_id: 'p1',
        receipt: 'applied',
        result: { type: 'prompt_accepted', disposition: 'started' },
      },
    ])
    const { snapshot } = eventOf(frames.at(-1) ?? {}) as Attached
    expect(textsOf({ snapshot })).toEqual(['hi', 'Hello', 'and now?', 'From afar'])
  })

  it('[RF 12] resumes by its cursor after its gateway and its session went', async () => {
    const { id, envelope } = await liveSession()
    const { gateway_id, instance_id, snapshot } = await attach(envelope)
    await evictDurableObject(env.SESSION.getByName(id))
    await evictDurableObject(env.GATEWAY.getByName(client.userId))
    const { sequence: last_sequence, snapshot_id } = snapshot
    const again = await phone.device.request(
      { type: 'attach_session', resume: { gateway_id, instance_id, last_sequence, snapshot_id } },
      envelope,
    )
    expect(again.result).toEqual({
      type: 'resumed',
      gateway_id,
      instance_id,
      next_sequence: last_sequence + 1,
    })
  })

  it('[U10] steers: what was said until then stays, and the words are a message for all', async () => {
    const { id, envelope } = await liveSession()
    await attach(envelope)
    const hold = new Hold()
    models.script({ text: ['one '], hold: hold.wait, after: ['two'] })
    const answer = client.execute(id, makeExecute('go on'))
    await framesUntil(({ type }) => type === 'text_delta')
    models.script({ text: ['Other words.'] })
    phone.device.send({
      protocol_version: 1,
      request_id: 's1',
      ...envelope,
      operation: { type: 'steer', prompt: 'rather this' },
    })
    const frames = await framesUntil(isIdleSnapshot)
    hold.release()
    await answer
    expect(frames.find(({ kind }) => kind === 'response')).toMatchObject({
      result: { disposition: 'steered' },
    })
    const { snapshot } = eventOf(frames.at(-1) ?? {}) as Attached
    expect(textsOf({ snapshot }).slice(2)).toEqual(['go on', 'one ', 'rather this', 'Other words.'])
  })

  it('[D21] leaves no timer behind when a run is over: both objects can sleep', async () => {
    const { id, envelope } = await liveSession()
    await attach(envelope)
    const timers = watchTimers()
    models.script({ text: ['one ', 'two ', 'three'] })
    await turnAs(await client.execute(id, makeExecute('go on')), 'completed')
    await framesUntil(isIdleSnapshot)
    const left = timers.pending()
    await until(() => left.every(({ fate }) => fate !== 'pending'))
    expect(left.filter(({ fate }) => fate === 'rang')).toEqual([])
  })
})
