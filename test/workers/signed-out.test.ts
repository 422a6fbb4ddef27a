import { env } from 'cloudflare:workers'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { Gateway } from '../../src/gateway/gateway.ts'
import { makeExecute } from '../support/workers/bodies.ts'
import { setClock } from '../support/workers/clock.ts'
import { dial } from '../support/workers/gateway-device.ts'
import { ringGatewayAlarm } from '../support/workers/gateway-object.ts'
import { Hold } from '../support/workers/hold.ts'
import { type Client, clientWith, makeClient, send } from '../support/workers/router.ts'
import { scriptModels } from '../support/workers/scripted-models.ts'
import { STREAM } from '../support/workers/turn-stream.ts'

const models = scriptModels()

let owner: Client
let other: Client
beforeEach(async () => {
  owner = await makeClient()
  const answer = await send('POST', '/api/v1/auth/sign-in', undefined, { 'X-Smista-Api-Key': owner.key })
  const { token } = await answer.json<{ token: string }>()
  other = clientWith(owner.userId, owner.key, token)
})
afterEach(() => void vi.useRealTimers())

const bearer = ({ token }: Client) => ({ Authorization: `Bearer ${token}` })
const signOut = async (client: Client) =>
  expect((await client.send('POST', '/api/v1/auth/sign-out')).status).toBe(200)

describe('[D30] whoever was signed out', () => {
  it('hears no more of a session that it had begun to follow, half a minute later', async () => {
    const id = await owner.newSession()
    const answer = await other.send('GET', `/api/v1/sessions/${id}/events`, undefined, STREAM)
    const reader = (answer.body ?? new ReadableStream()).pipeThrough(new TextDecoderStream()).getReader()
    let read = ''
    /** False when the stream has ended. */
    const more = async () => {
      const { done, value } = await reader.read()
      read += value ?? ''
      return !done
    }
    const hold = new Hold()
    models.script({ text: ['early '], hold: hold.wait, after: ['late'] })
    const run = owner.execute(id, makeExecute('hi'))
    while (!read.includes('turn_started')) await more()
    await signOut(other)
    setClock(Date.now() + 31_000)
    hold.release()
    await (await run).text()
    while (await more());
    expect(read).not.toContain('late')
  })

  it('keeps no socket that was on its way to the gateway', async () => {
    const hold = new Hold()
    const { fetch } = Gateway.prototype
    const spy = vi.spyOn(Gateway.prototype, 'fetch').mockImplementation(async function (
      this: Gateway,
      request,
    ) {
      await hold.wait()
      return fetch.call(this, request)
    })
    const dialing = dial('/api/v1/gateway', { headers: bearer(other) })
    await hold.reached()
    await signOut(other)
    hold.release()
    const socket = await dialing
    await socket.untilClosed()
    spy.mockRestore()
  })

  it('by the revocation of its key keeps no socket, though its token had run out before', async () => {
    const made = await owner.send('POST', '/api/v1/auth/keys')
    const { api_key: key, id: keyId } = await made.json<{ api_key: string; id: string }>()
    const answer = await send('POST', '/api/v1/auth/sign-in', undefined, { 'X-Smista-Api-Key': key })
    const { token } = await answer.json<{ token: string }>()
    const socket = await dial('/api/v1/gateway', { headers: bearer(clientWith(owner.userId, key, token)) })
    await env.DB.prepare('UPDATE auth_tokens SET expires_at = 1 WHERE api_key_id = ?').bind(keyId).run()
    expect((await owner.send('DELETE', `/api/v1/auth/keys/${keyId}`)).status).toBe(200)
    await socket.untilClosed()
  })

  it('by time, has no socket either', async () => {
    const socket = await dial('/api/v1/gateway', { headers: bearer(other) })
    const list = { request_id: 'r1', operation: { type: 'list_sessions' } }
    expect(await socket.ask(list)).toMatchObject({ kind: 'response' })
    const row = await env.DB.prepare('SELECT max(expires_at) AS at FROM auth_tokens WHERE user_id = ?')
      .bind(owner.userId)
      .first<{ at: number }>()
    setClock((row?.at ?? 0) + 1)
    await ringGatewayAlarm(owner.userId)
    expect(await socket.next()).toMatchObject({ type: 'error', code: 'access_expired' })
    await socket.untilClosed()
  })
})
