import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { SwitchyardClient } from '../../../src/client/client.ts'
import { RemoteFollower, type RemoteNews } from '../../../src/client/remote-follower.ts'
import { GATEWAY_ID, ScriptedGateway } from '../../support/node/scripted-gateway.ts'
import { type ScriptedRouter, startScriptedRouter } from '../../support/node/scripted-router.ts'
import { SESSION } from '../../support/node/scripted-router-turns.ts'

let router: ScriptedRouter
let gateway: ScriptedGateway
let follower: RemoteFollower
let news: RemoteNews[]
let wake: (() => void)[]

beforeEach(async () => {
  router = await startScriptedRouter()
  gateway = new ScriptedGateway(router)
  news = []
  wake = []
  const client = new SwitchyardClient({ baseUrl: router.url, token: 'tok' })
  follower = new RemoteFollower({
    sessionId: SESSION,
    connect: (how) => client.gatewaySocket(how),
    waits: { firstMs: 1, maxMs: 1 },
  })
  follower.onNews((told) => {
    news.push(told)
    for (const resolve of wake.splice(0)) resolve()
  })
})
afterEach(async () => {
  await follower.close()
  await router.close()
})

/** Resolves when so much has been told. */
async function told(count: number): Promise<string[]> {
  while (news.length < count) await new Promise<void>((resolve) => wake.push(resolve))
  return news.map((one) =>
    one.k === 'snapshot'
      ? `state ${one.snapshot.sequence}`
      : 'text' in one.event
        ? one.event.text
        : one.event.type,
  )
}

const said = (text: string) => ({ type: 'text_delta', text }) as const
const attachings = () =>
  gateway.asked
    .map(({ operation }) => operation as { type: string; resume?: unknown })
    .filter(({ type }) => type === 'attach_session')

async function follow(): Promise<void> {
  follower.start()
  await gateway.attached()
}

describe('following a session', () => {
  test('[D38] needs the token and no handshake, and tells the state and then what happens', async () => {
    await follow()
    expect(gateway.upgrades[0]?.authorization).toBe('Bearer tok')
    gateway.tell(said('one'))
    gateway.tell(said('two'))
    expect(await told(3)).toEqual(['state 10', 'one', 'two'])
    expect(gateway.asked.map(({ operation }) => (operation as { type: string }).type)).toEqual([
      'subscribe_sessions',
      'attach_session',
    ])
  })

  test('[U01] a lost connection is resumed behind the last event, and nothing is told twice', async () => {
    await follow()
    gateway.tell(said('one'))
    await told(2)
    gateway.drop()
    gateway.tell(said('two'))
    await gateway.attached()
    expect(await told(3)).toEqual(['state 10', 'one', 'two'])
    expect(attachings().at(-1)?.resume).toEqual({
      gateway_id: GATEWAY_ID,
      last_sequence: 11,
      snapshot_id: 's10',
    })
  })

  test('[U01] what cannot be resumed is told as the whole state', async () => {
    await follow()
    await told(1)
    gateway.resync = 'lagged'
    gateway.drop()
    gateway.tell(said('lost'))
    await gateway.attached()
    expect(await told(2)).toEqual(['state 10', 'state 11'])
  })

  test('a state that replaces the one before gives the cursor its id', async () => {
    await follow()
    await told(1)
    gateway.replace('another')
    await told(2)
    gateway.drop()
    await gateway.attached()
    expect(attachings().at(-1)?.resume).toMatchObject({ last_sequence: 10, snapshot_id: 'another' })
  })

  test('[D03] begins when the session is listed, and again when it is listed anew', async () => {
    gateway.listed = false
    follower.start()
    while (gateway.asked.length === 0) await new Promise((resolve) => setImmediate(resolve))
    expect(attachings()).toHaveLength(0)
    gateway.listed = true
    gateway.list()
    await gateway.attached()
    await told(1)
    gateway.close()
    gateway.listed = true
    gateway.list()
    await gateway.attached()
    gateway.tell(said('again'))
    expect((await told(2)).at(-1)).toBe('again')
    expect(attachings()).toHaveLength(2)
  })

  test('an event of an unknown type is not told, and the next one is no gap', async () => {
    await follow()
    gateway.tell({ type: 'from_the_future' } as never)
    gateway.tell(said('known'))
    expect(await told(2)).toEqual(['state 10', 'known'])
    expect(attachings()).toHaveLength(1)
  })

  test('[U02] a gateway that is not there fails nothing: it is tried again', async () => {
    const serve = router.upgraded
    router.upgraded = undefined
    router.script('GET', '/api/v1/auth/me', (response) => {
      router.upgraded = serve
      response.writeHead(200, { 'Content-Type': 'application/json' })
      response.end(JSON.stringify({ user_id: SESSION }))
    })
    await follow()
    expect(await told(1)).toEqual(['state 10'])
  })

  test('[D35] what it has read it acknowledges every 512 KiB, and the rest when nothing more comes', async () => {
    gateway.capabilities = ['flow_ack', 'from_the_future']
    await follow()
    for (let n = 0; n < 5; n++) gateway.tell(said('é'.repeat(100 * 1024)))
    await told(6)
    await gateway.allRead()
    expect(gateway.acknowledged).toHaveLength(2)
    const [first = 0] = gateway.acknowledged
    expect(first).toBeGreaterThan(512 * 1024)
    expect(first).toBeLessThan(gateway.sentBytes)
    gateway.tell(said('a little'))
    await gateway.allRead()
    expect(gateway.acknowledged).toHaveLength(3)
  })

  test('[D35] on each connection it counts anew', async () => {
    gateway.capabilities = ['flow_ack']
    await follow()
    gateway.tell(said('x'.repeat(600 * 1024)))
    await told(2)
    gateway.drop()
    await gateway.attached()
    gateway.tell(said('one'))
    await told(3)
    await gateway.allRead()
    expect(gateway.sentBytes).toBeLessThan(10 * 1024)
  })

  test('[D35] to a gateway that does not say that it understands acknowledgements it sends none', async () => {
    await follow()
    gateway.tell(said('x'.repeat(600 * 1024)))
    gateway.tell(said('one'))
    await told(3)
    gateway.drop()
    // What was sent on the connection has arrived by then.
    await gateway.attached()
    expect(gateway.acknowledged).toEqual([])
  })

  describe('whether devices can be reached', () => {
    const { signal } = new AbortController()

    test('is known when the session is followed', async () => {
      follower.start()
      expect(await follower.reached(signal)).toBe(true)
      expect(await follower.reached(signal)).toBe(true)
    })

    test('is denied when the gateway is not there', async () => {
      router.upgraded = undefined
      follower.start()
      expect(await follower.reached(signal)).toBe(false)
    })

    test('is denied when nobody waits for it any more', async () => {
      gateway.listed = false
      follower.start()
      const stop = new AbortController()
      const reached = follower.reached(stop.signal)
      stop.abort()
      expect(await reached).toBe(false)
      await follower.close()
      expect(await follower.reached(signal)).toBe(false)
    })

    test('is open while the session is not listed', async () => {
      gateway.listed = false
      follower.start()
      const reached = follower.reached(signal)
      while (gateway.asked.length === 0) await new Promise((resolve) => setImmediate(resolve))
      gateway.listed = true
      gateway.list()
      expect(await reached).toBe(true)
    })

    test('[D38] nothing is heard any more once the program was signed out', async () => {
      await follow()
      gateway.send({ type: 'error', code: 'revoked', message: 'signed out' })
      gateway.drop()
      await follower.ended
      expect(await follower.reached(signal)).toBe(false)
    })
  })

  test('whoever was signed out does not come back', async () => {
    await follow()
    gateway.send({ type: 'error', code: 'revoked', message: 'signed out' })
    gateway.drop()
    await follower.close()
    expect(gateway.upgrades).toHaveLength(1)
  })
})
