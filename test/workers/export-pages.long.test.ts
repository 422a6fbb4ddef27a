import { env } from 'cloudflare:workers'
import { expect, it } from 'vitest'
import { ExportRecord } from '../../src/protocol/execution/export.ts'
import { newId } from '../../src/storage/ids.ts'
import { SESSIONS_PER_PAGE } from '../../src/storage/limits.ts'
import { makeClient } from '../support/workers/router.ts'
import { addUserFact } from '../support/workers/tables.ts'

const ALL = '/api/v1/export'

it('a long export has pages, whose `next` is the `after` of the page behind', {
  timeout: 120_000,
}, async () => {
  const client = await makeClient()
  const ask = async (path: string): Promise<ExportRecord[]> =>
    (await (await client.send('GET', path)).text())
      .trimEnd()
      .split('\n')
      .map((line) => ExportRecord.parse(JSON.parse(line)))
  // Rows without an object: passed over, like sessions that are deleted while the export runs.
  await client.newSession('first')
  const between = Array.from({ length: SESSIONS_PER_PAGE - 1 }, newId)
  await env.DB.batch(
    between.map((id) =>
      env.DB.prepare(
        'INSERT INTO sessions (id, user_id, created_at, updated_at, rev) VALUES (?, ?, 1, 1, 0)',
      ).bind(id, client.userId),
    ),
  )
  const last = await client.newSession('last')
  await addUserFact(client.userId, newId(), 'likes tea')
  const end = (await ask(ALL)).at(-1)
  if (end?.type !== 'end' || end.next === undefined) throw new Error(`no next: ${JSON.stringify(end)}`)
  expect(end.sessions).toBe(1)
  const rest = await ask(`${ALL}?after=${end.next}`)
  expect(rest.map(({ type }) => type)).toEqual(['export', 'session', 'usage', 'end'])
  expect(rest[1]).toMatchObject({ id: last })
  expect(rest.at(-1)).toEqual({ type: 'end', sessions: 1 })
  expect(await ask(`${ALL}?after=${last}`)).toHaveLength(2)
})
