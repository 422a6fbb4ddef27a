import { env } from 'cloudflare:workers'
import { expect, it, vi } from 'vitest'
import { Gateway } from '../../src/gateway/gateway.ts'
import type { GatewayRpc } from '../../src/gateway/rpc.ts'
import type { RemoteSessionInfo } from '../../src/protocol/remote/session-info.ts'
import { type PairedDevice, pairDevice } from '../support/workers/device.ts'
import { makeClient } from '../support/workers/router.ts'

const DEVICES = 32
const SILENCE_MS = 60_000
/** How often a device gives a sign of life that wants to. */
const PING_MS = 20_000

/** The time that a socket has for its first frame is looked at once, even when the frame has come. */
const HANDSHAKE_MS = 12_000

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

/** Everything that can run in a gateway's object; each call of it notes its name. */
function noteActivity(): string[] {
  const seen: string[] = []
  for (const name of Object.getOwnPropertyNames(Gateway.prototype)) {
    const method: unknown = Reflect.get(Gateway.prototype, name)
    if (name === 'constructor' || typeof method !== 'function') continue
    const original = method as (...given: unknown[]) => unknown
    vi.spyOn(Gateway.prototype, name as keyof Gateway).mockImplementation(function (
      this: Gateway,
      ...given: unknown[]
    ) {
      seen.push(name)
      return original.apply(this, given) as never
    } as never)
  }
  return seen
}

it('[D36] 32 devices that are silent for a minute, or only ping, wake nothing; the next change reaches all of them', {
  timeout: 150_000,
}, async () => {
  const client = await makeClient()
  const phones: PairedDevice[] = []
  for (let n = 0; n < DEVICES; n++) {
    const phone = await pairDevice(client, {}, `198.51.100.${n}`)
    await phone.device.request({ type: 'subscribe_sessions' })
    phones.push(phone)
  }
  await pause(HANDSHAKE_MS)
  const seen = noteActivity()
  const pinging = phones.filter((_, index) => index % 2 === 0)
  for (let waited = 0; waited < SILENCE_MS; waited += PING_MS) {
    for (const { device } of pinging) device.send('{"type":"ping"}')
    await pause(PING_MS)
  }
  expect(seen).toEqual([])
  for (const [index, { device }] of phones.entries()) {
    const pongs = index % 2 === 0 ? SILENCE_MS / PING_MS : 0
    expect(device.waiting).toEqual(Array.from({ length: pongs }, () => ({ type: 'pong' })))
    for (let n = 0; n < pongs; n++) await device.next()
  }

  const row: RemoteSessionInfo = {
    session_id: 'a',
    registration_epoch: 1,
    title: 'after the silence',
    model: '',
    activity: 'running',
    attention: { approval: false, question: false },
    health: 'live',
  }
  await (env.GATEWAY.getByName(client.userId) as unknown as GatewayRpc).putRow(client.userId, row)
  for (const { device } of phones) {
    expect(await device.next()).toMatchObject({ kind: 'sessions', sessions: [row] })
  }
  expect(seen).toContain('putRow')
})
