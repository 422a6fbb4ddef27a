import { getEventListeners } from 'node:events'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { makeAccess } from '../../../src/providers/access.ts'
import { parseProviderConfig } from '../../../src/providers/config.ts'
import type { ModelProvider } from '../../../src/providers/provider.ts'
import { makeProviders } from '../../../src/providers/registry.ts'
import { ModelCatalogue } from '../../../src/session/catalogue.ts'
import { makeDescriptor } from '../providers/support.ts'

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['Date'] })
})
afterEach(() => {
  vi.useRealTimers()
})

const signal = new AbortController().signal
const accessWith = (key: string, deploymentProviders = true) =>
  makeAccess({ userId: 'u', credentials: { ollama: key }, deploymentProviders }, new Map())

/** A provider that offers what it is told to, and notes what it is asked. */
function scripted(id: string) {
  const asked: (readonly string[] | undefined)[] = []
  const offer = { local: true }
  const provider: ModelProvider = {
    descriptor: { id, display_name: id, local: false },
    listModels: async (_context, names) => {
      asked.push(names)
      return {
        ok: true,
        value: (names ?? []).map((model) => makeDescriptor({ provider: id, model, local: offer.local })),
      }
    },
    invoke: () => {
      throw new Error('nothing is invoked')
    },
  }
  return { asked, offer, catalogue: new ModelCatalogue(new Map([[id, provider]])) }
}

describe('what a session’s object knows of models', () => {
  it('[D12] is kept apart by credential', async () => {
    const { catalogue } = scripted('ollama')
    const [one, two] = [await accessWith('key-1'), await accessWith('key-2')]
    await catalogue.list('ollama', ['a'], one, signal)
    expect(catalogue.view(one, Date.now()).find('ollama', 'a').k).toBe('found')
    expect(catalogue.view(two, Date.now()).find('ollama', 'a').k).toBe('unlisted')
  })

  it('[U37] a model that turned remote is seen within a minute', async () => {
    const { catalogue, offer } = scripted('ollama')
    const access = await accessWith('key-1')
    await catalogue.list('ollama', ['a'], access, signal)
    offer.local = false
    vi.setSystemTime(Date.now() + 60_000)
    expect(catalogue.view(access, Date.now()).find('ollama', 'a').k).toBe('unlisted')
    await catalogue.list('ollama', ['a'], access, signal)
    expect(catalogue.view(access, Date.now()).find('ollama', 'a')).toMatchObject({ model: { local: false } })
  })

  it('is bounded: of very many models the longest known are forgotten', async () => {
    const { catalogue } = scripted('ollama')
    const access = await accessWith('key-1')
    const find = (name: string) => catalogue.view(access, Date.now()).find('ollama', name).k
    await catalogue.list('ollama', ['first'], access, signal)
    await catalogue.list(
      'ollama',
      Array.from({ length: 499 }, (_, n) => `m${n}`),
      access,
      signal,
    )
    expect([find('first'), find('m498')]).toEqual(['found', 'found'])
    await catalogue.list('ollama', ['one-more'], access, signal)
    expect([find('first'), find('m0'), find('one-more')]).toEqual(['unlisted', 'found', 'found'])
  })

  it('[D12] a model whose facts are known is found without a listing, and never asked about', async () => {
    const fetched = vi.spyOn(globalThis, 'fetch').mockResolvedValue(new Response('{}', { status: 503 }))
    const catalogue = new ModelCatalogue(makeProviders(parseProviderConfig({})))
    const access = await makeAccess(
      { userId: 'u', credentials: { anthropic: 'k' }, deploymentProviders: false },
      new Map(),
    )
    const find = (name: string) => catalogue.view(access, Date.now()).find('anthropic', name).k
    expect([find('claude-opus-5-5'), find('claude-next')]).toEqual(['found', 'unlisted'])
    // The failure of what had to be asked for says nothing about what is known.
    await catalogue.list('anthropic', ['claude-opus-5-5', 'claude-next'], access, signal)
    expect([find('claude-opus-5-5'), find('claude-next')]).toEqual(['found', 'unavailable'])
    expect(fetched.mock.calls.map(([url]) => String(url))).toEqual([
      'https://api.anthropic.com/v1/models/claude-next',
    ])
    fetched.mockRestore()
  })

  it('[D21] no timer and no listener outlives a listing, whether it is answered, fails or throws', async () => {
    vi.useFakeTimers()
    const { signal } = new AbortController()
    const watching = () => [vi.getTimerCount(), getEventListeners(signal, 'abort').length]
    const listings: ModelProvider['listModels'][] = [
      async () => ({ ok: true, value: [] }),
      async () => ({ ok: false, error: { category: 'timeout', message: 'too slow' } }),
      async () => {
        throw new Error('out of order')
      },
    ]
    for (const answer of listings) {
      const provider: ModelProvider = {
        descriptor: { id: 'ollama', display_name: 'Ollama', local: true },
        listModels: async (...asked) => {
          expect(watching()).toEqual([1, 1])
          return answer(...asked)
        },
        invoke: () => {
          throw new Error('nothing is invoked')
        },
      }
      const catalogue = new ModelCatalogue(new Map([['ollama', provider]]))
      await catalogue.list('ollama', ['a'], await accessWith('k'), signal).catch(() => {})
      expect(watching()).toEqual([0, 0])
    }
  })
})
