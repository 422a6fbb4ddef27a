import { expect, test } from 'vitest'
import { SwitchyardClient } from '../../src/client/client.ts'
import { driveRun, type RunEvent } from '../../src/client/drive.ts'
import { WordQueue } from '../../src/client/words.ts'
import { ExecuteRequest } from '../../src/protocol/execution/execute.ts'
import { makeExecute } from '../support/workers/bodies.ts'
import { FAULTS, type Fault, faultyFetch } from '../support/workers/own-client-play.ts'
import { type Client, makeClient, ORIGIN } from '../support/workers/router.ts'
import { scriptModels } from '../support/workers/scripted-models.ts'
import { newSealedSession, openOne, type SealedSession } from '../support/workers/sealed-client.ts'

/** New words of our own client in the middle of an answer, over a connection that breaks and a router that dies. */

const models = scriptModels()

/** An answer that never ends, cut by new words; and a second prompt, which is answered from what is kept of the first. */
async function play(account: Client, session: SealedSession, faults: readonly Fault[]) {
  models.script((request) => {
    const said = request.messages.at(-1)?.content
    if (said === 'a long story') return { text: ['once ', 'upon'], ending: 'hang' }
    if (said === 'a short one') return { text: ['the ', 'end'] }
    return { text: request.messages.flatMap(({ role, content }) => (role === 'user' ? [content, ';'] : [])) }
  })
  const connection = faultyFetch(session.id, faults, { endless: true })
  const client = new SwitchyardClient({
    baseUrl: ORIGIN,
    token: account.token,
    fetch: connection.fetch,
    backoff: { firstMs: 1, maxMs: 1, attempts: 4, openAttempts: 4 },
  })
  const words = new WordQueue()
  let typed = false
  const events: RunEvent[] = []
  for (const prompt of ['a long story', 'and now']) {
    const run = driveRun({
      client,
      sessionId: session.id,
      request: ExecuteRequest.parse(makeExecute(prompt)),
      sealer: session.sealer,
      words,
      tools: { run: async () => ({ content: '', isError: true }) },
      approver: {
        approveTool: async () => ({ decision: 'rejected' }),
        decideGate: async () => ({ decision: 'rejected' }),
      },
    })
    for await (const event of run) {
      events.push(event)
      if (event.type !== 'text_delta' || event.delta !== 'upon' || typed) continue
      typed = true
      words.push('a short one')
    }
  }
  const detail = await client.sessions.get(session.id)
  if (!detail.ok) throw new Error(JSON.stringify(detail.error))
  const history = detail.value.messages.map(({ role, content, id, interrupted }) => [
    role,
    'encrypted' in content ? openOne(session, `message:${id}`, content.encrypted) : content,
    ...(interrupted ? ['interrupted'] : []),
  ])
  return { events, history, requests: connection.count() }
}

const WHOLE = [
  ['user', 'a long story'],
  ['assistant', 'once upon', 'interrupted'],
  ['user', 'a short one'],
  ['assistant', 'the end'],
  ['user', 'and now'],
  ['assistant', 'a long story;a short one;and now;'],
]

const outcomes = (events: RunEvent[]) =>
  events.flatMap((event) => (event.type === 'run_ended' ? [event.outcome] : []))
/** The request that brings the words. */
const INJECT = 1
const COMPLETED = { status: 'completed', turn: expect.anything() }

test.each(FAULTS.flatMap((kind) => [false, true].map((dies) => ({ kind, dies }))))(
  '[EC 15, U02, U14] a request $kind (and the router dies: $dies): new words are said once, and answered',
  async ({ kind, dies }) => {
    const account = await makeClient()
    const clean = await play(account, await newSealedSession(account, 2), [])
    expect([outcomes(clean.events), clean.history]).toEqual([[COMPLETED, COMPLETED], WHOLE])
    for (let at = 0; at < clean.requests - 1; at++) {
      const told = await play(account, await newSealedSession(account, 2), [{ at, kind, dies }])
      const [first, second] = outcomes(told.events)
      expect(second).toEqual(COMPLETED)
      // A dying router takes with it what nobody had sealed: what was half said, and what was not yet sealed of the prompt.
      const lostPrompt = first?.status === 'error' && first.failure.message.includes('send it again')
      if (lostPrompt) {
        expect({ at, dies }).toEqual({ at: INJECT, dies: true })
        continue
      }
      expect({ at, first }).toEqual({ at, first: COMPLETED })
      expect(told.events.filter(({ type }) => type === 'words_sent')).toHaveLength(1)
      const finished = ([, , interrupted]: unknown[]) => !(dies && interrupted)
      expect({ at, history: told.history.filter(finished) }).toEqual({ at, history: WHOLE.filter(finished) })
    }
  },
)
