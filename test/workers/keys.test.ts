import { env } from 'cloudflare:workers'
import { beforeEach, describe, expect, it, vi } from 'vitest'
import type { z } from 'zod'
import {
  CreateApiKeyResponse,
  ListApiKeysResponse,
  RevokeApiKeyResponse,
} from '../../src/protocol/execution/account.ts'
import { MeResponse, SignInResponse } from '../../src/protocol/execution/auth.ts'
import { createToken } from '../../src/storage/d1/accounts.ts'
import { openDatabase } from '../../src/storage/d1/database.ts'
import { newId } from '../../src/storage/ids.ts'
import { MAX_API_KEYS } from '../../src/storage/limits.ts'
import { setClock } from '../support/workers/clock.ts'
import { type Client, makeClient, parsed, refused, send } from '../support/workers/router.ts'
import { scriptModels } from '../support/workers/scripted-models.ts'

scriptModels()
const KEYS = '/api/v1/auth/keys'

let client: Client
beforeEach(async () => {
  client = await makeClient()
})

const signIn = (key: string) => send('POST', '/api/v1/auth/sign-in', undefined, { 'X-Smista-Api-Key': key })
const tokenOf = async (key: string) => (await parsed(await signIn(key), SignInResponse)).token
const me = (token: string) => send('GET', '/api/v1/auth/me', undefined, { Authorization: `Bearer ${token}` })
const list = async (token = client.token) => {
  const response = await send('GET', KEYS, undefined, { Authorization: `Bearer ${token}` })
  return (await parsed(response, ListApiKeysResponse)).keys
}
const make = async (): Promise<z.infer<typeof CreateApiKeyResponse>> =>
  parsed(await client.send('POST', KEYS), CreateApiKeyResponse, 201)
const revoke = (id: string, who = client) => who.send('DELETE', `${KEYS}/${id}`)
const currentId = async (token = client.token) => (await list(token)).find(({ current }) => current)?.id ?? ''

describe('API keys', () => {
  it('[EC 23] are listed oldest first, without the keys, with their last use and the one of this token', async () => {
    const start = Date.now()
    setClock(start + 1000)
    const second = await make()
    setClock(start + 2000)
    const third = await make()
    setClock(start + 3000)
    const token = await tokenOf(second.api_key)
    const [first, ...others] = await list(token)
    expect(first).toMatchObject({ current: false, last_used_at: expect.any(String) })
    expect(others).toEqual([
      {
        id: second.id,
        created_at: new Date(start + 1000).toISOString(),
        last_used_at: new Date(start + 3000).toISOString(),
        current: true,
      },
      { id: third.id, created_at: third.created_at, current: false },
    ])
    expect(await currentId()).toBe(first?.id)
  })

  it('[EC 23] another key signs in to the same account', async () => {
    const { api_key } = await make()
    expect(await parsed(await me(await tokenOf(api_key)), MeResponse)).toEqual({ user_id: client.userId })
    expect((await signIn(client.key)).status).toBe(200)
  })

  it('[EC 23] there are at most 32 that work, and revoking one makes room', async () => {
    for (let n = 1; n < MAX_API_KEYS; n++) await make()
    expect(await refused(await client.send('POST', KEYS))).toMatchObject({
      status: 422,
      code: 'invalid_request',
      details: { max_keys: 32 },
    })
    expect(await list()).toHaveLength(MAX_API_KEYS)
    await parsed(await revoke((await list())[5]?.id ?? ''), RevokeApiKeyResponse)
    await make()
  })

  it('[EC 23] requests at once do not pass the limit together', async () => {
    for (let n = 2; n < MAX_API_KEYS; n++) await make()
    const answers = await Promise.all([1, 2, 3].map(() => client.send('POST', KEYS)))
    expect(answers.map(({ status }) => status).sort()).toEqual([201, 422, 422])
  })
})

describe('revoking', () => {
  it('[D30] ends the key and every token that it was traded for, at once, and no other', async () => {
    const spare = await make()
    const tokens = [await tokenOf(spare.api_key), await tokenOf(spare.api_key)]
    expect(await parsed(await revoke(spare.id), RevokeApiKeyResponse)).toEqual({ revoked: true })
    for (const token of tokens) {
      expect(await refused(await me(token))).toMatchObject({ status: 401, code: 'token_revoked' })
    }
    expect(await refused(await signIn(spare.api_key))).toMatchObject({ status: 401, code: 'invalid_api_key' })
    expect((await me(client.token)).status).toBe(200)
    expect((await list()).map(({ id }) => id)).not.toContain(spare.id)
  })

  it('[D30] the key of the very token ends that token', async () => {
    await make()
    await parsed(await revoke(await currentId()), RevokeApiKeyResponse)
    expect(await refused(await me(client.token))).toMatchObject({ code: 'token_revoked' })
  })

  it('[EC 23] the last working key cannot be revoked, and the refusal says what to do', async () => {
    const answer = await refused(await revoke(await currentId()))
    expect(answer).toMatchObject({ status: 422, code: 'invalid_request' })
    expect(answer.message).toContain('make another first')
    expect((await signIn(client.key)).status).toBe(200)
  })

  it('[EC 23] two at once leave one key that works', async () => {
    const spare = await make()
    const ids = [await currentId(), spare.id]
    const token = await tokenOf(spare.api_key)
    const answers = await Promise.all([
      revoke(ids[0] ?? ''),
      send('DELETE', `${KEYS}/${ids[1]}`, undefined, { Authorization: `Bearer ${token}` }),
    ])
    const statuses = answers.map(({ status }) => status).sort()
    // The second may also find its own token ended by the first.
    expect([
      [200, 401],
      [200, 422],
    ]).toContainEqual(statuses)
    const works = [(await signIn(client.key)).status, (await signIn(spare.api_key)).status]
    expect(works.sort()).toEqual([200, 401])
  })

  it('[D49] an unknown, a foreign and a revoked key look alike: 404', async () => {
    const stranger = await makeClient()
    const spare = await make()
    const foreign = await refused(await revoke(spare.id, stranger))
    expect(foreign).toMatchObject({ status: 404, code: 'invalid_request' })
    expect(foreign).toEqual(await refused(await revoke(newId(), stranger)))
    await revoke(spare.id)
    expect(await refused(await revoke(spare.id))).toEqual(foreign)
  })

  it('[EC 1] takes any spelling of the id, and what is none is refused with 400', async () => {
    const spare = await make()
    expect(await refused(await revoke('nonsense'))).toMatchObject({ status: 400, code: 'invalid_request' })
    expect((await revoke(`%7B${spare.id.toUpperCase()}%7D`)).status).toBe(200)
  })

  it('[D30] a sign-in that is under way while its key ends gets no token', async () => {
    const spare = await make()
    const db = openDatabase(env.DB)
    const token = {
      id: newId(),
      userId: client.userId,
      digest: 'd',
      apiKeyId: spare.id,
      createdAt: Date.now(),
      expiresAt: Date.now() + 1000,
    }
    expect(await createToken(db, token)).toBe(true)
    await revoke(spare.id)
    expect(await createToken(db, { ...token, id: newId() })).toBe(false)
    expect((await list()).map(({ id }) => id)).not.toContain(spare.id)
  })

  it('[D30] a token of before keys were recorded ends with the first key, and with that alone', async () => {
    const start = Date.now()
    await env.DB.prepare('UPDATE auth_tokens SET api_key_id = NULL WHERE user_id = ?')
      .bind(client.userId)
      .run()
    setClock(start + 60_000)
    const second = await make()
    const third = await make()
    const admin = await tokenOf(third.api_key)
    const end = (id: string) =>
      send('DELETE', `${KEYS}/${id}`, undefined, { Authorization: `Bearer ${admin}` })
    const [first] = await list(admin)
    await parsed(await end(second.id), RevokeApiKeyResponse)
    expect((await me(client.token)).status).toBe(200)
    await parsed(await end(first?.id ?? ''), RevokeApiKeyResponse)
    expect(await refused(await me(client.token))).toMatchObject({ code: 'token_revoked' })
  })

  it('[D30] the key and its tokens end in one transaction', async () => {
    const spare = await make()
    const batch = vi.spyOn(env.DB, 'batch')
    await revoke(spare.id)
    const written = batch.mock.calls
      .map(([statements]) =>
        (statements as unknown as { statement: string }[]).map(({ statement }) => statement),
      )
      .filter((statements) => statements.some((statement) => /^update/i.test(statement)))
    expect(written).toEqual([
      expect.arrayContaining([
        expect.stringMatching(/^update "api_keys"/i),
        expect.stringMatching(/^update "auth_tokens"/i),
      ]),
    ])
  })
})
