import { describe, expect, test } from 'vitest'
import { planTurn } from '../../../src/core/resolve.ts'
import { chooseModel } from '../../../src/core/select.ts'
import { makeAccess } from '../../../src/providers/access.ts'
import type { ModelProvider, ProviderFailure } from '../../../src/providers/provider.ts'
import { ModelCatalogue } from '../../../src/session/catalogue.ts'
import { makeRequest, makeView, must, type RequestParts } from '../../support/core/builders.ts'

const CLOUD = 'openai-compat:cloud'

/** A catalogue that an earlier turn has taught what a remote provider says when it is asked. */
async function taught(answer: 'nothing yet' | 'it does not have it' | 'it cannot be asked') {
  const down: ProviderFailure = { category: 'provider_unavailable', message: 'down' }
  const provider: ModelProvider = {
    descriptor: { id: CLOUD, display_name: 'Cloud', local: false },
    listModels: async () =>
      answer === 'it cannot be asked' ? { ok: false, error: down } : { ok: true, value: [] },
    invoke: () => {
      throw new Error('nothing is invoked here')
    },
  }
  const catalogue = new ModelCatalogue(new Map([[CLOUD, provider]]))
  const access = await makeAccess({ userId: 'u', credentials: {}, deploymentProviders: true }, new Map())
  if (answer !== 'nothing yet') await catalogue.list(CLOUD, ['m'], access, new AbortController().signal)
  return catalogue.view(access, Date.now())
}

describe.each(['nothing yet', 'it does not have it', 'it cannot be asked'] as const)(
  '[U37][EC 3] a turn that is bound to local models, when what is known of the remote provider is: %s',
  (answer) => {
    test.each<[string, RequestParts, object]>([
      [
        'its explicit model is not allowed',
        { explicitModel: `${CLOUD}/m` },
        {
          code: 'override_not_allowed',
          details: { candidates: [{ model: `${CLOUD}/m`, reason: 'remote' }] },
        },
      ],
      [
        'its route has no local model',
        { defaultRoute: { model: `${CLOUD}/m` } },
        { code: 'no_route', details: { candidates: [{ model: `${CLOUD}/m`, reason: 'remote' }] } },
      ],
    ])('%s', async (_, parts, refusal) => {
      const plan = must(planTurn(makeView(makeRequest({ ...parts, preferences: { local_only: true } }))))
      expect(chooseModel(plan.demands, await taught(answer))).toMatchObject({ k: 'none', failure: refusal })
    })
  },
)
