import { afterEach, expect, test, vi } from 'vitest'
import type { Access } from '../../../src/providers/access.ts'
import type { ModelProvider } from '../../../src/providers/provider.ts'
import { ModelCatalogue } from '../../../src/session/catalogue.ts'
import { previewTurn } from '../../../src/session/preview.ts'
import { makeRequest } from '../../support/core/builders.ts'

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

test('[U06][D12] two providers that are slow to fail are asked once each, and then the turn fails', async () => {
  vi.useFakeTimers({ toFake: ['Date'] })
  const asked: string[] = []
  const providers = new Map(['openai', 'anthropic'].map((id) => [id, slow(id, asked)]))
  const preview = await previewTurn({
    body: makeRequest({ defaultRoute: { model: 'openai/a', fallbacks: ['anthropic/b'] } }),
    transcript: [],
    olderMessages: 0,
    catalogue: new ModelCatalogue(providers),
    access,
  })
  expect(asked).toEqual(['openai', 'anthropic'])
  expect(preview).toMatchObject({ ok: false, error: { code: 'fallback_exhausted' } })
})
