import { env } from 'cloudflare:workers'
import { beforeEach, describe, expect, it, vi } from 'vitest'
import { ListDevicesResponse } from '../../src/protocol/execution/devices.ts'
import { breakD1 } from '../support/workers/d1-faults.ts'
import {
  comeBack,
  Device,
  ended,
  type PairedDevice,
  pairDevice,
  ROTATING,
} from '../support/workers/device.ts'
import { insideGateway, restart, ringGatewayAlarm } from '../support/workers/gateway-object.ts'
import { type Client, makeClient, parsed, refused } from '../support/workers/router.ts'

let client: Client
let phone: PairedDevice
let logged: ReturnType<typeof vi.spyOn>
beforeEach(async () => {
  vi.spyOn(console, 'error').mockImplementation(() => {})
  logged = vi.spyOn(console, 'warn').mockImplementation(() => {})
  client = await makeClient()
  phone = await pairDevice(client, ROTATING)
})

const revoke = () => client.send('DELETE', `/api/v1/devices/${phone.id}`)
const devices = async () =>
  (await parsed(await client.send('GET', '/api/v1/devices'), ListDevicesResponse)).devices
const refresh = async () => (await comeBack(phone, { refresh_token: phone.paired.refresh_token })).answer
const notes = async () =>
  (
    await env.DB.prepare('SELECT device_id, reason FROM device_revocations WHERE user_id = ?')
      .bind(client.userId)
      .all()
  ).results

/** From now on the gateway cannot write what it keeps of devices, until it restarts. */
const breakDevices = () =>
  insideGateway(client.userId, (_sql, state) => {
    const exec = state.storage.sql.exec.bind(state.storage.sql)
    vi.spyOn(state.storage.sql, 'exec').mockImplementation((query, ...values) => {
      if (/(INSERT INTO|DELETE FROM|UPDATE) (devices|retired_tokens)/.test(query))
        throw new Error('disk I/O error')
      return exec(query, ...values) as never
    })
  })

/** The family is replayed: a token that was acknowledged away is presented. */
async function replay() {
  const { device, answer } = await comeBack(phone, { refresh_token: phone.paired.refresh_token })
  device.send({ type: 'token_ack', rotation_id: answer.rotation_id })
  await device.request({ type: 'list_sessions' })
  return { device, present: refresh }
}

describe('revoking a device', () => {
  it('[U32] closes its connections at once, refuses its tokens, and the same phone can pair again', async () => {
    const other = await pairDevice(client)
    const second = await comeBack(phone, { access_token: phone.paired.access_token })
    await parsed(await revoke(), ListDevicesResponse.partial())
    for (const socket of [phone.device, second.device])
      expect(await ended(socket)).toMatchObject({ type: 'error', code: 'revoked' })
    expect(await refresh()).toMatchObject({ code: 'unauthorized' })
    expect((await devices()).map(({ device_id }) => device_id)).toEqual([other.id])
    await other.device.request({ type: 'list_sessions' })
    await pairDevice(client, ROTATING)
  })

  it('[remote protocol, Rotating tokens] one that could not be stored holds at once, and after a restart', async () => {
    await breakDevices()
    expect((await revoke()).status).toBe(200)
    expect(await ended(phone.device)).toMatchObject({ code: 'revoked' })
    expect(await notes()).toEqual([{ device_id: phone.id, reason: 'revoked' }])
    expect(await refresh()).toMatchObject({ code: 'unauthorized' })
    await restart(client.userId)
    expect(await devices()).toEqual([])
    expect(await refresh()).toMatchObject({ code: 'unauthorized' })
    // It is stored now, so the note has done its part.
    await vi.waitFor(async () => expect(await notes()).toEqual([]))
    await restart(client.userId)
    expect(await refresh()).toMatchObject({ code: 'unauthorized' })
  })

  it('[remote protocol, Rotating tokens] one that could not be stored is tried again by itself', async () => {
    await breakDevices()
    await revoke()
    vi.restoreAllMocks()
    await ringGatewayAlarm(client.userId)
    await vi.waitFor(async () => expect(await notes()).toEqual([]))
    await restart(client.userId)
    expect(await refresh()).toMatchObject({ code: 'unauthorized' })
  })

  it('[remote protocol, Rotating tokens] one that can be stored nowhere is refused as long as the gateway lives, and the owner is told', async () => {
    await breakDevices()
    const d1 = breakD1('lost', /insert into .?device_revocations/i)
    expect(await refused(await revoke())).toMatchObject({ code: 'storage_error' })
    d1.repair()
    expect(await ended(phone.device)).toMatchObject({ code: 'revoked' })
    expect(await refresh()).toMatchObject({ code: 'unauthorized' })
  })
})

describe('a device that cannot even be looked up', () => {
  it('[U32] is refused and cut off all the same when it is revoked', async () => {
    await insideGateway(client.userId, (_sql, state) => {
      const exec = state.storage.sql.exec.bind(state.storage.sql)
      vi.spyOn(state.storage.sql, 'exec').mockImplementation((query, ...values) => {
        if (/SELECT \* FROM devices WHERE/.test(query)) throw new Error('disk I/O error')
        return exec(query, ...values) as never
      })
    })
    expect((await revoke()).status).toBe(200)
    expect(await ended(phone.device)).toMatchObject({ code: 'revoked' })
    expect(await notes()).toEqual([{ device_id: phone.id, reason: 'revoked' }])
  })
})

describe('a replay', () => {
  it('[remote protocol, Rotating tokens] is seen by the owner, in the log and among the devices, until taken off', async () => {
    const { present } = await replay()
    expect(await present()).toMatchObject({ code: 'token_replayed' })
    expect(logged).toHaveBeenCalledWith(expect.stringMatching(`remote.token_replayed.*${phone.id}`))
    expect(await devices()).toMatchObject([
      { device_id: phone.id, revoked_reason: 'token_replayed', online: false },
    ])
    expect((await revoke()).status).toBe(200)
    expect(await devices()).toEqual([])
    expect((await refused(await revoke())).status).toBe(404)
  })

  it('[remote protocol, Rotating tokens] whose revocation cannot be stored holds at once, and after a restart', async () => {
    const { device, present } = await replay()
    await breakDevices()
    expect(await present()).toMatchObject({ code: 'token_replayed' })
    for (const socket of [phone.device, device])
      expect(await ended(socket)).toMatchObject({ code: 'revoked' })
    expect(await notes()).toEqual([{ device_id: phone.id, reason: 'token_replayed' }])
    expect(await present()).toMatchObject({ code: 'unauthorized' })
    await restart(client.userId)
    expect(await present()).toMatchObject({ code: 'unauthorized' })
    expect(await devices()).toMatchObject([{ device_id: phone.id, revoked_reason: 'token_replayed' }])
  })

  it('[remote protocol, Rotating tokens] that is stored nowhere is one again after a restart', async () => {
    const { present } = await replay()
    await breakDevices()
    const d1 = breakD1('lost', /insert into .?device_revocations/i)
    expect(await present()).toMatchObject({ code: 'token_replayed' })
    d1.repair()
    await restart(client.userId)
    vi.restoreAllMocks()
    vi.spyOn(console, 'warn').mockImplementation(() => {})
    expect(await present()).toMatchObject({ code: 'token_replayed' })
  })

  it('[remote protocol, Rotating tokens] is shown, however many pairings ended before', async () => {
    const { present } = await replay()
    await insideGateway(client.userId, (sql) => {
      for (let n = 0; n < 32; n++)
        sql.rows(
          `INSERT INTO devices (device_id, name, kind, paired_at, revoked_reason, ended_at)
           VALUES (?, 'x', 'phone', ?, 'token_replayed', ?)`,
          n.toString(16).padStart(16, '0'),
          Date.now() + 1_000,
          n,
        )
    })
    await present()
    const shown = await devices()
    expect(shown).toHaveLength(32)
    expect(shown.map(({ device_id }) => device_id)).toContain(phone.id)
  })

  it('[RF 3] guessing a device id revokes nobody', async () => {
    const { answer } = await comeBack({ ...phone, id: 'f'.repeat(16) }, { refresh_token: 'guess' })
    expect(answer).toMatchObject({ code: 'unauthorized' })
    expect(await refresh()).toMatchObject({ type: 'authenticated' })
  })
})

describe('the account', () => {
  it('[U32] when it is deleted, every device is told and nothing of the gateway stays', async () => {
    const deleted = await client.send('DELETE', '/api/v1/auth/me', undefined, {
      'X-Smista-Api-Key': client.key,
    })
    expect(deleted.status).toBe(200)
    expect(await ended(phone.device)).toMatchObject({ code: 'revoked' })
    await expect(Device.dial(phone.path)).rejects.toThrow('404')
    const tables = await insideGateway(client.userId, (sql) =>
      sql.rows("SELECT name FROM sqlite_master WHERE name NOT LIKE '\\_%' ESCAPE '\\'"),
    )
    expect(tables).toEqual([])
  })
})
