import { afterEach, expect, test, vi } from 'vitest'
import type { RunInputEvent } from '../../../src/core/run/inputs.ts'
import type { Access } from '../../../src/providers/access.ts'
import type { ModelProvider } from '../../../src/providers/provider.ts'
import { ModelCatalogue } from '../../../src/session/catalogue.ts'
import { makeLiveTurn } from '../../../src/session/live-turn.ts'
import { previewTurn } from '../../../src/session/preview.ts'
import { serveTurn } from '../../../src/session/serve-turn.ts'
import { makeRequest, makeView } from '../../support/core/builders.ts'
import { Machine } from '../../support/core/run-machine.ts'

afterEach(() => {
  vi.useRealTimers()
})

const access: Access = {
  credentialFor: () => undefined,
  mayUse: () => true,
  cacheKey: (provider) => provider,
}

/** A provider that lets its caller wait, and then cannot be asked. */
const slow = (id: string, asked: string[]): ModelProvider => ({
  descriptor: { id, display_name: id, local: false },
  listModels: () => {
    asked.push(id)
    vi.setSystemTime(Date.now() + 9_000)
    return Promise.resolve({
      ok: false,
      error: { category: 'provider_unavailable', message: 'nobody answers' },
    })
  },
  invoke: () => {
    throw new Error('nothing is invoked')
  },
})

/** Two providers, each slower than the memory of the other's failure is long. */
function twoSlowProviders() {
  vi.useFakeTimers({ toFake: ['Date'] })
  const asked: string[] = []
  const providers = new Map(['openai', 'anthropic'].map((id) => [id, slow(id, asked)]))
  const body = makeRequest({ defaultRoute: { model: 'openai/a', fallbacks: ['anthropic/b'] } })
  return { asked, providers, catalogue: new ModelCatalogue(providers), body }
}

test('[U06][D12] a turn asks providers that are slow to fail once each, and then it fails', async () => {
  const { asked, providers, catalogue, body } = twoSlowProviders()
  const reported: RunInputEvent[] = []
  await serveTurn(makeLiveTurn('turn', 'lease', access, []), {
    providers,
    state: () => {
      const machine = new Machine()
      machine.execute('hello')
      if (machine.state === null) throw new Error('no state')
      return machine.state
    },
    view: () => makeView(body),
    closed: () => null,
    memories: () => [],
    catalogue: () => catalogue.view(access, Date.now()),
    list: (provider, models, signal) => catalogue.list(provider, models, access, signal),
    dispatch: (input) => {
      reported.push(input)
      return true
    },
    callBegins: () => {},
    clock: () => ({ responseMs: 0 }),
    textArrived: () => {},
    routed: () => {},
  })
  expect(asked).toEqual(['openai', 'anthropic'])
  expect(reported).toMatchObject([{ type: 'turn_failed', failure: { code: 'fallback_exhausted' } }])
})

test('[U06][D12] so does a preview', async () => {
  const { asked, catalogue, body } = twoSlowProviders()
  const preview = await previewTurn({
    body,
    transcript: [],
    olderMessages: 0,
    memories: [],
    catalogue,
    access,
  })
  expect(asked).toEqual(['openai', 'anthropic'])
  expect(preview).toMatchObject({ ok: false, error: { code: 'fallback_exhausted' } })
})
