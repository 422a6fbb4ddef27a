import { factRef } from '../protocol/execution/content-refs.ts'
import type { MemoryRecord } from '../protocol/execution/memory.ts'
import { eachFact } from '../storage/session/export-rows.ts'
import { toRecord } from '../storage/session/memories.ts'
import { loadSealed } from '../storage/session/sealed-contents.ts'
import type { SessionRow } from '../storage/session/session-row.ts'
import type { Sql } from '../storage/session/sql.ts'

/**
 * The facts of a session as its user looks them up (D50), the newest first: from the object, which has them before D1
 * does. Those of a sealed session are told in their envelopes; what waits for one is left out.
 */
export function listFacts(sql: Sql, { sessionId, keyId }: SessionRow): MemoryRecord[] {
  const facts = [...eachFact(sql)].sort((a, b) => b.updatedAtMs - a.updatedAtMs || (a.id < b.id ? 1 : -1))
  if (keyId === null) return facts.map((fact) => toRecord(sessionId, fact))
  const envelopes = loadSealed(
    sql,
    facts.map(({ id }) => factRef(id)),
  )
  return facts.flatMap((fact) => {
    const encrypted = envelopes[factRef(fact.id)]
    return encrypted === undefined ? [] : [{ ...toRecord(sessionId, fact), encrypted }]
  })
}
