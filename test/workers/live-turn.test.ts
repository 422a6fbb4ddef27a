import { env } from 'cloudflare:workers'
import { expect, test } from 'vitest'
import type { MemoryFact } from '../../src/core/memory.ts'
import { makeAccess, NO_ACCESS } from '../../src/providers/access.ts'
import type { ModelProvider } from '../../src/providers/provider.ts'
import { RunEngine } from '../../src/session/engine.ts'
import type { Sql } from '../../src/storage/session/sql.ts'
import { LOCAL, makeModel, makeRequest } from '../support/core/builders.ts'
import { makeClient } from '../support/workers/router.ts'
import { inside } from '../support/workers/session-object.ts'

const fact: MemoryFact = { scope: 'user', id: 'f', key: 'k', content: 'a secret', updatedAtMs: 1 }

/** An engine whose only model shows with which key it was asked. */
function makeEngine(sql: Sql, whileAnswering: (credential: string | undefined) => void) {
  const provider: ModelProvider = {
    descriptor: { id: 'ollama', display_name: 'Ollama', local: true },
    listModels: async () => ({
      ok: true,
      value: [makeModel(LOCAL)],
    }),
    invoke: async function* (_request, { credential }) {
      whileAnswering(credential)
      yield { type: 'text_delta', delta: 'hello' }
      yield { type: 'finished', reason: 'stop' }
    },
  }
  return new RunEngine({
    sql,
    db: env.DB,
    gateway: () => ({ putRow: async () => true, removeRow: async () => {} }),
    events: () => ({ pushEvents: async () => ({ watched: false }) }),
    becameIdle: () => {},
    providers: new Map([['ollama', provider]]),
    sealed: null,
    setAlarm: () => {},
    sync: async () => {},
    keepAlive: () => {},
  })
}

test('[D06] what came with a request, keys and facts about the user, lasts until its turn is over and no longer', async () => {
  const client = await makeClient()
  await inside(await client.newSession(), async (sql) => {
    const seen: unknown[] = []
    const engine = makeEngine(sql, (credential) => seen.push(credential))
    const access = await makeAccess(
      { userId: 'u', credentials: { ollama: 'key' }, deploymentProviders: true },
      new Map(),
    )
    const dispatched = engine.dispatch(
      {
        type: 'execute_requested',
        digest: 'd',
        text: 'hello',
        command: null,
        driver: { kind: 'http' },
        policyDigest: null,
        localOnly: false,
      },
      { access, facts: [fact], runInput: makeRequest(), key: null },
    )
    const live = engine.turns.turn(engine.state?.active?.turnId ?? '')
    if (!dispatched.ok || live === null) throw new Error('the turn did not start')
    expect(live.access).toBe(access)
    expect(live.facts).toEqual([fact])
    expect(await live.channel.ending()).toMatchObject({ outcome: { status: 'completed' } })
    expect(seen).toEqual(['key'])
    expect(live.access).toBe(NO_ACCESS)
    expect(live.facts).toEqual([])
  })
})
