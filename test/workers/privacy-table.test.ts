/** A small share of the privacy table through the Worker’s own door; the rest of it runs over real sockets in Node. */

import { beforeAll, describe, expect, it } from 'vitest'
import type { TurnResponse } from '../../src/protocol/execution/turn.ts'
import { BINDINGS, type PrivacyCase, ROUTES, shareOf, titleOf } from '../support/core/privacy-table.ts'
import { endsOf } from '../support/core/privacy-table-rules.ts'
import { type Doing, type Logged, runCase, type TableRouter } from '../support/core/privacy-table-run.ts'
import { OLLAMA_BASE_URL } from '../support/workers/deployment.ts'
import { type Client, makeClient, turnOf } from '../support/workers/router.ts'
import { type Reply, scriptModels } from '../support/workers/scripted-models.ts'
import { transcriptOf } from '../support/workers/session-object.ts'

const models = scriptModels()

let client: Client
beforeAll(async () => {
  client = await makeClient()
})

const KEY = { 'X-Smista-Provider-Cloud-Api-Key': 'key-of-the-request' }

/** The remote provider's models are declared here: there is no listing of them that could fail. */
const cases: PrivacyCase[] = BINDINGS.flatMap((binding, index) =>
  ROUTES.filter((_, ordinal) => (ordinal + index) % 5 === 0).flatMap((route) =>
    shareOf(binding, route, 5)
      .filter(({ fails }) => fails.remote !== 'cannot be listed')
      .slice(0, 1),
  ),
)

async function freshRouter(): Promise<TableRouter> {
  const id = await client.newSession()
  const outcomeOf = async (response: Response): Promise<TurnResponse> =>
    response.ok ? turnOf(response) : { status: 'error', data: await response.json() }
  return {
    script: (next) => {
      models.onListing = async () => {
        const doing = next('local', { kind: 'listing', text: '' })
        if (doing.does === 'refuse') throw new TypeError('connection refused')
      }
      models.script((chat) =>
        toReply(
          next(chat.origin === OLLAMA_BASE_URL ? 'local' : 'remote', {
            kind: 'completion',
            text: JSON.stringify(chat),
          }),
        ),
      )
    },
    log: (site) => {
      const isOf = (origin: string) => (origin === OLLAMA_BASE_URL) === (site === 'local')
      return [
        ...models.listings
          .filter((url) => isOf(new URL(url).origin))
          .map((url): Logged => ({ kind: 'listing', text: url })),
        ...models.chats
          .filter(({ origin }) => isOf(origin))
          .map((chat): Logged => ({ kind: 'completion', text: JSON.stringify(chat) })),
      ]
    },
    execute: async (body) => outcomeOf(await client.execute(id, body, KEY)),
    proceed: async (message) => outcomeOf(await client.proceed(id, message, KEY)),
    // A client cannot have something remembered for local models alone.
    remember: () => false,
    said: async () =>
      (await transcriptOf(id)).flatMap(({ role, text, interrupted = false }) =>
        role === 'assistant' ? [{ text, interrupted }] : [],
      ),
  }
}

function toReply(doing: Doing): Reply {
  if (doing.does !== 'say') throw new Error('a completion is answered with words')
  const { pieces, call, breaks } = doing
  if (breaks === undefined) return { text: pieces, ...(call === undefined ? {} : { calls: [call] }) }
  const said = { 'before the text': 0, 'after the first piece': 1, 'before the end': pieces.length }
  return { text: pieces.slice(0, said[breaks]), ending: 'break' }
}

describe('[U37][EC 9] what may go where, whatever fails', () => {
  for (const one of cases) it(titleOf(one), async () => runCase(one, await freshRouter()))

  it('the cases come to local and remote ends, and to refusals', () => {
    expect(cases.length).toBeGreaterThan(15)
    expect(endsOf(cases)).toEqual(
      expect.arrayContaining(['local', 'local as a fallback', 'no_route', 'override_not_allowed', 'remote']),
    )
  })
})
