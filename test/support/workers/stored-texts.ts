import { env } from 'cloudflare:workers'
import { inside } from './session-object.ts'

/** Everything that is kept durably, as one text: each table of the object and its key-value part, and each table of D1. */
export async function storedTexts(sessionId: string): Promise<string> {
  const parts = await inside(sessionId, async (sql, state) => [
    ...sql
      .rows("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE '\\_cf%' ESCAPE '\\'")
      .map(({ name }) => JSON.stringify(sql.rows(`SELECT * FROM "${name}"`))),
    JSON.stringify([...(await state.storage.list())]),
  ])
  const { results: tables } = await env.DB.prepare(
    "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE '\\_cf%' ESCAPE '\\'",
  ).all<{ name: string }>()
  for (const { name } of tables) {
    const { results } = await env.DB.prepare(`SELECT * FROM "${name}"`).all()
    parts.push(JSON.stringify(results))
  }
  return parts.join('\n')
}
