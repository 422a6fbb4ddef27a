import { describe, expect, test } from 'vitest'
import type { RunInputEvent } from '../../../src/core/run/inputs.ts'
import { makeAccess } from '../../../src/providers/access.ts'
import { AnthropicProvider } from '../../../src/providers/anthropic.ts'
import type { ModelEvent } from '../../../src/providers/provider.ts'
import { ModelCatalogue } from '../../../src/session/catalogue.ts'
import { makeLiveTurn } from '../../../src/session/live-turn.ts'
import { serveTurn } from '../../../src/session/serve-turn.ts'
import { makeModel, makeRequest, makeView, userSays } from '../../support/core/builders.ts'
import { BREAK, Machine } from '../../support/core/run-machine.ts'
import { serveRun } from '../../support/core/served-run.ts'
import { anthropicDialect } from '../../support/node/scripted-upstream-anthropic.ts'
import { piecesUntil } from '../../support/node/scripted-upstream-completion.ts'
import { startScriptedUpstream } from '../../support/node/scripted-upstream-server.ts'

const RATES = { input_cost_per_million_tokens: '1', output_cost_per_million_tokens: '2' }

/** What became of the call of a run whose one model said this. */
async function callAfter(says: ModelEvent[]) {
  const model = makeModel('openai-compat:a/m', { auth: 'none', ...RATES })
  const run = await serveRun(makeRequest({ text: 'hi', defaultRoute: { model: 'openai-compat:a/m' } }), [
    { model, says },
  ])
  return { call: run.calls[0], costs: run.traces.filter(({ type }) => type === 'cost') }
}

describe('usage that was reported before the end of an answer', () => {
  const text: ModelEvent = { type: 'text_delta', delta: 'one' }
  const failed: ModelEvent = { type: 'failed', failure: { category: 'provider_unavailable', message: 'cut' } }
  const finished: ModelEvent = { type: 'finished', reason: 'stop' }
  const early: ModelEvent = { type: 'usage_so_far', usage: { inputTokens: 1_000, outputTokens: 1 } }
  const later: ModelEvent = { type: 'usage_so_far', usage: { inputTokens: 1_000, outputTokens: 10 } }
  const final: ModelEvent = { type: 'usage', usage: { inputTokens: 1_000, outputTokens: 20 } }
  const reported = (outputTokens: number, cost: string) => ({
    call: { usage: { inputTokens: 1_000, outputTokens }, cost },
    costs: [{ type: 'cost', input_tokens: 1_000, output_tokens: outputTokens, cost }],
  })

  test('[EC 15][U43] the latest counts are those of a call that failed, also before its first token', async () => {
    expect(await callAfter([early, text, later, failed])).toMatchObject(reported(10, '0.00102'))
    expect(await callAfter([early, failed])).toMatchObject(reported(1, '0.001002'))
    expect(await callAfter([text, failed])).toMatchObject({ call: { usage: null }, costs: [] })
  })

  test('[U43] the final count replaces them, and they hold where an answer ends without one', async () => {
    expect(await callAfter([early, text, later, final, finished])).toMatchObject(reported(20, '0.00104'))
    expect(await callAfter([early, text, later, finished])).toMatchObject(reported(10, '0.00102'))
  })

  test('[EC 15][U43] `break` in the middle of an answer keeps what its provider had reported', async () => {
    const upstream = await startScriptedUpstream({
      headers: { 'content-type': anthropicDialect.contentType },
      body: piecesUntil(anthropicDialect, 'Hm').join(''),
      ending: 'hang',
    })
    const model = makeModel('anthropic/claude-sonnet-4-5', { ...RATES })
    const provider = new AnthropicProvider(
      { id: 'anthropic', displayName: 'Anthropic', baseUrl: upstream.url },
      async () => ({ ok: true, value: [model] }),
      { firstByteMs: 3_000, totalMs: 10_000 },
    )
    const providers = new Map([['anthropic', provider]])
    const caller = { userId: 'u', credentials: { anthropic: 'key' }, deploymentProviders: true }
    const access = await makeAccess(caller, new Map())
    const catalogue = new ModelCatalogue(providers)
    const machine = new Machine()
    const request = makeRequest({ text: 'hi', defaultRoute: { model: 'anthropic/claude-sonnet-4-5' } })
    machine.execute('hi')
    const live = makeLiveTurn('turn', machine.lease, access, [])
    await serveTurn(live, {
      providers,
      state: () => {
        if (machine.state === null) throw new Error('the run has no state')
        return machine.state
      },
      view: () => makeView(request, { said: [userSays('hi')] }),
      closed: () => null,
      memories: () => [],
      catalogue: () => catalogue.view(access, Date.now()),
      list: (id, names, signal, localOnly) => catalogue.list(id, names, access, signal, localOnly),
      dispatch: (input: RunInputEvent) => 'state' in machine.send(input),
      callBegins: () => {},
      clock: () => ({ responseMs: 0 }),
      textArrived: () => {
        machine.continue(BREAK, { partial: live.partial })
        live.abort.abort()
      },
      routed: () => {},
    })
    await upstream.callerLeft
    await upstream.close()
    const turn = [...machine.store.turns.values()].at(-1)
    expect(turn).toMatchObject({
      status: 'superseded',
      calls: [
        {
          status: 'cancelled',
          usage: { inputTokens: 12, outputTokens: 1, cachedTokens: 0, cacheWriteTokens: 0 },
          cost: '0.000014',
        },
      ],
    })
    expect(turn?.trace.flatMap(({ payload }) => (payload.type === 'cost' ? [payload] : []))).toEqual([
      {
        type: 'cost',
        provider: 'anthropic',
        model: 'claude-sonnet-4-5',
        input_tokens: 12,
        output_tokens: 1,
        cached_tokens: 0,
        cache_write_tokens: 0,
        cost: '0.000014',
      },
    ])
  })
})
