import { env } from 'cloudflare:workers'
import { beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { ExportRecord } from '../../src/protocol/execution/export.ts'
import { PolicySettingResponse } from '../../src/protocol/execution/settings.ts'
import { openDatabase } from '../../src/storage/d1/database.ts'
import { loadDefaultPolicy } from '../../src/storage/d1/settings.ts'
import { MAX_D1_TEXT_BYTES } from '../../src/storage/limits.ts'
import { makeExecute } from '../support/workers/bodies.ts'
import { type Client, makeClient, parsed, refused } from '../support/workers/router.ts'

const PATH = '/api/v1/settings/policy'
const { policy } = makeExecute('hi')
const preferences = { auto_apply: false, local_only: true, no_network: true }

let first: Client
let client: Client
beforeAll(async () => {
  first = await makeClient()
})
beforeEach(async () => {
  client = await makeClient()
})

const put = (body: unknown) => client.send('PUT', PATH, body)
const get = async () => parsed(await client.send('GET', PATH), PolicySettingResponse)

describe('the policy of an account', () => {
  it('[D07] is nothing before one was published', async () => {
    expect(await get()).toEqual({})
    expect(await loadDefaultPolicy(openDatabase(env.DB), client.userId)).toBeNull()
  })

  it('[D07] is stored with the preferences, whole, and replaced by the next', async () => {
    const put1 = await parsed(await put({ policy, local_preferences: preferences }), PolicySettingResponse)
    expect(put1).toMatchObject({ policy, local_preferences: preferences })
    expect(await get()).toEqual(put1)
    const stored = await loadDefaultPolicy(openDatabase(env.DB), client.userId)
    expect(stored).toMatchObject({ policy, localPreferences: preferences })
    await put({ policy: { ...policy, source: 'another' } })
    expect(await get()).toMatchObject({
      policy: { source: 'another' },
      local_preferences: { auto_apply: false, local_only: false, no_network: false },
    })
  })

  it('is of one account', async () => {
    await put({ policy })
    expect(await parsed(await first.send('GET', PATH), PolicySettingResponse)).toEqual({})
  })

  it('needs a token', async () => {
    expect((await refused(await client.send('GET', PATH, undefined, { Authorization: '' }))).status).toBe(401)
  })

  const rule = { name: 'r', model: 'anthropic/claude' }
  const withRule = (fields: object) => ({ ...policy, routing: { rules: [{ ...rule, ...fields }] } })
  it.each([
    ['another shape', { routing: {} }, 'invalid_request'],
    ['an unknown model reference', withRule({ model: 'nothing' }), 'invalid_model_reference'],
    [
      'a capability that no model has',
      withRule({ requires_capabilities: { fly: true } }),
      'missing_capability',
    ],
    [
      'a permission that a rule loosens',
      {
        ...withRule({ required_permissions: { permissions: { shell: 'allow' } } }),
        tools: { permissions: { shell: 'deny' } },
      },
      'permission_expansion',
    ],
    ['more than its bounds', withRule({ name: 'x'.repeat(300) }), 'invalid_request'],
  ])(
    '[D07] is checked as that of execute is: %s is refused, and nothing is stored',
    async (_what, odd, code) => {
      expect(await refused(await put({ policy: odd }))).toMatchObject({ status: 422, code })
      expect(await get()).toEqual({})
    },
  )

  it('[D27] is refused when it is longer than a row of D1 holds', async () => {
    const keywords = Array.from({ length: 1000 }, (_, index) => `${index}-${'k'.repeat(1000)}`)
    const long = { ...policy, classification: { rules: [{ intent: 'edit', keywords }] } }
    expect(await refused(await put({ policy: long }))).toMatchObject({
      status: 422,
      code: 'invalid_request',
      details: { max_bytes: MAX_D1_TEXT_BYTES },
    })
    expect(await get()).toEqual({})
  })

  it('is part of the export of the account', async () => {
    const before = await (await client.send('GET', '/api/v1/export')).text()
    expect(before).not.toContain('"settings"')
    await put({ policy, local_preferences: preferences })
    const lines = (await (await client.send('GET', '/api/v1/export')).text()).trim().split('\n')
    const records = lines.map((line) => ExportRecord.parse(JSON.parse(line)))
    expect(records).toContainEqual({ type: 'settings', default_policy: await get() })
  })
})
