import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { SwitchyardClient } from '../../../src/client/client.ts'
import { err, ok } from '../../../src/protocol/result.ts'
import { executeRequest } from '../../support/node/run-request.ts'
import {
  hangUp,
  json,
  type Reply,
  refusal,
  type ScriptedRouter,
  startScriptedRouter,
} from '../../support/node/scripted-router.ts'
import { completed, paths, SESSION, sessionSummary } from '../../support/node/scripted-router-turns.ts'

let router: ScriptedRouter
beforeEach(async () => {
  router = await startScriptedRouter()
})
afterEach(async () => {
  expect(router.unexpected).toEqual([])
  await router.close()
})

const client = (options: Partial<ConstructorParameters<typeof SwitchyardClient>[0]> = {}) =>
  new SwitchyardClient({ baseUrl: router.url, token: 'tok', ...options })

const ME = '/api/v1/auth/me'

describe('accounts', () => {
  test('[EC 2.3] signing in sends the key in its header and uses the token from then on', async () => {
    router.script('POST', '/api/v1/auth/sign-in', json({ token: 't1', expires_at: '2030-01-01T00:00:00Z' }))
    router.script('GET', ME, json({ user_id: 'u1' }))
    const anonymous = new SwitchyardClient({ baseUrl: router.url })
    expect(await anonymous.signIn('sk-key')).toEqual(ok({ token: 't1', expires_at: '2030-01-01T00:00:00Z' }))
    expect(await anonymous.me()).toEqual(ok({ user_id: 'u1' }))
    expect(
      router.requests.map(({ headers }) => [headers['x-smista-api-key'], headers.authorization]),
    ).toEqual([
      ['sk-key', undefined],
      [undefined, 'Bearer t1'],
    ])
  })

  test('[EC 2.4] after signing out the token is not sent any more', async () => {
    router.script('POST', '/api/v1/auth/sign-out', json({ revoked: true }))
    router.script('GET', ME, refusal(401, 'missing_credentials'))
    const one = client()
    await one.signOut()
    expect(await one.me()).toMatchObject({ error: { code: 'missing_credentials' } })
    expect(router.requests.at(-1)?.headers.authorization).toBeUndefined()
  })

  test('a bootstrap token travels in its header', async () => {
    router.script('POST', '/api/v1/auth/bootstrap', json({ user_id: 'u1', api_key: 'k' }, 201))
    expect(await client().bootstrap('secret')).toEqual(ok({ user_id: 'u1', api_key: 'k' }))
    expect(router.requests[0]?.headers['x-smista-bootstrap-token']).toBe('secret')
  })
})

describe('sessions', () => {
  test('[EC 2.6-2.10] every call goes to its place and is parsed', async () => {
    const one = client()
    router.script('POST', '/api/v1/sessions', json({ session: sessionSummary }, 201))
    router.script('GET', '/api/v1/sessions?scope=%2Fa+b&title=x', json({ sessions: [sessionSummary] }))
    router.script(
      'PUT',
      `/api/v1/sessions/${SESSION}`,
      json({ session: { ...sessionSummary, archived: true } }),
    )
    router.script('DELETE', `/api/v1/sessions/${SESSION}`, json({ deleted: true }))
    expect(await one.sessions.create({ title: 'a title' }, { idempotencyKey: 'k1' })).toEqual(
      ok(sessionSummary),
    )
    expect(router.requests[0]?.headers['idempotency-key']).toBe('k1')
    expect(await one.sessions.list({ scope: '/a b', title: 'x' })).toEqual(ok([sessionSummary]))
    expect(await one.sessions.update(SESSION, { archived: true })).toMatchObject({
      value: { archived: true },
    })
    expect(await one.sessions.delete(SESSION)).toEqual(ok({ deleted: true }))
  })

  test('[U23] what is allowed for the rest of a run is listed with it and taken back by its id', async () => {
    const grant = { id: SESSION, kind: 'remote_disclosure', provider: 'anthropic', model: 'm', paths: ['a'] }
    const body = { status: 'idle', data: { trace_id: 'trace:1' }, grants: [grant] }
    router.script('GET', `/api/v1/sessions/${SESSION}/run`, json(body))
    router.script('DELETE', `/api/v1/sessions/${SESSION}/grants/a%2Fb`, json({ revoked: true }))
    expect(await client().currentRun(SESSION)).toEqual(ok(body))
    expect(await client().revokeGrant(SESSION, 'a/b')).toEqual(ok({ revoked: true }))
  })

  test('a session id is one path segment whatever it holds', async () => {
    router.script('GET', '/api/v1/sessions/..%2F..%2Fauth%2Fme', refusal(400, 'invalid_session_id'))
    expect(await client().sessions.get('../../auth/me')).toMatchObject({
      error: { code: 'invalid_session_id' },
    })
  })
})

describe('devices', () => {
  const DEVICES = '/api/v1/devices'
  const REQUESTS = '/api/v1/connect-requests'
  const ID = '0011223344556677'
  const expires_at = '2030-01-01T00:02:00.000Z'
  const device = {
    device_id: ID,
    device_name: 'A phone',
    device_kind: 'phone' as const,
    paired_at: '2030-01-01T00:00:00.000Z',
    online: true,
  }
  const waiting = {
    request_id: ID,
    device_name: 'A phone',
    device_kind: 'phone' as const,
    platform: 'ios',
    expires_at,
  }

  test('[U31] pairing is opened without a body, and its code is handed over as it came', async () => {
    const gateway_id = '0'.repeat(32)
    const credential = 'c'.repeat(43)
    const qr = { protocol_version: 1 as const, address: 'r.example:443', gateway_id, credential }
    const opened = { code: '4821-9034', credential, gateway_id, qr, expires_at }
    router.script('POST', '/api/v1/pairing', json(opened, 201))
    expect(await client().pairing.open()).toEqual(ok(opened))
    expect(router.requests[0]?.body).toBeUndefined()
  })

  test('[U32] they are listed, renamed and revoked by their id', async () => {
    router.script('GET', DEVICES, json({ devices: [device] }))
    router.script('PUT', `${DEVICES}/${ID}`, json({ device: { ...device, device_name: 'Other' } }))
    router.script('DELETE', `${DEVICES}/${ID}`, json({ revoked: true }))
    const one = client()
    expect(await one.devices.list()).toEqual(ok([device]))
    expect(await one.devices.rename(ID, 'Other')).toEqual(ok({ ...device, device_name: 'Other' }))
    expect(await one.devices.revoke(ID)).toEqual(ok({ revoked: true }))
    expect(router.requests.map(({ body }) => body)).toEqual([undefined, { name: 'Other' }, undefined])
    expect(router.requests.map(({ headers }) => headers.authorization)).toEqual(Array(3).fill('Bearer tok'))
  })

  test('[D41] those that ask are listened for, listed, accepted and denied', async () => {
    router.script('POST', `${REQUESTS}/listen`, json({ expires_at }))
    router.script('GET', REQUESTS, json({ requests: [waiting] }))
    router.script('POST', `${REQUESTS}/${ID}/accept`, json({ code: '4821-9034', expires_at }))
    router.script('POST', `${REQUESTS}/${ID}/deny`, json({ denied: true }))
    const { connectRequests } = client()
    expect(await connectRequests.listen()).toEqual(ok({ expires_at }))
    expect(await connectRequests.list()).toEqual(ok([waiting]))
    expect(await connectRequests.accept(ID)).toEqual(ok({ code: '4821-9034', expires_at }))
    expect(await connectRequests.deny(ID)).toEqual(ok({ denied: true }))
  })

  test('[EC 29] a refusal is data, and an id is one path segment whatever it holds', async () => {
    const escaped = '..%2F..%2Fauth%2Fme'
    router.script('DELETE', `${DEVICES}/${escaped}`, refusal(400, 'invalid_request'))
    router.script('PUT', `${DEVICES}/${escaped}`, refusal(404, 'invalid_request'))
    router.script('POST', `${REQUESTS}/${escaped}/accept`, refusal(404, 'invalid_request'))
    router.script('POST', `${REQUESTS}/${escaped}/deny`, refusal(404, 'invalid_request'))
    const one = client()
    const refused = { ok: false, error: { kind: 'http', code: 'invalid_request' } }
    expect(await one.devices.revoke('../../auth/me')).toMatchObject(refused)
    expect(await one.devices.rename('../../auth/me', 'n')).toMatchObject(refused)
    expect(await one.connectRequests.accept('../../auth/me')).toMatchObject(refused)
    expect(await one.connectRequests.deny('../../auth/me')).toMatchObject(refused)
  })
})

describe('provider keys', () => {
  test('[EC 1.1] they go with execute and continue, in headers, and with nothing else', async () => {
    const { type: _type, ...envelope } = completed('x')
    router.always('POST', paths.execute, json(envelope))
    router.always('POST', paths.continue, json(envelope))
    router.always('GET', ME, json({ user_id: 'u1' }))
    const one = client({
      providerKeys: {
        anthropic: 'ka',
        'openai-compat:my-lab': 'kl',
        'openai-compat:openai': 'never',
        unknown: 'never',
      },
    })
    await one.execute(SESSION, executeRequest('hi'))
    await one.continueRun(SESSION, { type: 'break' })
    await one.me()
    const sent = router.requests.map(({ headers }) =>
      Object.entries(headers).filter(([name]) => name.startsWith('x-smista-provider-')),
    )
    const keys = [
      ['x-smista-provider-anthropic-api-key', 'ka'],
      ['x-smista-provider-my-lab-api-key', 'kl'],
    ]
    expect(sent).toEqual([keys, keys, []])
    expect(JSON.stringify(router.requests.map(({ body }) => body))).not.toContain('ka')
  })

  test('[U37] a redirect is not followed, so no key goes where it points', async () => {
    const elsewhere = await startScriptedRouter()
    const redirect: Reply = (response) => {
      response.writeHead(307, { Location: `${elsewhere.url}/api/v1/auth/me` })
      response.end()
    }
    router.script('POST', paths.execute, redirect)
    const answer = await client({ providerKeys: { anthropic: 'ka' } }).execute(SESSION, executeRequest('hi'))
    expect(answer).toMatchObject({ ok: false, error: { kind: 'not_json', status: 307 } })
    expect(elsewhere.requests).toEqual([])
    await elsewhere.close()
  })
})

describe('failures are data', () => {
  test('[EC 3] the error envelope keeps code, message and details', async () => {
    router.script(
      'GET',
      ME,
      json({ error: { code: 'missing_capability', message: 'm', details: { capability: 'tools' } } }, 422),
    )
    expect(await client().me()).toEqual(
      err({
        kind: 'http',
        status: 422,
        code: 'missing_capability',
        message: 'm',
        details: { capability: 'tools' },
      }),
    )
  })

  test('a page of a proxy is not taken for the router', async () => {
    const page: Reply = (response) => {
      response.writeHead(200, { 'Content-Type': 'text/html' })
      response.end('<html>Please sign in</html>')
    }
    router.script('GET', ME, page)
    const answer = await client().me()
    expect(answer).toMatchObject({ error: { kind: 'not_json', status: 200 } })
  })

  test('JSON of another shape says where it differs', async () => {
    router.script('GET', ME, json({ user_id: 7 }))
    const answer = await client().me()
    expect(answer).toMatchObject({ error: { kind: 'unexpected_body' } })
    expect(answer.ok ? '' : answer.error.message).toContain('user_id')
  })

  test('no answer is a network failure that names the reason', async () => {
    router.script('GET', ME, hangUp)
    expect(await client().me()).toMatchObject({ error: { kind: 'network' } })
    const closed = await startScriptedRouter()
    await closed.close()
    const answer = await new SwitchyardClient({ baseUrl: closed.url }).me()
    expect(answer.ok ? '' : answer.error.message).toContain('ECONNREFUSED')
  })

  test('the caller’s signal gives an aborted failure', async () => {
    const stop = new AbortController()
    router.script('GET', ME, () => stop.abort())
    expect(await client().me({ signal: stop.signal })).toMatchObject({ error: { kind: 'aborted' } })
  })
})

describe('limits', () => {
  test('a 429 with Retry-After is waited out', async () => {
    router.script('GET', ME, refusal(429, 'rate_limited', { 'Retry-After': '0' }), json({ user_id: 'u1' }))
    expect(await client().me()).toEqual(ok({ user_id: 'u1' }))
  })

  test('the waiting is bounded in number', async () => {
    router.always('GET', ME, refusal(429, 'rate_limited', { 'Retry-After': '0' }))
    expect(await client().me()).toMatchObject({ error: { code: 'rate_limited', retryAfterMs: 0 } })
    expect(router.requests).toHaveLength(4)
  })

  test.each([
    ['asks for a long wait', refusal(429, 'rate_limited', { 'Retry-After': '3600' })],
    ['names no wait', refusal(429, 'rate_limited')],
    [
      'is a provider’s, whose run is over',
      json({ error: { code: 'rate_limited', message: 'm', details: { provider: 'openai' } } }, 429, {
        'Retry-After': '0',
      }),
    ],
  ])('a 429 that %s is reported at once', async (_what, reply) => {
    router.script('GET', ME, reply)
    expect(await client().me()).toMatchObject({ error: { status: 429 } })
    expect(router.requests).toHaveLength(1)
  })
})

describe('an expired token', () => {
  test('[EC 29.11] is renewed once and the request repeated with its key', async () => {
    router.script(
      'POST',
      '/api/v1/sessions',
      refusal(401, 'token_expired'),
      json({ session: sessionSummary }, 201),
    )
    let renewals = 0
    const one = client({ reauthenticate: async () => ok(`new${++renewals}`) })
    expect(await one.sessions.create({ title: 't' }, { idempotencyKey: 'k' })).toEqual(ok(sessionSummary))
    expect(router.requests.map(({ headers }) => headers.authorization)).toEqual(['Bearer tok', 'Bearer new1'])
    expect(router.requests[1]?.headers['idempotency-key']).toBe('k')
  })

  test('[EC 29.11] is reported when the new token is refused as well', async () => {
    router.always('GET', ME, refusal(401, 'token_expired'))
    let renewals = 0
    const one = client({ reauthenticate: async () => ok(`new${++renewals}`) })
    expect(await one.me()).toMatchObject({ error: { code: 'token_expired' } })
    expect(renewals).toBe(1)
  })

  test('requests that expire together share one renewal', async () => {
    const expired = () => Response.json({ error: { code: 'token_expired', message: 'm' } }, { status: 401 })
    let requests = 0
    let renewals = 0
    let release: () => void = () => undefined
    const released = new Promise<void>((resolve) => {
      release = resolve
    })
    const one = client({
      fetch: async () => (++requests <= 2 ? expired() : Response.json({ user_id: 'u1' })),
      reauthenticate: async () => {
        renewals++
        await released
        return ok('new')
      },
    })
    const both = Promise.all([one.me(), one.me()])
    // Everything above is in memory: after a turn of the event loop both wait for the renewal.
    for (let i = 0; i < 5; i++) await new Promise((resolve) => setImmediate(resolve))
    release()
    expect(await both).toEqual([ok({ user_id: 'u1' }), ok({ user_id: 'u1' })])
    expect({ renewals, requests }).toEqual({ renewals: 1, requests: 4 })
  })

  test('a revoked token is not renewed behind the user’s back', async () => {
    router.script('GET', ME, refusal(401, 'token_revoked'))
    let renewals = 0
    const one = client({ reauthenticate: async () => ok(`new${++renewals}`) })
    expect(await one.me()).toMatchObject({ error: { code: 'token_revoked' } })
    expect(renewals).toBe(0)
  })
})
