import { beforeAll, describe, expect, it, vi } from 'vitest'
import { Gateway } from '../../src/gateway/gateway.ts'
import { SOCKET_ORIGIN_HEADER } from '../../src/gateway/rpc.ts'
import { type DialOptions, dial, pairDevice, upgrade } from '../support/workers/gateway-device.ts'
import { type Client, clientWith, makeClient, refused, send } from '../support/workers/router.ts'

let first: Client
let second: Client
beforeAll(async () => {
  first = await makeClient()
  second = await makeClient()
})

const PATH = '/api/v1/gateway'
const DEPLOYED = { LOCAL_DEV: undefined }
const bearer = ({ token }: Client) => ({ Authorization: `Bearer ${token}` })
const LIST = { request_id: 'r1', operation: { type: 'list_sessions' } }

/** What the gateway is told with an upgrade. */
async function originOf(path: string, options: DialOptions = {}): Promise<Record<string, unknown>> {
  const spy = vi.spyOn(Gateway.prototype, 'fetch')
  const socket = await dial(path, options)
  const header = spy.mock.calls[0]?.[0].headers.get(SOCKET_ORIGIN_HEADER) ?? 'null'
  spy.mockRestore()
  socket.hangUp()
  return JSON.parse(header)
}

async function signIn(client: Client): Promise<Client> {
  const answer = await send('POST', '/api/v1/auth/sign-in', undefined, { 'X-Smista-Api-Key': client.key })
  const { token } = await answer.json<{ token: string }>()
  return clientWith(client.userId, client.key, token)
}

describe('a socket with a token', () => {
  it('[D38] needs no handshake frame: its first request is answered', async () => {
    const socket = await dial(PATH, { headers: bearer(first) })
    expect(await socket.ask(LIST)).toMatchObject({
      kind: 'response',
      request_id: 'r1',
      result: { type: 'sessions' },
    })
    socket.hangUp()
  })

  it('[D38] is refused without a valid token, before any object is touched', async () => {
    const spy = vi.spyOn(Gateway.prototype, 'fetch')
    expect(await refused(await upgrade(PATH))).toMatchObject({ status: 401, code: 'missing_credentials' })
    const wrong = { Authorization: 'Bearer nothing' }
    expect(await refused(await upgrade(PATH, { headers: wrong }))).toMatchObject({ status: 401 })
    expect(spy).not.toHaveBeenCalled()
    spy.mockRestore()
  })

  it('is all that can be had there: anything else is told to upgrade', async () => {
    const answer = await first.send('GET', PATH)
    expect(answer.headers.get('Upgrade')).toBe('websocket')
    expect(await refused(answer)).toMatchObject({ status: 426, code: 'invalid_request' })
  })

  it('[U34] cannot be opened by another web site', async () => {
    const headers = { ...bearer(first), Origin: 'https://evil.example' }
    expect(await refused(await upgrade(PATH, { headers }))).toMatchObject({ status: 403, code: 'forbidden' })
  })

  it('[D38] is closed when its token signs out, and no other is', async () => {
    const leaving = await signIn(first)
    const [mine, other] = [
      await dial(PATH, { headers: bearer(leaving) }),
      await dial(PATH, { headers: bearer(first) }),
    ]
    await leaving.send('POST', '/api/v1/auth/sign-out')
    expect(await mine.next()).toMatchObject({ type: 'error', code: 'revoked' })
    await mine.untilClosed()
    expect(await other.ask(LIST)).toMatchObject({ result: { type: 'sessions' } })
    other.hangUp()
    expect((await upgrade(PATH, { headers: bearer(leaving) })).status).toBe(401)
  })

  it('[D38] is closed when the key of its token is revoked', async () => {
    const made = await first.send('POST', '/api/v1/auth/keys')
    const { id, api_key } = await made.json<{ id: string; api_key: string }>()
    const with2nd = await signIn(clientWith(first.userId, api_key, ''))
    const socket = await dial(PATH, { headers: bearer(with2nd) })
    expect((await first.send('DELETE', `/api/v1/auth/keys/${id}`)).status).toBe(200)
    await socket.untilClosed()
  })

  it('[D38] signing out holds even when the gateway cannot be reached', async () => {
    const leaving = await signIn(first)
    const spy = vi.spyOn(Gateway.prototype, 'closeToken').mockRejectedValueOnce(new Error('away'))
    const log = vi.spyOn(console, 'error').mockImplementation(() => {})
    const socket = await dial(PATH, { headers: bearer(leaving) })
    expect((await leaving.send('POST', '/api/v1/auth/sign-out')).status).toBe(200)
    // It is tried again behind the answer.
    await socket.untilClosed()
    spy.mockRestore()
    log.mockRestore()
  })
})

describe('what the gateway is told of a socket', () => {
  it('[D38] the token that it was opened with, whose gateway it is then', async () => {
    const origin = await originOf(PATH, { headers: bearer(second) })
    expect(origin).toMatchObject({ userId: second.userId, tokenId: expect.any(String) })
  })

  it('[D14] whether the deployment’s own keys serve its user', async () => {
    const { socket, frame } = await pairDevice(second)
    socket.hangUp()
    const at = 'https://router.example'
    const told = async (path: string, vars: DialOptions['vars'], headers = {}) =>
      (await originOf(path, { headers, vars: { ...DEPLOYED, ...vars }, at })).deploymentProviders
    expect(await told('/', {})).toBe(true)
    expect(await told(`/g/${frame.gateway_id}`, {})).toBe(false)
    expect(await told(`/g/${frame.gateway_id}`, { SHARED_PROVIDERS: 'true' })).toBe(true)
    expect(await told(PATH, {}, bearer(first))).toBe(true)
    expect(await told(PATH, {}, bearer(second))).toBe(false)
  })
})
