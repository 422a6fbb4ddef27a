/** One run served from its first step to its end: the real machine, the real catalogue, providers that play a script. */

import type { RunInputEvent } from '../../../src/core/run/inputs.ts'
import type { CallRecord, TracePayload, Write } from '../../../src/core/run/writes.ts'
import type { RunInput } from '../../../src/core/turn-view.ts'
import type { ModelDescriptor } from '../../../src/protocol/execution/models.ts'
import type { TurnResponse } from '../../../src/protocol/execution/turn.ts'
import { makeAccess } from '../../../src/providers/access.ts'
import type { ModelEvent, ModelProvider, ProviderFailure } from '../../../src/providers/provider.ts'
import { ModelCatalogue } from '../../../src/session/catalogue.ts'
import { makeLiveTurn } from '../../../src/session/live-turn.ts'
import { serveTurn } from '../../../src/session/serve-turn.ts'
import { makeView, userSays } from './builders.ts'
import { Machine } from './run-machine.ts'

/** A provider with one model: what it answers when it is asked for its models, and to a prompt. */
export type ScriptedModel = {
  model: ModelDescriptor
  /** Its provider cannot be asked. */
  listingFails?: ProviderFailure
  says?: ModelEvent[]
}

/** What came of a run, and who was asked for what on the way, each in order, by provider. */
export type Served = {
  outcome: TurnResponse
  listed: string[]
  invoked: string[]
  /** Credentials as providers got them. */
  keys: Record<string, string | undefined>
  calls: CallRecord[]
  traces: TracePayload[]
  /** What models said, as it was stored. */
  messages: Extract<Write, { w: 'assistant_message' }>[]
  /** The text that readers of the stream saw. */
  streamed: string
}

/** @param keys the provider keys that the request brings */
export async function serveRun(
  request: RunInput,
  models: readonly ScriptedModel[],
  keys: Record<string, string> = {},
): Promise<Served> {
  const served = { listed: [] as string[], invoked: [] as string[], keys: {} as Served['keys'] }
  const providers = new Map(
    models.map((scripted) => [scripted.model.provider, makeProvider(scripted, served)]),
  )
  const access = await makeAccess({ userId: 'u', credentials: keys, deploymentProviders: true }, new Map())
  const catalogue = new ModelCatalogue(providers)
  const machine = new Machine()
  const messages: Served['messages'] = []
  let streamed = ''
  let asked: string | null = null
  const dispatch = (input: RunInputEvent): boolean => {
    const result = machine.send(input)
    if (!('state' in result)) return false
    for (const write of result.writes) if (write.w === 'assistant_message') messages.push(write)
    for (const effect of result.effects) if (effect.e === 'serve_turn') asked = effect.lease
    return true
  }
  dispatch({
    type: 'execute_requested',
    digest: 'digest',
    text: request.input.text,
    command: request.input.command ?? null,
    driver: { kind: 'http' },
    policyDigest: null,
    localOnly: false,
  })
  while (asked !== null) {
    const live = makeLiveTurn('turn', asked, access, [])
    asked = null
    await serveTurn(live, {
      providers,
      state: () => {
        if (machine.state === null) throw new Error('the run has no state')
        return machine.state
      },
      view: () => makeView(request, { said: [userSays(request.input.text)] }),
      closed: () => null,
      memories: () => [],
      catalogue: () => catalogue.view(access, Date.now()),
      list: (provider, names, signal, localOnly) =>
        catalogue.list(provider, names, access, signal, localOnly),
      dispatch,
      callBegins: () => {},
      clock: () => ({ responseMs: 0 }),
      textArrived: (_, text) => {
        streamed += text
      },
      routed: () => {},
    })
  }
  const turn = [...machine.store.turns.values()].at(-1)
  if (!turn?.outcome) throw new Error('the run was not served to an end')
  return {
    outcome: turn.outcome,
    ...served,
    calls: turn.calls,
    traces: turn.trace.map(({ payload }) => payload),
    messages,
    streamed,
  }
}

function makeProvider(
  { model, listingFails, says = [] }: ScriptedModel,
  log: Pick<Served, 'listed' | 'invoked' | 'keys'>,
): ModelProvider {
  const { provider, local } = model
  return {
    descriptor: { id: provider, display_name: provider, local },
    listModels: (_, names) => {
      log.listed.push(provider)
      if (listingFails) return Promise.resolve({ ok: false, error: listingFails })
      const offered = names === undefined || names.includes(model.model)
      return Promise.resolve({ ok: true, value: offered ? [model] : [] })
    },
    async *invoke(_, { egress, credential }) {
      log.invoked.push(provider)
      log.keys[provider] = credential
      // As every adapter does: the way out is asked for before anything is sent, and refuses what may not leave.
      egress({ baseUrl: 'http://model.test', local, model: model.model })
      yield* says
    },
  }
}
