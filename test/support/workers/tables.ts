import { env } from 'cloudflare:workers'

/** Every row of D1 that contains this text, by table: in whatever column it stands. */
export async function rowsWith(text: string): Promise<Record<string, unknown[]>> {
  const { results: tables } = await env.DB.prepare(
    "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE '\\_cf%' ESCAPE '\\'",
  ).all<{ name: string }>()
  const found: Record<string, unknown[]> = {}
  for (const { name } of tables) {
    const { results } = await env.DB.prepare(`SELECT * FROM "${name}"`).all()
    const rows = results.filter((row) => JSON.stringify(row).includes(text))
    if (rows.length > 0) found[name] = rows
  }
  return found
}

/** Puts a fact about a user into D1, as a memory that was stored. */
export async function addUserFact(userId: string, id: string, content: string): Promise<void> {
  await env.DB.prepare(
    `INSERT INTO user_memory (id, user_id, key, content, local_only, created_at, updated_at) VALUES (?, ?, ?, ?, 0, ?, ?)`,
  )
    .bind(id, userId, `key-${id}`, content, Date.now(), Date.now())
    .run()
}
