import { env } from 'cloudflare:workers'
import { describe, expect, it } from 'vitest'
import {
  BootstrapResponse,
  MeResponse,
  SignInResponse,
  SignOutResponse,
} from '../../src/protocol/execution/auth.ts'
import { digestOf } from '../../src/storage/digest.ts'
import { eachCase } from '../support/workers/each-case.ts'
import { clientWith, makeClient, ORIGIN, parsed, refused, send, sendWith } from '../support/workers/router.ts'

const BOOTSTRAP = '/api/v1/auth/bootstrap'
const SIGN_IN = '/api/v1/auth/sign-in'
const ME = '/api/v1/auth/me'
const DEPLOYED = { LOCAL_DEV: undefined }

const signIn = (key: string) => send('POST', SIGN_IN, undefined, { 'X-Smista-Api-Key': key })
const me = (authorization: string) => send('GET', ME, undefined, { Authorization: authorization })
const compact = (uuid: string) => uuid.replaceAll('-', '')
/** The same id with another secret. */
const forge = (secret: string) =>
  secret.slice(0, -8) + (secret.endsWith('aaaaaaaa') ? 'bbbbbbbb' : 'aaaaaaaa')

const changeToken = (token: string, column: 'expires_at' | 'revoked_at', value: number) =>
  env.DB.prepare(`UPDATE auth_tokens SET ${column} = ? WHERE replace(id, '-', '') = ?`)
    .bind(value, token.slice(0, 32))
    .run()
const disable = (userId: string) =>
  env.DB.prepare('UPDATE users SET disabled_at = ? WHERE id = ?').bind(Date.now(), userId).run()

describe('bootstrap', () => {
  it('[D43] is open on a local router that has no bootstrap token', async () => {
    const account = await parsed(await send('POST', BOOTSTRAP), BootstrapResponse, 201)
    expect(account.user_id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
  })

  it('[EC 2.2] makes another user on every call', async () => {
    const [first, second] = [await makeClient(), await makeClient()]
    expect(first.userId).not.toBe(second.userId)
    expect(first.key).not.toBe(second.key)
  })

  it('[D43] is closed in a deployment without the secret', async () => {
    const response = await sendWith(DEPLOYED, 'POST', BOOTSTRAP)
    expect(await refused(response)).toMatchObject({ status: 403, code: 'forbidden' })
  })

  eachCase(
    [
      { where: 'a deployment', vars: { ...DEPLOYED, BOOTSTRAP_TOKEN: 'open sesame' } },
      { where: 'a local router that has one', vars: { BOOTSTRAP_TOKEN: 'open sesame' } },
    ],
    ({ where }) => `[D43] asks for the bootstrap token in ${where}`,
    async ({ vars }) => {
      const ask = (headers: Record<string, string>) => sendWith(vars, 'POST', BOOTSTRAP, undefined, headers)
      expect(await refused(await ask({}))).toMatchObject({ status: 403, code: 'forbidden' })
      const wrong = await ask({ 'X-Smista-Bootstrap-Token': 'open sesam' })
      expect(await refused(wrong)).toMatchObject({ status: 403, code: 'forbidden' })
      const right = await ask({ 'X-Smista-Bootstrap-Token': 'open sesame' })
      await parsed(right, BootstrapResponse, 201)
    },
  )

  it.each(['https://evil.test', 'http://localhost:81', 'null', 'http://localhost.evil.test'])(
    '[D43] refuses the foreign origin %s, with the token too',
    async (origin) => {
      expect(await refused(await send('POST', BOOTSTRAP, undefined, { Origin: origin }))).toMatchObject({
        status: 403,
        code: 'forbidden',
      })
      const headers = { Origin: origin, 'X-Smista-Bootstrap-Token': 's' }
      const withToken = await sendWith({ BOOTSTRAP_TOKEN: 's' }, 'POST', BOOTSTRAP, undefined, headers)
      expect(withToken.status).toBe(403)
    },
  )

  it('[D43] serves the router’s own origin', async () => {
    await parsed(await send('POST', BOOTSTRAP, undefined, { Origin: ORIGIN }), BootstrapResponse, 201)
  })
})

describe('host names', () => {
  it.each(['http://localhost/status', 'http://127.0.0.1:8787/status', 'http://[::1]:8787/status'])(
    '[D43] a local router answers at %s',
    async (url) => {
      expect((await sendWith({}, 'GET', url)).status).toBe(200)
    },
  )

  it.each(['http://evil.test/status', 'http://localhost.evil.test/status', 'http://192.168.1.5/status'])(
    '[D43] a local router does not answer at %s, a deployment does',
    async (url) => {
      expect(await refused(await sendWith({}, 'GET', url))).toMatchObject({ status: 403, code: 'forbidden' })
      expect((await sendWith(DEPLOYED, 'GET', url)).status).toBe(200)
    },
  )
})

describe('sign-in', () => {
  it('[EC 23] keys and tokens carry their id and more than 256 random bits', async () => {
    const { userId, key, token } = await makeClient()
    expect(key).toMatch(new RegExp(`^sk-smista-api01-${compact(userId)}-[A-Za-z0-9]{96}$`))
    expect(token).toMatch(/^[0-9a-f]{32}-[a-z0-9]{64}$/)
  })

  it('[EC 2.3] each sign-in mints another token and older ones stay valid', async () => {
    const { key, token, userId } = await makeClient()
    const second = await parsed(await signIn(key), SignInResponse)
    expect(second.token).not.toBe(token)
    for (const known of [token, second.token]) {
      expect(await parsed(await me(`Bearer ${known}`), MeResponse)).toEqual({ user_id: userId })
    }
  })

  it('[EC 23] a token lives a day, or as long as the deployment says', async () => {
    const { key } = await makeClient()
    const lifeOf = async (vars: { TOKEN_TTL_SECONDS?: string }) => {
      const before = Date.now()
      const headers = { 'X-Smista-Api-Key': key }
      const { expires_at } = await parsed(
        await sendWith(vars, 'POST', SIGN_IN, undefined, headers),
        SignInResponse,
      )
      const lowest = Date.parse(expires_at) - Date.now()
      return { lowest, highest: Date.parse(expires_at) - before }
    }
    const day = await lifeOf({})
    expect(day.lowest).toBeLessThanOrEqual(86_400_000)
    expect(day.highest).toBeGreaterThanOrEqual(86_400_000)
    const minute = await lifeOf({ TOKEN_TTL_SECONDS: '60' })
    expect(minute.lowest).toBeLessThanOrEqual(60_000)
    expect(minute.highest).toBeGreaterThanOrEqual(60_000)
  })

  it('[EC 2.3] without a key the credentials are missing', async () => {
    expect(await refused(await send('POST', SIGN_IN))).toMatchObject({
      status: 401,
      code: 'missing_credentials',
    })
  })

  it('[EC 2.3] every wrong key gets the same answer, so that nobody learns which users exist', async () => {
    const { userId, key } = await makeClient()
    const other = await makeClient()
    const disabled = await makeClient()
    await disable(disabled.userId)
    const secretOf = (whole: string) => whole.slice(-96)
    const wrong = {
      empty: '',
      malformed: 'sk-smista-api01-nonsense',
      'of another version': key.replace('api01', 'api02'),
      'of an unknown user': `sk-smista-api01-${'0'.repeat(32)}-${secretOf(key)}`,
      'with another secret': forge(key),
      'of one user with the secret of another': `sk-smista-api01-${compact(userId)}-${secretOf(other.key)}`,
      'with a tail': `${key}a`,
      'of a disabled user': disabled.key,
    }
    const answers = await Promise.all(
      Object.values(wrong).map(async (one) => {
        const response = await signIn(one)
        return { status: response.status, text: await response.text() }
      }),
    )
    const [first] = answers
    expect(first).toMatchObject({ status: 401, text: expect.stringContaining('"invalid_api_key"') })
    expect(answers).toEqual(answers.map(() => first))
    expect((await signIn(key)).status).toBe(200)
  })
})

describe('tokens', () => {
  it('[D30] sign-out holds at once, for this token alone, and leaves the key', async () => {
    const client = await makeClient()
    const second = await parsed(await signIn(client.key), SignInResponse)
    expect(await parsed(await client.send('POST', '/api/v1/auth/sign-out'), SignOutResponse)).toEqual({
      revoked: true,
    })
    expect(await refused(await me(`Bearer ${client.token}`))).toMatchObject({
      status: 401,
      code: 'token_revoked',
    })
    expect((await me(`Bearer ${second.token}`)).status).toBe(200)
    expect((await signIn(client.key)).status).toBe(200)
  })

  eachCase(
    [
      { column: 'expires_at' as const, code: 'token_expired' },
      { column: 'revoked_at' as const, code: 'token_revoked' },
    ],
    ({ code }) => `[EC 23] ${code} is told to the holder of the genuine token only`,
    async ({ column, code }) => {
      const { token } = await makeClient()
      await changeToken(token, column, Date.now() - 1)
      expect(await refused(await me(`Bearer ${token}`))).toMatchObject({ status: 401, code })
      const forged = await refused(await me(`Bearer ${forge(token)}`))
      expect(forged).toMatchObject({ status: 401, code: 'invalid_token' })
      expect(forged).toEqual(await refused(await me(`Bearer ${'0'.repeat(32)}-${'a'.repeat(64)}`)))
    },
  )

  it('[D31] a disabled user fails like an unknown one', async () => {
    const { userId, token } = await makeClient()
    expect((await me(`Bearer ${token}`)).status).toBe(200)
    await disable(userId)
    expect(await refused(await me(`Bearer ${token}`))).toMatchObject({ status: 401, code: 'invalid_token' })
  })

  it('[EC 1.1] the scheme is `Bearer` and one space, as written', async () => {
    const { token } = await makeClient()
    expect((await me(`Bearer ${token}`)).status).toBe(200)
    for (const header of [
      `bearer ${token}`,
      `BEARER ${token}`,
      `Bearer  ${token}`,
      `Bearer${token}`,
      `Token ${token}`,
      token,
      'Bearer',
      `Bearer ${token.toUpperCase()}`,
      `Bearer ${token}x`,
    ]) {
      expect(await refused(await me(header)), header).toMatchObject({ status: 401, code: 'invalid_token' })
    }
    expect(await refused(await send('GET', ME))).toMatchObject({ status: 401, code: 'missing_credentials' })
  })

  it('a 401 names the scheme that would help', async () => {
    expect((await send('GET', ME)).headers.get('WWW-Authenticate')).toBe('Bearer')
  })

  it('[EC 22] the database holds digests, never a key or a token', async () => {
    const client = await makeClient()
    await clientWith(client.userId, client.key, client.token).send('POST', '/api/v1/sessions', { title: 't' })
    const { results: tables } = await env.DB.prepare(
      "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE '\\_cf%' ESCAPE '\\'",
    ).all<{ name: string }>()
    let stored = ''
    for (const { name } of tables) {
      stored += JSON.stringify((await env.DB.prepare(`SELECT * FROM "${name}"`).all()).results)
    }
    for (const secret of [client.key, client.token]) {
      expect(stored).toContain(await digestOf(secret))
      // The ids in front are no secret; what follows them is.
      expect(stored).not.toContain(secret.split('-').at(-1))
    }
  })
})
