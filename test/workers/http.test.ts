import { beforeAll, describe, expect, it } from 'vitest'
import { ROUTES } from '../../src/protocol/execution/routes.ts'
import { UpdateSessionResponse } from '../../src/protocol/execution/session.ts'
import { MAX_BODY_BYTES } from '../../src/storage/limits.ts'
import { providerCredentials } from '../../src/worker/provider-headers.ts'
import { makeExecute } from '../support/workers/bodies.ts'
import { eachCase } from '../support/workers/each-case.ts'
import { Hold } from '../support/workers/hold.ts'
import {
  type Client,
  type Headers,
  makeClient,
  parsed,
  refused,
  send,
  sendWith,
} from '../support/workers/router.ts'
import { scriptModels } from '../support/workers/scripted-models.ts'

const models = scriptModels()

let client: Client
let sessionId: string
beforeAll(async () => {
  client = await makeClient()
  sessionId = await client.newSession()
})

const UNKNOWN_SESSION = '01890000-0000-7000-8000-000000000000'
const inSession = (rest: string, id = sessionId) => `/api/v1/sessions/${id}${rest}`
const bearer = (token = client.token) => ({ Authorization: `Bearer ${token}` })

describe('Accept', () => {
  eachCase(
    [
      { accept: undefined, streams: false },
      { accept: '*/*', streams: false },
      { accept: 'application/json', streams: false },
      { accept: 'text/*', streams: false },
      { accept: 'text/event-streams', streams: false },
      { accept: 'TEXT/EVENT-STREAM', streams: false },
      { accept: 'text/event-stream', streams: true },
      { accept: 'application/json,text/event-stream;q=0.1', streams: true },
      { accept: ' application/json , text/event-stream ; charset=utf-8', streams: true },
    ],
    ({ accept, streams }) => `[EC 1.1] \`${accept}\` asks for a stream: ${streams}`,
    async ({ accept, streams }) => {
      models.script({ text: ['hello'] })
      const id = await client.newSession()
      const response = await client.execute(
        id,
        makeExecute('hi'),
        accept === undefined ? {} : { Accept: accept },
      )
      expect(response.status).toBe(200)
      const type = response.headers.get('Content-Type') ?? ''
      expect(type.startsWith('text/event-stream')).toBe(streams)
      expect(type.startsWith('application/json')).toBe(!streams)
      await response.text()
    },
  )

  it('[EC 1.1] the `stream` route streams whatever is accepted', async () => {
    models.script({ text: ['hello'] })
    const response = await client.send('POST', inSession('/stream'), makeExecute('hi'))
    expect(response.headers.get('Content-Type')).toBe('text/event-stream')
    await response.text()
  })
})

describe('provider headers', () => {
  eachCase(
    [
      { header: 'X-Smista-Provider-Anthropic-Api-Key', provider: 'anthropic' },
      { header: 'x-smista-provider-OPENAI-api-key', provider: 'openai' },
      { header: 'X-Smista-Provider-Gemini-Api-Key', provider: 'gemini' },
      { header: 'X-Smista-Provider-Ollama-Api-Key', provider: 'ollama' },
      { header: 'X-Smista-Provider-My_Lab-2-Api-Key', provider: 'openai-compat:my_lab-2' },
      { header: 'X-Smista-Provider-Api-Key', provider: null },
      { header: 'X-Smista-Provider--Api-Key', provider: null },
      { header: 'X-Smista-Provider-a.b-Api-Key', provider: null },
      { header: 'X-Smista-Provider-lab-Api-Keys', provider: null },
      { header: 'Smista-Provider-lab-Api-Key', provider: null },
    ],
    ({ header, provider }) => `[EC 1.1] ${header} is the key of ${provider}`,
    ({ header, provider }) => {
      const credentials = providerCredentials(new Headers({ [header]: 'k' }))
      expect(credentials).toEqual(provider === null ? {} : { [provider]: 'k' })
    },
  )

  it('[EC 1.1] a value that is no visible text is skipped', () => {
    expect(providerCredentials(new Headers({ 'X-Smista-Provider-lab-Api-Key': 'schlüssel' }))).toEqual({})
  })
})

describe('credentials in the query', () => {
  const keys = ['api-key', 'api_key', 'apikey', 'authorization', 'password', 'secret', 'token', 'x-smista']
  const paths = ROUTES.map(({ method, path }) => ({
    method: method.toUpperCase(),
    path: path.replace('{session_id}', UNKNOWN_SESSION),
  }))

  it.each(keys)('[EC 1.2] a key with `%s` is refused on every route', async (key) => {
    for (const { method, path } of [...paths, { method: 'GET', path: '/nowhere' }]) {
      const spelt = `my${key.toUpperCase()}2`
      const answer = await refused(await send(method, `${path}?a=1&${spelt}=x`))
      expect(answer, `${method} ${path}`).toMatchObject({ status: 400, code: 'credentials_in_query' })
    }
  })

  it('[EC 1.2] a key without a value counts, a value does not, and the raw text is what is looked at', async () => {
    expect(await refused(await send('GET', '/status?token'))).toMatchObject({ code: 'credentials_in_query' })
    expect((await send('GET', '/status?q=token&api%5Fkey=1&tok%65n=1')).status).toBe(200)
    expect((await send('GET', '/status?')).status).toBe(200)
  })
})

/** One defect of a request, with what it is answered. A defect of the path stands alone: a path has one session. */
type Draft = { query: string; headers: Headers; body: string; session: string; path?: true }
type Defect = { name: string; code: string; status: number; inPath?: true; apply(draft: Draft): void }

const EXHAUSTED = '203.0.113.77'
const DEFECTS: Defect[] = [
  {
    name: 'a credential in the query',
    code: 'credentials_in_query',
    status: 400,
    apply: (draft) => {
      draft.query = '?token=1'
    },
  },
  {
    name: 'an address without allowance',
    code: 'rate_limited',
    status: 429,
    apply: (draft) => {
      draft.headers['CF-Connecting-IP'] = EXHAUSTED
    },
  },
  {
    name: 'a bad token',
    code: 'invalid_token',
    status: 401,
    apply: (draft) => {
      draft.headers.Authorization = 'Bearer nonsense'
    },
  },
  {
    name: 'a bad body',
    code: 'invalid_request',
    status: 400,
    apply: (draft) => {
      draft.body = '{'
    },
  },
  {
    name: 'a session id that is none',
    code: 'invalid_session_id',
    status: 400,
    inPath: true,
    apply: (draft) => {
      draft.session = 'not-a-uuid'
    },
  },
  {
    name: 'an unknown session',
    code: 'session_not_found',
    status: 404,
    inPath: true,
    apply: (draft) => {
      draft.session = UNKNOWN_SESSION
    },
  },
  {
    name: 'a session that is busy',
    code: 'run_in_flight',
    status: 409,
    inPath: true,
    apply: (draft) => {
      draft.session = busySession
    },
  },
]
let busySession = ''
let addresses = 0

describe('order of checks', () => {
  const hold = new Hold()
  let busy: Promise<Response>
  const scarce = { RATE_LIMIT_BURST: '1', RATE_LIMIT_PERIOD_MS: '100000000' }

  beforeAll(async () => {
    busySession = await client.newSession()
    models.script({ text: ['…'], hold: hold.wait })
    busy = client.execute(busySession, makeExecute('take your time'))
    await hold.reached()
    await sendWith(scarce, 'GET', '/status', undefined, { 'CF-Connecting-IP': EXHAUSTED })
    return async () => {
      hold.release()
      await busy
    }
  })

  const ask = (...defects: Defect[]) => {
    const draft: Draft = {
      query: '',
      headers: { ...bearer(), 'CF-Connecting-IP': `198.51.100.${++addresses}` },
      body: JSON.stringify(makeExecute('hi')),
      session: busySession,
    }
    for (const defect of defects) defect.apply(draft)
    return sendWith(
      scarce,
      'POST',
      inSession(`/execute${draft.query}`, draft.session),
      draft.body,
      draft.headers,
    )
  }

  const pairs = DEFECTS.flatMap((earlier, index) =>
    DEFECTS.slice(index + 1).flatMap((later) => (earlier.inPath && later.inPath ? [] : [{ earlier, later }])),
  )

  eachCase(
    DEFECTS,
    ({ name, code }) => `[EC 1.3] ${name} alone is answered with ${code}`,
    async (defect) => {
      expect(await refused(await ask(defect))).toMatchObject({ status: defect.status, code: defect.code })
    },
  )

  eachCase(
    pairs,
    ({ earlier, later }) => `[EC 1.3] ${earlier.name} beats ${later.name}`,
    async ({ earlier, later }) => {
      const { code, status } = earlier
      expect(await refused(await ask(later, earlier))).toMatchObject({ status, code })
    },
  )
})

describe('bodies', () => {
  const withBody = () =>
    ROUTES.filter(({ request }) => request !== undefined).map(({ method, path }) => ({
      method: method.toUpperCase(),
      path: path.replace('{session_id}', sessionId),
    }))

  it('[EC 1.4] text that is no JSON is 400, on every route with a body', async () => {
    for (const { method, path } of withBody()) {
      for (const text of ['', '{"title":', 'title=x', '{} {}']) {
        const answer = await refused(await client.send(method, path, text))
        expect(answer, `${method} ${path} ${text}`).toMatchObject({ status: 400, code: 'invalid_request' })
      }
    }
  })

  it('[EC 1.4] bytes that are no UTF-8 are 400, wherever they are split', async () => {
    const bytes = [...new TextEncoder().encode('{"title":"'), 0xc3, 0x28, ...new TextEncoder().encode('"}')]
    for (const cut of [bytes.length, 11, 12]) {
      const body = new ReadableStream<Uint8Array>({
        start: (controller) => {
          controller.enqueue(Uint8Array.from(bytes.slice(0, cut)))
          controller.enqueue(Uint8Array.from(bytes.slice(cut)))
          controller.close()
        },
      })
      const answer = await refused(await client.send('POST', '/api/v1/sessions', body))
      expect(answer).toMatchObject({ status: 400, code: 'invalid_request' })
    }
  })

  it('[EC 1.4] another content type is 415, on every route with a body', async () => {
    for (const { method, path } of withBody()) {
      for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'application/jsonp', '']) {
        const answer = await refused(await client.send(method, path, '{}', { 'Content-Type': type }))
        expect(answer, `${method} ${path} ${type}`).toMatchObject({ status: 415, code: 'invalid_request' })
      }
    }
  })

  it('[EC 1.4] JSON of another shape is 422 and the answer names the place', async () => {
    for (const { method, path } of withBody()) {
      const answer = await refused(await client.send(method, path, '[]'))
      expect(answer, `${method} ${path}`).toMatchObject({ status: 422, code: 'invalid_request' })
    }
    expect(await refused(await client.send('POST', '/api/v1/sessions', {}))).toMatchObject({
      status: 422,
      details: { issues: [{ path: 'title' }] },
    })
    const { policy: _, ...headless } = makeExecute('hi')
    const wrong = [
      ['invalid_request', headless, 'policy'],
      ['invalid_request', makeExecute('hi', { input: { text: 7 as unknown as string } }), 'input.text'],
      ['unknown_intent', makeExecute('hi', { input: { command: 'dance' as 'plan' } }), 'input.command'],
      [
        'invalid_model_reference',
        makeExecute('hi', { input: { explicit_model: 'ollama' } }),
        'input.explicit_model',
      ],
      [
        'unknown_provider',
        makeExecute('hi', { input: { explicit_model: 'acme/x' } }),
        'input.explicit_model',
      ],
    ] as const
    for (const [code, body, path] of wrong) {
      const answer = await refused(await client.send('POST', inSession('/execute'), body))
      expect(answer).toMatchObject({ status: 422, code, details: { issues: [{ path }] } })
    }
  })

  it('[EC 1.4] a body nested deeper than an object can be handed is 422', async () => {
    const tools = (levels: number) =>
      JSON.stringify(
        makeExecute('hi', {
          attachments: { tools: [{ name: 't', description: 'd', parameters: { deep: 'HERE' } }] } as object,
        }),
      ).replace('"HERE"', '['.repeat(levels) + ']'.repeat(levels))
    for (const levels of [200, 3000, 100_000]) {
      const answer = await refused(await client.send('POST', inSession('/execute'), tools(levels)))
      expect(answer, `${levels}`).toMatchObject({ status: 422, code: 'invalid_request' })
    }
    models.script({ text: ['hello'] })
    expect((await client.send('POST', inSession('/execute'), tools(100))).status).toBe(200)
  })

  it('[EC 1] unknown fields are ignored, but not in `local_preferences`', async () => {
    models.script({ text: ['hello'] })
    const extra: object = { surprise: true }
    const fine = {
      ...makeExecute('hi', { input: extra, workspace: extra, policy: extra, attachments: extra }),
      ...extra,
    }
    expect((await client.send('POST', inSession('/execute'), fine)).status).toBe(200)
    const odd = makeExecute('hi', { local_preferences: { stream: true } as Record<string, boolean> })
    expect(await refused(await client.send('POST', inSession('/execute'), odd))).toMatchObject({
      status: 422,
      code: 'invalid_request',
    })
  })

  it('[EC 1] `null` stands for an absent optional field', async () => {
    models.script({ text: ['hello'] })
    const body = makeExecute('hi', {
      input: { command: null, explicit_model: null },
      workspace: { git_branch: null, git_diff: null, active_file: null },
      policy: { routing: { default: { model: 'Ollama/small' } }, privacy: { remote: { mode: null } } },
    })
    expect((await client.send('POST', inSession('/execute'), body)).status).toBe(200)
  })

  it('[EC 1.4] a charset beside the content type is fine', async () => {
    const headers = { 'Content-Type': 'Application/JSON; charset=utf-8' }
    expect((await client.send('PUT', inSession(''), '{}', headers)).status).toBe(200)
  })

  describe('size', () => {
    /** `{"title":null,"pad":"aaa…"}` of exactly this many bytes. */
    const padded = (bytes: number) => {
      const [head, tail] = ['{"title":null,"pad":"', '"}']
      return head + 'a'.repeat(bytes - head.length - tail.length) + tail
    }
    const chunked = (text: string) =>
      new Blob([text]).stream().pipeThrough(new TransformStream<Uint8Array, Uint8Array>())

    it('[D27] a body of 10 MiB is read', async () => {
      await parsed(await client.send('PUT', inSession(''), padded(MAX_BODY_BYTES)), UpdateSessionResponse)
      await parsed(
        await client.send('PUT', inSession(''), chunked(padded(MAX_BODY_BYTES))),
        UpdateSessionResponse,
      )
    })

    it('[D27] one byte more is 413', async () => {
      const answer = await refused(await client.send('PUT', inSession(''), padded(MAX_BODY_BYTES + 1)))
      expect(answer).toMatchObject({
        status: 413,
        code: 'invalid_request',
        details: { max_bytes: MAX_BODY_BYTES },
      })
    })

    it('[EC 1.5] a body that does not say its length is counted while it comes', async () => {
      const request = new Request('http://localhost/', { method: 'PUT', body: chunked('{}') })
      expect(request.headers.get('Content-Length')).toBeNull()
      const answer = await client.send('PUT', inSession(''), chunked(padded(MAX_BODY_BYTES + 1)))
      expect(await refused(answer)).toMatchObject({ status: 413, code: 'invalid_request' })
    })
  })
})

describe('unknown routes', () => {
  it('[EC 2] an unknown path is 404 in the error shape', async () => {
    for (const path of ['/nowhere', '/api/v1', '/api/v2/status', '/status/x']) {
      expect(await refused(await send('GET', path)), path).toMatchObject({
        status: 404,
        code: 'invalid_request',
      })
    }
    expect(await refused(await client.send('POST', inSession('/approve'), {}))).toMatchObject({ status: 404 })
  })

  it('[EC 2] a wrong method is 405 and says which would do', async () => {
    for (const path of new Set(ROUTES.map((route) => route.path))) {
      const methods = ROUTES.filter((route) => route.path === path).map(({ method }) => method.toUpperCase())
      for (const method of ['GET', 'POST', 'PUT', 'DELETE', 'PATCH']) {
        if (methods.includes(method)) continue
        const response = await client.send(method, path.replace('{session_id}', sessionId))
        expect(response.headers.get('Allow'), `${method} ${path}`).toBe(methods.join(', '))
        expect(await refused(response)).toMatchObject({ status: 405, code: 'invalid_request' })
      }
    }
  })
})

describe('rate limit', () => {
  const scarce = { RATE_LIMIT_BURST: '2', RATE_LIMIT_PERIOD_MS: '90000' }
  const ask = (address: string, vars: object = scarce) =>
    sendWith(vars, 'GET', '/status', undefined, { 'CF-Connecting-IP': address })

  it('[EC 1.5] an address that uses up its burst gets 429 and how long to wait; others go on', async () => {
    expect((await ask('192.0.2.1')).status).toBe(200)
    expect((await ask('192.0.2.1')).status).toBe(200)
    const response = await ask('192.0.2.1')
    const seconds = Number(response.headers.get('Retry-After'))
    expect(seconds).toBeGreaterThanOrEqual(1)
    expect(seconds).toBeLessThanOrEqual(90)
    expect(await refused(response)).toMatchObject({ status: 429, code: 'rate_limited' })
    expect((await ask('192.0.2.2')).status).toBe(200)
  })

  it('[EC 1.5] a burst of 0 switches it off', async () => {
    for (let n = 0; n < 5; n++) expect((await ask('192.0.2.3', { RATE_LIMIT_BURST: '0' })).status).toBe(200)
  })

  it('[EC 1.5] without configuration 200 requests pass at once', async () => {
    const answers = await Promise.all(
      Array.from({ length: 200 }, () => ask('192.0.2.4', { RATE_LIMIT_BURST: undefined })),
    )
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]))
  })
})

describe('cross origin', () => {
  const vars = { ALLOWED_ORIGINS: 'https://app.test, https://other.test' }
  const preflight = (origin: string, names: string, configured: object = vars) =>
    sendWith(configured, 'OPTIONS', inSession('/execute'), undefined, {
      Origin: origin,
      'Access-Control-Request-Method': 'POST',
      'Access-Control-Request-Headers': names,
    })

  it('[EC 1.5] a preflight of a configured origin allows the headers of the contract and its provider family', async () => {
    const names = 'authorization,content-type,x-smista-provider-my-lab-api-key,idempotency-key,x-evil,cookie'
    const response = await preflight('https://other.test', names)
    expect(response.status).toBe(204)
    expect(response.headers.get('Access-Control-Allow-Origin')).toBe('https://other.test')
    const allowed = (response.headers.get('Access-Control-Allow-Headers') ?? '').split(/,\s*/)
    expect(allowed).toEqual([
      'authorization',
      'content-type',
      'x-smista-provider-my-lab-api-key',
      'idempotency-key',
    ])
    expect(response.headers.get('Access-Control-Allow-Methods')).toBe('GET,POST,PUT,DELETE')
    expect(response.headers.get('Access-Control-Allow-Credentials')).toBeNull()
  })

  it('[EC 1.5] answers, refusals too, can be read by a configured origin', async () => {
    const headers = { Origin: 'https://app.test' }
    const fine = await sendWith(vars, 'GET', '/status', undefined, headers)
    expect(fine.headers.get('Access-Control-Allow-Origin')).toBe('https://app.test')
    expect(fine.headers.get('Vary')).toContain('Origin')
    const no = await sendWith(vars, 'GET', '/api/v1/auth/me', undefined, headers)
    expect(no.status).toBe(401)
    expect(no.headers.get('Access-Control-Allow-Origin')).toBe('https://app.test')
  })

  eachCase(
    [
      { origin: 'https://evil.test', configured: vars },
      { origin: 'https://app.test.evil.test', configured: vars },
      { origin: 'http://app.test', configured: vars },
      { origin: 'null', configured: vars },
      { origin: 'https://app.test', configured: {} },
    ],
    ({ origin, configured }) =>
      `[U34] ${origin} is not allowed where ${JSON.stringify(configured)} is configured`,
    async ({ origin, configured }) => {
      const asked = await preflight(origin, 'authorization', configured)
      expect(asked.headers.get('Access-Control-Allow-Origin')).toBeNull()
      expect(asked.headers.get('Access-Control-Allow-Headers')).toBeNull()
      const answer = await sendWith(configured, 'GET', '/status', undefined, { Origin: origin })
      expect(answer.headers.get('Access-Control-Allow-Origin')).toBeNull()
    },
  )
})
