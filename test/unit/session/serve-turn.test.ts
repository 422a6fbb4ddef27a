import { expect, test } from 'vitest'
import type { RunInputEvent } from '../../../src/core/run/inputs.ts'
import type { FinishReason, ModelProvider } from '../../../src/providers/provider.ts'
import { makeLiveTurn } from '../../../src/session/live-turn.ts'
import { serveTurn } from '../../../src/session/serve-turn.ts'
import { makeRequest, makeView } from '../../support/core/builders.ts'
import { Machine } from '../../support/core/run-machine.ts'
import { makeDescriptor } from '../providers/support.ts'

/** What a turn reports of a model that says a word, calls a tool, and ends so. */
async function reportsOf(reason: FinishReason): Promise<RunInputEvent[]> {
  const model = makeDescriptor({ provider: 'ollama', model: 'local-model' })
  const provider: ModelProvider = {
    descriptor: { id: 'ollama', display_name: 'Ollama', local: true },
    listModels: async () => ({ ok: true, value: [model] }),
    invoke: async function* () {
      yield { type: 'text_delta', delta: 'Well.' }
      yield { type: 'tool_call', name: 'read_file', arguments: { path: 'a' } }
      yield { type: 'finished', reason }
    },
  }
  const machine = new Machine()
  machine.execute('hello')
  const { state } = machine
  if (state === null) throw new Error('no state')
  const access = { credentialFor: () => undefined, mayUse: () => true, cacheKey: () => '' }
  const reported: RunInputEvent[] = []
  await serveTurn(makeLiveTurn('turn', 'lease', access, []), {
    providers: new Map([['ollama', provider]]),
    state: () => state,
    view: () => makeView(makeRequest({ permissions: { read_file: 'allow' } })),
    closed: () => null,
    memories: () => [],
    catalogue: () => ({ hasCredential: () => true, find: () => ({ k: 'found', model }) }),
    list: async () => {},
    dispatch: (input) => {
      reported.push(input)
      return true
    },
    callBegins: () => {},
    clock: () => ({ responseMs: 0 }),
    textArrived: () => {},
    routed: () => {},
  })
  return reported
}

test('[U42] what a refused answer asked for is not run', async () => {
  expect((await reportsOf('tool_calls')).at(-1)).toMatchObject({
    type: 'model_responded',
    ending: null,
    calls: [{ call: { name: 'read_file' }, to: 'client' }],
  })
  expect((await reportsOf('refused')).at(-1)).toMatchObject({
    type: 'model_responded',
    text: 'Well.',
    ending: 'refused',
    calls: [],
  })
})
