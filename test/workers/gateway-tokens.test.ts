import { afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import {
  ACCESS_TOKEN_TTL_MS,
  MAX_RETIRED_FINGERPRINTS,
  STATIC_TOKEN_TTL_MS,
} from '../../src/protocol/remote/limits.ts'
import { setClock } from '../support/workers/clock.ts'
import {
  comeBack,
  ended,
  type Frame,
  type PairedDevice,
  pairDevice,
  ROTATING,
} from '../support/workers/device.ts'
import { hibernate, insideGateway, restart, storedInGateway } from '../support/workers/gateway-object.ts'
import { type Client, makeClient } from '../support/workers/router.ts'

let client: Client
let phone: PairedDevice
beforeAll(async () => {
  client = await makeClient()
})
beforeEach(async () => {
  vi.spyOn(console, 'warn').mockImplementation(() => {})
  vi.spyOn(console, 'error').mockImplementation(() => {})
  phone = await pairDevice(client, ROTATING)
})

afterEach(() => {
  vi.useRealTimers()
})

const refresh = (token: unknown) => comeBack(phone, { refresh_token: token })
const access = (token: unknown) => comeBack(phone, { access_token: token })
const tokensOf = ({ refresh_token, access_token, access_expires_at, rotation_id }: Frame) => ({
  refresh_token,
  access_token,
  access_expires_at,
  rotation_id,
})

/** What may happen to the object between any two frames. */
const BETWEEN: [string, () => Promise<void>][] = [
  ['nothing happens', async () => {}],
  ['the object sleeps', () => hibernate(client.userId)],
  ['the router restarts', () => restart(client.userId)],
]

describe.each(BETWEEN)('rotating tokens, when %s between two frames', (_what, between) => {
  it('[remote protocol, Rotating tokens] a refresh token brings new tokens, and the acknowledged rotation retires it', async () => {
    await between()
    const { device, answer } = await refresh(phone.paired.refresh_token)
    expect(answer).toMatchObject({ type: 'authenticated', device_id: phone.id })
    expect(Object.keys(answer)).not.toContain('expires_at')
    expect(answer.refresh_token).not.toBe(phone.paired.refresh_token)
    device.send({ type: 'token_ack', rotation_id: answer.rotation_id })
    await device.request({ type: 'list_sessions' })
    await between()
    expect((await refresh(answer.refresh_token)).answer).toMatchObject({ type: 'authenticated' })
  })

  it('[D40][U33] a lost answer is repeated: the same tokens, rotation and expiry, however often it is asked for', async () => {
    const first = await refresh(phone.paired.refresh_token)
    for (let n = 0; n < 3; n++) {
      await between()
      const again = await refresh(phone.paired.refresh_token)
      expect(tokensOf(again.answer)).toEqual(tokensOf(first.answer))
    }
  })

  it('[U33] two connections that race with one token both get in, with the same answer', async () => {
    await between()
    const [one, two] = await Promise.all([
      refresh(phone.paired.refresh_token),
      refresh(phone.paired.refresh_token),
    ])
    expect(tokensOf(one.answer)).toEqual(tokensOf(two.answer))
    await one.device.request({ type: 'list_sessions' })
    await two.device.request({ type: 'list_sessions' })
  })

  it('[U33] a token that was acknowledged away revokes the family, and every connection of it is told', async () => {
    const { device, answer } = await refresh(phone.paired.refresh_token)
    device.send({ type: 'token_ack', rotation_id: answer.rotation_id })
    await device.request({ type: 'list_sessions' })
    const hadSockets = _what === 'the router restarts' ? [] : [device, phone.device]
    await between()
    const thief = await refresh(phone.paired.refresh_token)
    expect(thief.answer).toMatchObject({ type: 'error', code: 'token_replayed' })
    for (const socket of hadSockets) expect(await ended(socket)).toMatchObject({ code: 'revoked' })
    await between()
    expect((await refresh(answer.refresh_token)).answer).toMatchObject({ code: 'unauthorized' })
    expect((await refresh(phone.paired.refresh_token)).answer).toMatchObject({ code: 'unauthorized' })
  })

  it('[RF 6] using the newest token retires the one before the last, acknowledged or not', async () => {
    const second = await refresh(phone.paired.refresh_token)
    await between()
    const third = await refresh(second.answer.refresh_token)
    expect(third.answer).toMatchObject({ type: 'authenticated' })
    await between()
    expect((await refresh(phone.paired.refresh_token)).answer).toMatchObject({ code: 'token_replayed' })
  })

  it('[RF 6] an access token connects again for 15 minutes, and rotates nothing', async () => {
    await between()
    const { answer } = await access(phone.paired.access_token)
    expect(answer).toMatchObject({
      type: 'authenticated',
      access_expires_at: phone.paired.access_expires_at,
    })
    for (const absent of ['refresh_token', 'access_token', 'rotation_id', 'expires_at'])
      expect(Object.keys(answer)).not.toContain(absent)
    await between()
    expect((await refresh(phone.paired.refresh_token)).answer).toHaveProperty('rotation_id')
  })
})

describe('the tokens of a device', () => {
  it('[RF 6] an access token that a rotation replaced is expired, and so is a wrong one', async () => {
    const { answer } = await refresh(phone.paired.refresh_token)
    expect((await access(phone.paired.access_token)).answer).toMatchObject({ code: 'access_expired' })
    expect((await access('wrong')).answer).toMatchObject({ code: 'access_expired' })
    expect((await access(answer.access_token)).answer).toMatchObject({ type: 'authenticated' })
  })

  it('[RF 6] an access token expires with its fifteenth minute', async () => {
    setClock(Date.parse(String(phone.paired.access_expires_at)) - 1)
    expect((await access(phone.paired.access_token)).answer).toMatchObject({ type: 'authenticated' })
    setClock(Date.parse(String(phone.paired.access_expires_at)))
    expect((await access(phone.paired.access_token)).answer).toMatchObject({ code: 'access_expired' })
    expect(ACCESS_TOKEN_TTL_MS).toBe(15 * 60_000)
  })

  it('[RF 6] a refresh token that was never issued is unauthorized, and the family stays', async () => {
    expect((await refresh('never')).answer).toMatchObject({ code: 'unauthorized' })
    expect((await refresh(phone.paired.refresh_token)).answer).toMatchObject({ type: 'authenticated' })
  })

  it('[RF 6] the acknowledgement of an older rotation is ignored', async () => {
    const first = await refresh(phone.paired.refresh_token)
    const second = await refresh(first.answer.refresh_token)
    second.device.send({ type: 'token_ack', rotation_id: first.answer.rotation_id })
    await second.device.request({ type: 'list_sessions' })
    // Not acknowledged: the predecessor still gets the same answer.
    expect(tokensOf((await refresh(first.answer.refresh_token)).answer)).toEqual(tokensOf(second.answer))
  })

  it('[RF 6] the wrong kind of token for the device is unauthorized', async () => {
    const old = await pairDevice(client)
    expect((await comeBack(old, { refresh_token: old.paired.token })).answer).toMatchObject({
      code: 'unauthorized',
    })
    expect((await comeBack(phone, { token: phone.paired.refresh_token })).answer).toMatchObject({
      code: 'unauthorized',
    })
    expect((await comeBack(phone, {})).answer).toMatchObject({ code: 'unauthorized' })
  })

  it('[remote protocol, Handshake frames] a static token is accepted for 30 days', async () => {
    const old = await pairDevice(client)
    expect(old.paired).toHaveProperty('token')
    const expiresAtMs = Date.parse(String(old.paired.expires_at))
    setClock(expiresAtMs - 1)
    const { answer } = await comeBack(old, { token: old.paired.token })
    expect(answer).toMatchObject({ type: 'authenticated', expires_at: old.paired.expires_at })
    setClock(expiresAtMs)
    expect((await comeBack(old, { token: old.paired.token })).answer).toMatchObject({ code: 'unauthorized' })
    expect(STATIC_TOKEN_TTL_MS).toBe(30 * 86_400_000)
  })

  it('[remote protocol, Rotating tokens] at rest there is no token, in no form that opens anything', async () => {
    const old = await pairDevice(client)
    const { answer } = await refresh(phone.paired.refresh_token)
    const stored = await storedInGateway(client.userId)
    expect(stored).toContain(phone.id)
    const secrets = [
      old.paired.token,
      phone.paired.refresh_token,
      phone.paired.access_token,
      answer.refresh_token,
      answer.access_token,
    ]
    for (const secret of secrets) expect(stored).not.toContain(String(secret))
  })

  it('[RF 6] a token older than the newest 1,024 retired ones is unauthorized, and the family stays', async () => {
    const first = await refresh(phone.paired.refresh_token)
    first.device.send({ type: 'token_ack', rotation_id: first.answer.rotation_id })
    await first.device.request({ type: 'list_sessions' })
    await insideGateway(client.userId, (sql) => {
      for (let n = 2; n <= MAX_RETIRED_FINGERPRINTS; n++)
        sql.rows('INSERT INTO retired_tokens VALUES (?, ?, ?)', phone.id, n, n.toString(16).padStart(16, '0'))
    })
    // The next retirement pushes the first one out.
    const second = await refresh(first.answer.refresh_token)
    second.device.send({ type: 'token_ack', rotation_id: second.answer.rotation_id })
    await second.device.request({ type: 'list_sessions' })
    expect((await refresh(phone.paired.refresh_token)).answer).toMatchObject({ code: 'unauthorized' })
    expect((await refresh(second.answer.refresh_token)).answer).toMatchObject({ type: 'authenticated' })
    expect((await refresh(first.answer.refresh_token)).answer).toMatchObject({ code: 'token_replayed' })
  })
})
