import { mkdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { credentialsPath, loadCredentials, saveCredentials } from '../../../src/cli/credentials.ts'
import { runCli } from '../../../src/cli/program.ts'
import { configHome } from '../../support/node/config-home.ts'
import { type ScriptedIo, scriptedIo } from '../../support/node/scripted-io.ts'
import {
  hangUp,
  json,
  type Reply,
  refusal,
  type ScriptedRouter,
  startScriptedRouter,
} from '../../support/node/scripted-router.ts'

const SIGN_IN = '/api/v1/auth/sign-in'
const ME = '/api/v1/auth/me'
const KEYS = '/api/v1/auth/keys'
const OLD = '0197d0a2-6c1e-7c52-9a55-0c6a6f1d2b11'
const NEW = '0198d0a2-6c1e-7c52-9a55-0c6a6f1d2b11'
const at = '2026-01-01T00:00:00.000Z'

let router: ScriptedRouter
let io: ScriptedIo
beforeEach(async () => {
  router = await startScriptedRouter()
  io = scriptedIo()
  configHome()
  vi.stubEnv('SWITCHYARD_URL', router.url)
  saveCredentials(router.url, { user_id: 'u1', api_key: 'sk-old' })
})
afterEach(async () => {
  expect(router.unexpected).toEqual([])
  await router.close()
})
const cli = (...argv: string[]) => runCli(argv, { makeIo: () => io })
const storedKey = () => {
  const stored = loadCredentials(router.url)
  return stored.ok ? stored.value?.api_key : undefined
}

const keyId = (n: number) => `0198d0a2-6c1e-7c52-9a55-0c6a6f1d2b${String(n).padStart(2, '0')}`

/**
 * A router that knows its keys. The request with number `failAt` goes wrong: `before` it is done, or `after`, so that
 * only its answer is lost. At each moment it is noted whether the key that is stored works.
 */
function keepKeys(failAt = 0, how: 'before' | 'after' = 'before') {
  const working = new Map([[OLD, 'sk-old']])
  const tokens = new Map<string, string>()
  const moments: boolean[] = []
  const look = () => moments.push([...working.values()].includes(storedKey() ?? ''))
  let requests = 0
  let made = 0
  type Answer = { status: number; body: unknown }
  const refused: Answer = { status: 401, body: { error: { code: 'invalid_token', message: 'no' } } }
  const serve =
    (act: (request: Parameters<Reply>[1], by: string) => Answer): Reply =>
    (response, request) => {
      const number = ++requests
      look()
      if (number === failAt && how === 'before') return hangUp(response, request)
      const by = tokens.get(request.headers.authorization?.slice('Bearer '.length) ?? '') ?? ''
      const signsIn = request.path === SIGN_IN
      const { status, body } = signsIn || working.has(by) ? act(request, by) : refused
      look()
      if (number === failAt) return hangUp(response, request)
      return json(body, status)(response, request)
    }
  router.always(
    'POST',
    SIGN_IN,
    serve(({ headers }) => {
      const id = [...working].find(([, key]) => key === headers['x-smista-api-key'])?.[0]
      if (id === undefined) return refused
      const token = `token-${tokens.size}`
      tokens.set(token, id)
      return { status: 200, body: { token, expires_at: '2099-01-01T00:00:00.000Z' } }
    }),
  )
  router.always(
    'GET',
    KEYS,
    serve((_request, by) => {
      const keys = [...working.keys()].map((id) => ({ id, created_at: at, current: id === by }))
      return { status: 200, body: { keys } }
    }),
  )
  router.always(
    'POST',
    KEYS,
    serve(() => {
      const id = keyId(++made)
      working.set(id, `sk-${made}`)
      return { status: 201, body: { id, api_key: `sk-${made}`, created_at: at } }
    }),
  )
  for (const id of [OLD, keyId(1), keyId(2)]) {
    router.always(
      'DELETE',
      `${KEYS}/${id}`,
      serve(() => ({ status: 200, body: { revoked: working.delete(id) } })),
    )
  }
  return { working, moments }
}

describe('rotate', () => {
  test('the new key is stored and the old one revoked, and neither is printed', async () => {
    const { working } = keepKeys()
    expect(await cli('apikey', 'rotate')).toBe(0)
    expect([...working]).toEqual([[keyId(1), 'sk-1']])
    expect(loadCredentials(router.url)).toMatchObject({
      value: { user_id: 'u1', api_key: 'sk-1', token: { value: 'token-1' } },
    })
    expect(io.stderr).toBe(`key ${OLD} is replaced by ${keyId(1)}\n`)
    expect(io.stdout).toBe('')
  })

  test('the stored key works before and after every request: a process may die at any of them', async () => {
    const { moments } = keepKeys()
    expect(await cli('apikey', 'rotate')).toBe(0)
    // Sign in, list, make, sign in, revoke.
    expect(moments).toEqual(Array.from({ length: 10 }, () => true))
  })

  const REQUESTS = ['the sign-in', 'the list', 'the making', 'the new sign-in', 'the revoking']
  const interruptions = REQUESTS.flatMap((name, index) =>
    (['before', 'after'] as const).map((how) => ({ name, failAt: index + 1, how })),
  )
  test.each(interruptions)(
    'a router that is lost $how $name leaves a stored key that works, and the next try goes through',
    async ({ failAt, how }) => {
      const { working, moments } = keepKeys(failAt, how)
      expect(await cli('apikey', 'rotate')).toBe(3)
      expect([...working.values()]).toContain(storedKey())
      expect(io.stderr).not.toMatch(/sk-/)
      expect(await cli('apikey', 'rotate')).toBe(0)
      expect([...working.values()]).toContain(storedKey())
      expect(moments).not.toContain(false)
    },
  )

  test('a new key that cannot be stored is taken back', async () => {
    const { working } = keepKeys()
    // A folder where the new file is prepared: it can be neither written nor removed.
    mkdirSync(path.join(`${credentialsPath()}.${process.pid}.tmp`, 'in-the-way'), { recursive: true })
    const before = readFileSync(credentialsPath(), 'utf8')
    expect(await cli('apikey', 'rotate')).toBe(1)
    expect([...working]).toEqual([[OLD, 'sk-old']])
    expect(readFileSync(credentialsPath(), 'utf8')).toBe(before)
    expect(io.stderr).toContain('the old key stays')
  })

  test('a key from the environment is not stored here and cannot be rotated here', async () => {
    vi.stubEnv('SWITCHYARD_API_KEY', 'sk-env')
    expect(await cli('apikey', 'rotate')).toBe(2)
    expect(io.stderr).toContain('SWITCHYARD_API_KEY')
    expect(router.requests).toEqual([])
  })

  test('without an account it says how to get one', async () => {
    saveCredentials(router.url, null)
    expect(await cli('apikey', 'rotate')).toBe(3)
    expect(io.stderr).toContain('switchyard login')
  })
})

describe('list, new and revoke', () => {
  beforeEach(() => {
    saveCredentials(router.url, {
      user_id: 'u1',
      api_key: 'sk-old',
      token: { value: 't0', expires_at: '2099-01-01T00:00:00.000Z' },
    })
    router.always('GET', ME, json({ user_id: 'u1' }))
    const keys = [
      { id: OLD, created_at: at, last_used_at: '2026-02-03T04:05:06.000Z', current: true },
      { id: NEW, created_at: at, current: false },
    ]
    router.always('GET', KEYS, json({ keys }))
  })

  test('list shows when each was made and used, or JSON', async () => {
    expect(await cli('apikey', 'list')).toBe(0)
    expect(io.stdout).toBe(
      `${OLD}  made 2026-01-01 00:00  used 2026-02-03 04:05  signed in with\n${NEW}  made 2026-01-01 00:00  never used\n`,
    )
    io.stdout = ''
    expect(await cli('apikey', 'list', '--json')).toBe(0)
    expect(JSON.parse(io.stdout)).toMatchObject([{ id: OLD }, { id: NEW }])
  })

  test('new prints the key alone and stores nothing', async () => {
    router.script('POST', KEYS, json({ id: NEW, api_key: 'sk-new', created_at: at }, 201))
    expect(await cli('apikey', 'new')).toBe(0)
    expect(io.stdout).toBe('sk-new\n')
    expect(storedKey()).toBe('sk-old')
  })

  test('revoke asks first, and tells what the router says', async () => {
    expect(await cli('apikey', 'revoke', NEW)).toBe(2)
    io = scriptedIo({ isTty: true })
    io.confirmations.push(false)
    expect(await cli('apikey', 'revoke', NEW)).toBe(1)
    expect(router.count('DELETE', `${KEYS}/${NEW}`)).toBe(0)
    router.script('DELETE', `${KEYS}/${NEW}`, json({ revoked: true }), refusal(404, 'invalid_request'))
    expect(await cli('apikey', 'revoke', NEW, '--yes')).toBe(0)
    expect(await cli('apikey', 'revoke', NEW, '--yes')).toBe(1)
  })

  test('the key that one is signed in with is not revoked but rotated', async () => {
    expect(await cli('apikey', 'revoke', `{${OLD.toUpperCase()}}`, '--yes')).toBe(2)
    expect(io.stderr).toContain('apikey rotate')
  })
})
