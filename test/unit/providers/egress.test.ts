import { describe, expect, it, vi } from 'vitest'
import {
  EgressViolation,
  makeEgress,
  RedirectRefused,
  type RouteRecord,
} from '../../../src/providers/egress.ts'
import { scriptedFetch } from '../../support/node/scripted-upstream.ts'

const BASE = 'https://models.example/api/v1'

function setUp(answer: Parameters<typeof scriptedFetch>[0] = { body: '{}' }, remoteAllowed = true) {
  const upstream = scriptedFetch(answer)
  const routes: RouteRecord[] = []
  const egress = makeEgress({
    record: (route) => routes.push(route),
    purpose: 'completion',
    provider: 'openai-compat:lab',
    chosenBy: 'reviews',
    remoteAllowed,
    fetch: upstream.fetch,
  })
  return { egress, routes, ...upstream }
}

describe('the egress', () => {
  it('[U38] writes the route down before the request leaves', async () => {
    const order: string[] = []
    const egress = makeEgress({
      record: ({ model, origin, chosenBy, local, purpose, provider }) =>
        order.push([purpose, provider, model, local, chosenBy, origin].join(' ')),
      purpose: 'completion',
      provider: 'openai-compat:lab',
      chosenBy: 'reviews',
      remoteAllowed: true,
      fetch: async () => {
        order.push('sent')
        return new Response('{}')
      },
    })
    await egress({ baseUrl: BASE, local: false, model: 'lab-7b' })(`${BASE}/chat/completions`)
    expect(order).toEqual([
      'completion openai-compat:lab lab-7b false reviews https://models.example',
      'sent',
    ])
  })

  it('[U38] sends nothing when the route cannot be written down', async () => {
    const sent = vi.fn()
    const egress = makeEgress({
      record: () => {
        throw new Error('no room')
      },
      purpose: 'catalogue',
      provider: 'ollama',
      chosenBy: 'catalogue',
      remoteAllowed: true,
      fetch: sent,
    })
    await expect(egress({ baseUrl: BASE, local: true })(`${BASE}/models`)).rejects.toThrow('no room')
    expect(sent).not.toHaveBeenCalled()
  })

  it('[U37] refuses a remote endpoint in a local-only turn, before anything leaves', async () => {
    const { egress, requests, routes } = setUp({}, false)
    expect(() => egress({ baseUrl: BASE, local: false })).toThrow(EgressViolation)
    expect({ requests, routes }).toEqual({ requests: [], routes: [] })
    await egress({ baseUrl: BASE, local: true })(`${BASE}/models`)
    expect(requests).toHaveLength(1)
  })

  it.each([
    'https://models.example/api/v10/models',
    'https://models.example/api/v1/../admin',
    'https://models.example/api/v1/%2e%2e/admin',
    'https://models.example/',
    'http://models.example/api/v1/models',
    'https://models.example:8443/api/v1/models',
    'https://models.example.evil.test/api/v1/models',
    'https://user:pass@models.example/api/v1/models',
  ])('[D16] refuses %s, which is not under the base URL', async (target) => {
    const { egress, requests, routes } = setUp()
    await expect(egress({ baseUrl: BASE, local: false })(target)).rejects.toThrow(EgressViolation)
    expect({ requests, routes }).toEqual({ requests: [], routes: [] })
  })

  it('[D16] takes the base URL itself, what lies under it, and an origin with any path', async () => {
    const { egress, requests } = setUp()
    await egress({ baseUrl: BASE, local: false })(BASE)
    await egress({ baseUrl: BASE, local: false })(new URL(`${BASE}/models?limit=5`))
    await egress({ baseUrl: 'http://127.0.0.1:11434', local: true })('http://127.0.0.1:11434/api/tags')
    expect(requests.map(({ url }) => url)).toEqual([
      BASE,
      `${BASE}/models?limit=5`,
      'http://127.0.0.1:11434/api/tags',
    ])
  })

  it.each([301, 302, 303, 304, 307, 308])(
    '[D16] refuses HTTP %i, whatever follow mode was asked for',
    async (status) => {
      const { egress, requests, inits } = setUp({ status, headers: { location: 'https://elsewhere.test/' } })
      const call = egress({ baseUrl: BASE, local: false })(`${BASE}/models`, { redirect: 'follow' })
      await expect(call).rejects.toThrow(RedirectRefused)
      expect(requests).toHaveLength(1)
      expect(inits[0]?.redirect).toBe('manual')
    },
  )

  it('forwards no cookie', async () => {
    const { egress, requests } = setUp()
    await egress({ baseUrl: BASE, local: false })(`${BASE}/models`, {
      headers: { cookie: 'session=1', 'x-other': 'stays' },
    })
    expect(requests[0]?.headers).not.toHaveProperty('cookie')
    expect(requests[0]?.headers).toMatchObject({ 'x-other': 'stays' })
  })

  it('uses the global fetch as it is at the time of the call', async () => {
    const spy = vi.spyOn(globalThis, 'fetch').mockResolvedValue(new Response('{}'))
    try {
      const egress = makeEgress({
        record: () => {},
        purpose: 'catalogue',
        provider: 'ollama',
        chosenBy: 'catalogue',
        remoteAllowed: true,
      })
      await egress({ baseUrl: BASE, local: true })(`${BASE}/models`)
      expect(spy).toHaveBeenCalledOnce()
    } finally {
      spy.mockRestore()
    }
  })
})
