import { env } from 'cloudflare:workers'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { type GatewayRpc, SOCKET_ORIGIN_HEADER, type SocketOrigin } from '../../src/gateway/rpc.ts'
import type { OperationRequest } from '../../src/session/rpc.ts'
import {
  comeBack,
  Device,
  ended,
  type Frame,
  type PairedDevice,
  pairDevice,
} from '../support/workers/device.ts'
import { dropFakeSessions, FakeSession, text } from '../support/workers/fake-session.ts'
import { hibernate, insideGateway } from '../support/workers/gateway-object.ts'
import { Hold } from '../support/workers/hold.ts'
import { type Client, makeClient } from '../support/workers/router.ts'

let client: Client
let phone: PairedDevice
let warned: ReturnType<typeof vi.spyOn>
beforeEach(async () => {
  client = await makeClient()
  phone = await pairDevice(client)
  warned = vi.spyOn(console, 'warn').mockImplementation(() => {})
})
afterEach(() => {
  warned.mockRestore()
  dropFakeSessions()
})

let named = 0
async function listed(): Promise<FakeSession> {
  const session = new FakeSession(client.userId, `forward-${++named}`)
  await session.list()
  return session
}

const at = ({ id }: FakeSession, registration_epoch = 1) => ({ session_id: id, registration_epoch })
const prompt = (words = 'hi'): Frame => ({ type: 'submit_prompt', prompt: words })
const send = (request_id: string, operation: Frame, envelope: Frame, device: Device = phone.device) =>
  device.send({ protocol_version: 1, request_id, ...envelope, operation })
/** Sends a request under this id and reads its answer. */
async function ask(request_id: string, operation: Frame, envelope: Frame, device: Device = phone.device) {
  send(request_id, operation, envelope, device)
  return device.next()
}
const status = async (target_request_id: string, envelope: Frame = {}, device: Device = phone.device) =>
  (await device.request({ type: 'get_request_status', target_request_id }, envelope)).result
const unknown = (target_request_id: string) => ({
  type: 'request_status',
  target_request_id,
  receipt: 'unknown',
})

describe('handing on', () => {
  it('[remote protocol, Receipts] the session decides, and its receipt is passed on', async () => {
    const session = await listed()
    const answer = { receipt: 'applied', result: { type: 'prompt_accepted', disposition: 'started' } }
    expect(await ask('r-1', prompt(), at(session))).toEqual({
      kind: 'response',
      protocol_version: 1,
      request_id: 'r-1',
      ...answer,
    })
    expect(session.asked[0]?.given).toEqual([
      client.userId,
      { id: phone.id, deploymentProviders: expect.any(Boolean) },
      {
        requestId: 'r-1',
        registrationEpoch: 1,
        digest: expect.stringMatching(/^[0-9a-f]{64}$/),
        operation: prompt(),
      },
    ])
  })

  it('[remote protocol, Receipts] the answer to what changes nothing has no receipt', async () => {
    const session = await listed()
    session.operate = async () => ({
      receipt: null,
      result: { type: 'history', history_revision: 'h0', messages: [] },
    })
    const answer = await ask('r', { type: 'get_history', limit: 10 }, at(session))
    expect(answer).toMatchObject({ result: { type: 'history' } })
    expect(answer).not.toHaveProperty('receipt')
  })

  it('[RF 28] one content has one digest, however it is spelled and in either vocabulary', async () => {
    const session = await listed()
    const threads = await pairDevice(client, { wire_names: 'thread' })
    const digests: string[] = []
    session.operate = async ({ digest }: OperationRequest) => {
      digests.push(digest)
      return { receipt: 'applied', result: { type: 'turn_cancelled', turn_id: 't' } }
    }
    await ask('a', { type: 'cancel_turn', turn_id: 't' }, at(session))
    await ask('b', { turn_id: 't', more: 1, type: 'cancel_turn' }, at(session))
    const thread = { thread_id: session.id, registration_epoch: 1 }
    await ask('c', { type: 'cancel_turn', turn_id: 't' }, thread, threads.device)
    await ask('d', { type: 'cancel_turn', turn_id: 'u' }, at(session))
    expect(digests).toHaveLength(4)
    expect(new Set(digests.slice(0, 3)).size).toBe(1)
    expect(digests[3]).not.toBe(digests[0])
  })

  it('[RF 10] what reaches no session is rejected, and leaves nothing behind', async () => {
    const session = await listed()
    expect(await ask('r-1', prompt(), { session_id: 'none', registration_epoch: 1 })).toMatchObject({
      receipt: 'rejected',
      result: { code: 'not_found' },
    })
    expect(await ask('r-1', prompt(), at(session, 7))).toMatchObject({
      receipt: 'rejected',
      result: { code: 'stale_session' },
    })
    const read = await ask('r-2', { type: 'get_history', limit: 1 }, at(session, 7))
    expect(read).toMatchObject({ result: { code: 'stale_session' } })
    expect(read).not.toHaveProperty('receipt')
    expect(session.asked).toEqual([])
    expect(await ask('r-1', prompt(), at(session))).toMatchObject({ receipt: 'applied' })
  })

  it('[RF 10] get_changes is checked like the others, and not served', async () => {
    const session = await listed()
    expect(await ask('a', { type: 'get_changes' }, at(session, 2))).toMatchObject({
      result: { code: 'stale_session' },
    })
    expect(await ask('b', { type: 'get_changes' }, at(session))).toMatchObject({
      result: { code: 'unsupported_operation' },
    })
  })

  it('[remote protocol, Receipts] a session that fails: unknown for a mutation, none for a read', async () => {
    const session = await listed()
    session.operate = () => Promise.reject(new Error('away'))
    expect(await ask('a', prompt(), at(session))).toMatchObject({
      receipt: 'unknown',
      result: { type: 'error', code: 'owner_unavailable' },
    })
    const read = await ask('b', { type: 'get_history', limit: 1 }, at(session))
    expect(read).toMatchObject({ result: { code: 'owner_unavailable' } })
    expect(read).not.toHaveProperty('receipt')
  })

  it('[remote protocol, Operations] the 17th that waits is rate_limited, an attach is not counted, and places come back', async () => {
    const session = await listed()
    const hold = new Hold()
    session.before = (method) => (method === 'operate' ? hold.wait() : Promise.resolve())
    for (let n = 0; n < 16; n++) send(`r-${n}`, prompt(), at(session))
    expect(await ask('r-16', prompt(), at(session))).toMatchObject({
      request_id: 'r-16',
      receipt: 'rejected',
      result: { code: 'rate_limited' },
    })
    expect(await ask('attach', { type: 'attach_session' }, at(session))).toMatchObject({
      result: { type: 'attached' },
    })
    const second = (await comeBack(phone, { token: phone.paired.token })).device
    send('other', prompt(), at(session), second)
    hold.release()
    const ids = new Set<unknown>()
    for (let n = 0; n < 16; n++) ids.add((await phone.device.next()).request_id)
    expect(ids.size).toBe(16)
    expect(await second.next()).toMatchObject({ request_id: 'other', receipt: 'applied' })
    expect(await ask('r-16', prompt(), at(session))).toMatchObject({ receipt: 'applied' })
  })

  it('[U12] answers overtake each other, and a request that waits holds nothing up', async () => {
    const [slow, quick] = [await listed(), await listed()]
    const hold = new Hold()
    slow.before = () => hold.wait()
    send('slow', prompt(), at(slow))
    expect(await ask('attach', { type: 'attach_session' }, at(quick))).toMatchObject({ request_id: 'attach' })
    await quick.tell(text('a'))
    expect(await phone.device.next()).toMatchObject({ kind: 'event' })
    expect(await ask('quick', prompt(), at(quick))).toMatchObject({ request_id: 'quick', receipt: 'applied' })
    hold.release()
    expect(await phone.device.next()).toMatchObject({ request_id: 'slow', receipt: 'applied' })
  })

  it('[RF 10] requests of a connection reach their session in the order in which they were sent', async () => {
    const session = await listed()
    const texts = Array.from({ length: 10 }, (_, n) => `${n} ${'x'.repeat(n % 2 === 0 ? 200_000 : 1)}`)
    for (const [n, words] of texts.entries()) send(`r-${n}`, prompt(words), at(session))
    for (const _ of texts) await phone.device.next()
    const order = session.asked.map(({ given }) => (given[2] as OperationRequest).requestId)
    expect(order).toEqual(texts.map((_, n) => `r-${n}`))
  })
})

describe('what became of a request', () => {
  it('[D29] without a session only the one is asked that the request went to, also after a sleep', async () => {
    const [one, two] = [await listed(), await listed()]
    one.operate = () => Promise.reject(new Error('away'))
    await ask('lost', prompt(), at(one))
    const result = { type: 'prompt_accepted' as const, disposition: 'started' as const }
    one.status = async () => ({ receipt: 'applied', result })
    await hibernate(client.userId)
    expect(await status('lost')).toEqual({
      type: 'request_status',
      target_request_id: 'lost',
      receipt: 'applied',
      result,
    })
    expect(one.asked.at(-1)?.given).toEqual([
      client.userId,
      phone.id,
      { requestId: 'lost', registrationEpoch: 1 },
    ])
    expect(two.asked).toEqual([])
  })

  it('[D29] receipts outlive the listing, for the device that sent the request', async () => {
    const session = await listed()
    await ask('r', prompt(), at(session))
    session.status = async () => ({ receipt: 'received' })
    await session.unlist('sharing_disabled')
    expect(await status('r')).toMatchObject({ receipt: 'received' })
    expect(await status('r', at(session))).toMatchObject({ receipt: 'received' })
    const asked = session.asked.length
    const other = await pairDevice(client)
    expect(await status('r', at(session), other.device)).toEqual(unknown('r'))
    expect(session.asked).toHaveLength(asked)
  })

  it('[RF 28] one that is not noted is asked of all that are listed: the first that knows it answers', async () => {
    const sessions = [await listed(), await listed(), await listed()]
    const [dead, , knowing] = sessions
    if (dead) dead.status = () => Promise.reject(new Error('away'))
    if (knowing) knowing.status = async () => ({ receipt: 'received' })
    expect(await status('r')).toEqual({
      type: 'request_status',
      target_request_id: 'r',
      receipt: 'received',
    })
    expect(sessions.map(({ asked }) => asked.length)).toEqual([1, 1, 1])
  })

  it('[RF 28] with a session that one alone is asked, and only under its epoch', async () => {
    const [one, two] = [await listed(), await listed()]
    for (const session of [one, two]) session.status = async () => ({ receipt: 'received' })
    expect(await status('r', at(one))).toMatchObject({ receipt: 'received' })
    expect(await status('r', { session_id: one.id })).toMatchObject({ receipt: 'received' })
    expect(await status('r', at(one, 9))).toEqual(unknown('r'))
    expect(await status('r', { session_id: 'none', registration_epoch: 1 })).toEqual(unknown('r'))
    expect([one.asked.length, two.asked.length]).toEqual([2, 0])
  })

  it('[U15] nobody knows, nobody answers, nobody is there: unknown, and never an error', async () => {
    expect(await status('r')).toEqual(unknown('r'))
    const session = await listed()
    expect(await status('r')).toEqual(unknown('r'))
    session.status = () => Promise.reject(new Error('away'))
    expect(await status('r', at(session))).toEqual(unknown('r'))
  })

  it('[D29] the newest 4096 requests of a device are remembered', async () => {
    const session = await listed()
    await ask('oldest', prompt(), at(session))
    await insideGateway(client.userId, (sql) => {
      sql.transaction(() => {
        for (let n = 0; n < 4200; n++)
          sql.rows(
            'INSERT INTO request_sessions (device_id, request_id, session_id, epoch, created_at) VALUES (?, ?, ?, 1, 0)',
            phone.id,
            `old-${n}`,
            session.id,
          )
      })
    })
    for (let n = 0; n < 61; n++) await ask(`new-${n}`, prompt(), at(session))
    const kept = await insideGateway(client.userId, (sql) =>
      sql.rows('SELECT request_id FROM request_sessions WHERE device_id = ? ORDER BY seq', phone.id),
    )
    const ids = kept.map(({ request_id }) => request_id)
    expect(ids).not.toContain('oldest')
    expect(ids).toContain('new-60')
    expect(ids.length).toBeGreaterThanOrEqual(4096)
    expect(ids.length).toBeLessThan(4096 + 61)
  })
})

describe('a program with the owner’s token', () => {
  const origin = (tokenId: string): SocketOrigin => ({
    userId: client.userId,
    gatewayId: String(phone.paired.gateway_id),
    address: '203.0.113.9',
    routes: [],
    hostName: null,
    notedRevocations: [],
    deploymentProviders: true,
    tokenId,
  })
  async function program(tokenId: string): Promise<Device> {
    const answer = await env.GATEWAY.getByName(client.userId).fetch('https://gateway/', {
      headers: { Upgrade: 'websocket', [SOCKET_ORIGIN_HEADER]: JSON.stringify(origin(tokenId)) },
    })
    return Device.of(answer)
  }
  const closeToken = (tokenId: string) =>
    (env.GATEWAY.getByName(client.userId) as unknown as GatewayRpc).closeToken(client.userId, tokenId)

  it('[D38] needs no handshake, speaks the names of version 1, and acts under its token', async () => {
    const session = await listed()
    const device = await program('tok-1')
    await ask('attach', { type: 'attach_session' }, at(session), device)
    await session.tell(text('a'))
    expect(await device.next()).toMatchObject({ session_id: session.id, sequence: 1 })
    await ask('r', prompt(), at(session), device)
    expect(session.asked.at(-1)?.given[1]).toEqual({ id: 'token:tok-1', deploymentProviders: true })
    await hibernate(client.userId)
    await session.tell(text('b'))
    expect(await device.next()).toMatchObject({ session_id: session.id, sequence: 2 })
  })

  it('[D38] is closed when its token is signed out, and others are not', async () => {
    const [one, two] = [await program('tok-1'), await program('tok-2')]
    await closeToken('tok-1')
    expect(await ended(one)).toMatchObject({ type: 'error', code: 'revoked' })
    expect(await two.request({ type: 'list_sessions' })).toMatchObject({ result: { type: 'sessions' } })
  })

  it('[D36] counts as one of the connections: a ninth of a token closes the one longest silent', async () => {
    const devices: Device[] = []
    for (let n = 0; n < 9; n++) devices.push(await program('tok-1'))
    const first = devices[0]
    if (first) expect(await ended(first)).toMatchObject({ code: 'idle_timeout' })
    expect(await devices[8]?.request({ type: 'list_sessions' })).toMatchObject({
      result: { type: 'sessions' },
    })
  })
})
