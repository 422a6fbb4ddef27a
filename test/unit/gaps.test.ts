import { expect, test } from 'vitest'
import { planTurn } from '../../src/core/resolve.ts'
import { DECLARED_TOOLS } from '../../src/host/tools/declarations.ts'
import type { ModelDescriptor } from '../../src/protocol/execution/models.ts'
import { makeAccess } from '../../src/providers/access.ts'
import type { ModelProvider } from '../../src/providers/provider.ts'
import { ModelCatalogue } from '../../src/session/catalogue.ts'
import { makeModel, makeRequest, makeView, must } from '../support/core/builders.ts'

test('[EC 26.13] a model may list, search, read in parts and see changes where the host declares it, beside the four of the contract', () => {
  const { tools } = must(planTurn(makeView(makeRequest({ attachments: { tools: [...DECLARED_TOOLS] } }))))
  const names = tools.map(({ name }) => name)
  for (const name of [
    'read_file',
    'write_file',
    'edit_file',
    'shell',
    'list_files',
    'search_files',
    'show_changes',
    'read_lines',
  ])
    expect(names).toContain(name)
})

/** A provider that offers each key a model of its own, and nothing without a key. */
function keyedProvider(listed: (string | undefined)[]): ModelProvider {
  const offered = new Map<string | undefined, ModelDescriptor>([
    ['key-a', makeModel('openai-compat:shop/of-a')],
    ['key-b', makeModel('openai-compat:shop/of-b')],
  ])
  return {
    descriptor: { id: 'openai-compat:shop', display_name: 'shop', local: false },
    listModels: ({ credential }, names = []) => {
      listed.push(credential)
      const model = offered.get(credential)
      return Promise.resolve({ ok: true, value: model && names.includes(model.model) ? [model] : [] })
    },
    invoke: () => {
      throw new Error('nothing is invoked')
    },
  }
}

test('[EC 26.23] what was listed with one key is not known to another, nor to nobody', async () => {
  const listed: (string | undefined)[] = []
  const id = 'openai-compat:shop'
  const catalogue = new ModelCatalogue(new Map([[id, keyedProvider(listed)]]))
  const accessWith = (credentials: Record<string, string>) =>
    makeAccess({ userId: 'u', credentials, deploymentProviders: true }, new Map())
  const [a, b, nobody] = await Promise.all([
    accessWith({ [id]: 'key-a' }),
    accessWith({ [id]: 'key-b' }),
    accessWith({}),
  ])
  const now = Date.now()
  const seenBy = (access: typeof a) => catalogue.view(access, now).find(id, 'of-a').k
  const list = (access: typeof a) => catalogue.list(id, ['of-a'], access, new AbortController().signal)

  await list(a)
  expect([a, b, nobody].map(seenBy)).toEqual(['found', 'unlisted', 'unlisted'])
  await list(b)
  await list(nobody)
  expect([a, b, nobody].map(seenBy)).toEqual(['found', 'absent', 'absent'])
  expect(listed).toEqual(['key-a', 'key-b', undefined])
})
