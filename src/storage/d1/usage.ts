import { sql } from 'drizzle-orm'
import type { UsageRow } from '../../core/usage-summary.ts'
import type { Database } from './database.ts'
import { orFault } from './fault.ts'

type Stored = Omit<UsageRow, 'costs'> & { costs: string | null }

/**
 * What the model calls of a user used since a time, by day (UTC), run and model. Reads the turns of the sessions that were
 * written to since then, by their primary key: an index over times would cost a row with every turn. A list of calls that
 * was too long for D1 counts as nothing known.
 */
export async function listUsage(db: Database, userId: string, sinceMs: number): Promise<UsageRow[]> {
  const rows = await orFault(
    db.all<Stored>(sql`
      SELECT strftime('%Y-%m-%d', turns.started_at / 1000, 'unixepoch') AS day, turns.run_id AS runId,
        json_extract(call.value, '$.provider') AS provider, json_extract(call.value, '$.model') AS model,
        sum(json_extract(call.value, '$.usage.inputTokens')) AS inputTokens,
        sum(json_extract(call.value, '$.usage.outputTokens')) AS outputTokens,
        sum(json_extract(call.value, '$.usage.cachedTokens')) AS cachedTokens,
        sum(json_extract(call.value, '$.usage.cacheWriteTokens')) AS cacheWriteTokens,
        group_concat(json_extract(call.value, '$.cost'), ' ') AS costs
      FROM sessions JOIN turns ON turns.session_id = sessions.id
        JOIN json_each(CASE WHEN json_valid(turns.calls) THEN turns.calls ELSE '[]' END) AS call
      WHERE sessions.user_id = ${userId} AND sessions.updated_at >= ${sinceMs} AND turns.started_at >= ${sinceMs}
      GROUP BY 1, 2, 3, 4`),
  )
  return rows.map((row) => ({ ...row, costs: row.costs === null ? [] : row.costs.split(' ') }))
}
