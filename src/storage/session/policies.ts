import type { ExecutePolicy } from '../../protocol/execution/policy.ts'
import { type Sql, textOf } from './sql.ts'

/** A longer policy is not kept, and what it decided cannot be decided again. In UTF-16 units of its JSON. */
export const MAX_POLICY_UNITS = 64 * 1024
/** Policies that are read for one answer: a page of a trace may name many. In UTF-16 units of their JSON. */
const MAX_READ_UNITS = 4 * 1024 * 1024

/** Keeps a policy under its digest, once however many runs bring it: traces name it. */
export function savePolicy(sql: Sql, digest: string, policy: ExecutePolicy): void {
  const body = JSON.stringify(policy)
  if (body.length > MAX_POLICY_UNITS) return
  if (sql.rows('SELECT 1 FROM policies WHERE digest = ?', digest).length > 0) return
  sql.rows('INSERT INTO policies (digest, body) VALUES (?, ?)', digest, body)
}

/** The policies of these digests that are kept, as JSON; as many as one answer may hold. */
export function loadPolicies(sql: Sql, digests: Iterable<string>): Record<string, Record<string, unknown>> {
  const found: Record<string, Record<string, unknown>> = {}
  let room = MAX_READ_UNITS
  for (const digest of digests) {
    const row = sql.rows('SELECT body FROM policies WHERE digest = ?', digest)[0]
    if (!row) continue
    const body = textOf(row, 'body')
    room -= body.length
    if (room < 0) break
    found[digest] = JSON.parse(body)
  }
  return found
}

/** The digests of the policies that these turns were decided by, the oldest turn first. */
export const policiesOfTurns = (sql: Sql, turnIds: Iterable<string>): Set<string> =>
  new Set(
    sql
      .rows(
        `SELECT policy FROM turns
         WHERE policy IS NOT NULL AND turn_id IN (SELECT value FROM json_each(?)) ORDER BY seq`,
        JSON.stringify([...turnIds]),
      )
      .map((row) => textOf(row, 'policy')),
  )

/** Every policy that is kept, one at a time. */
export function* eachPolicy(sql: Sql): Generator<{ digest: string; policy: Record<string, unknown> }> {
  for (let after = ''; ; ) {
    const row = sql.rows('SELECT * FROM policies WHERE digest > ? ORDER BY digest LIMIT 1', after)[0]
    if (!row) return
    after = textOf(row, 'digest')
    yield { digest: after, policy: JSON.parse(textOf(row, 'body')) }
  }
}

/** Drops the policies that no turn with a trace names. Those of a run that goes on are named by its turns. */
export function forgetUnusedPolicies(sql: Sql): void {
  sql.rows(
    `DELETE FROM policies WHERE digest NOT IN
       (SELECT policy FROM turns WHERE policy IS NOT NULL AND (trace <> '[]' OR status = 'running'))`,
  )
}
