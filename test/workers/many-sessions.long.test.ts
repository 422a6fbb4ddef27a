import { expect, it } from 'vitest'
import { GetSessionResponse, ListSessionsResponse } from '../../src/protocol/execution/session.ts'
import { makeExecute } from '../support/workers/bodies.ts'
import { makeClient, parsed, turnAs } from '../support/workers/router.ts'
import { scriptModels } from '../support/workers/scripted-models.ts'
import { endOf, eventsOf, STREAM, textOf } from '../support/workers/turn-stream.ts'

const models = scriptModels()
const SESSIONS = 100

it('[D25] a hundred sessions at once, each with a tool turn, have nothing of one another', async () => {
  const clients = [await makeClient(), await makeClient()]
  const list = async () =>
    Promise.all(
      clients.map(async (client) =>
        (await parsed(await client.send('GET', '/api/v1/sessions'), ListSessionsResponse)).sessions.map(
          ({ id }) => id,
        ),
      ),
    )
  // The model answers with what it hears: a mixed-up conversation shows.
  models.script(({ messages }) => {
    const last = messages.at(-1)
    const prompts = messages.filter(({ role }) => role === 'user').map(({ content }) => content)
    if (last?.role === 'tool') return { text: ['Done ', `${prompts.join()}/${last.content}`] }
    return {
      text: [`Reading for ${prompts.join()}`],
      calls: [{ name: 'read_file', arguments: { path: last?.content } }],
    }
  })

  const ids = await Promise.all(
    Array.from({ length: SESSIONS }, async (_, n) => {
      const client = clients[n % 2]
      if (!client) throw new Error('unreachable')
      const id = await client.newSession(`session ${n}`)
      const turn = await turnAs(await client.execute(id, makeExecute(`prompt-${n}`)), 'awaiting_tool')
      const [call] = turn.data.tool_requests
      expect(call?.arguments).toEqual({ path: `prompt-${n}` })
      const results = [{ call_id: call?.call_id ?? '', content: `result-${n}` }]
      const answer = { type: 'tool_results' as const, data: { results } }
      const events = await eventsOf(await client.proceed(id, answer, STREAM))
      expect(textOf(events)).toBe(`Done prompt-${n}/result-${n}`)
      expect(endOf(events)).toMatchObject({ status: 'completed' })
      const { session } = await parsed(await client.send('GET', `/api/v1/sessions/${id}`), GetSessionResponse)
      expect(
        session.messages.map(({ content }) => ('plaintext' in content ? content.plaintext : '')),
      ).toEqual([`prompt-${n}`, `Reading for prompt-${n}`, `Done prompt-${n}/result-${n}`])
      return id
    }),
  )
  const [first, second] = await list()
  expect(first?.sort()).toEqual(ids.filter((_, n) => n % 2 === 0).sort())
  expect(second?.sort()).toEqual(ids.filter((_, n) => n % 2 === 1).sort())
  expect(models.chats).toHaveLength(2 * SESSIONS)
}, 30_000)
