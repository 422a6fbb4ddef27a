import { and, eq, lt, sql } from 'drizzle-orm'
import type { BatchItem } from 'drizzle-orm/batch'
import { byteLength, MAX_D1_TEXT_BYTES } from '../limits.ts'
import type { CopiedReceipt } from '../session/copy-receipts.ts'
import type { CopiedMessage, CopiedTurn } from '../session/copy-rows.ts'
import type { OwedChange } from '../session/memories.ts'
import type { SessionRow } from '../session/session-row.ts'
import type { Database } from './database.ts'
import { writeChange } from './memory.ts'
import { insertReceipt } from './receipts.ts'
import { messages, sessions, turns } from './schema.ts'

/** Rows of one session, and changes of what is remembered, on their way to D1. */
export type CopyBatch = {
  session: SessionRow
  /** What lists show of it beside its own row. */
  shown: { workspace: string | null; derivedTitle: string | null; messageCount: number }
  messages: CopiedMessage[]
  turns: CopiedTurn[]
  memory: OwedChange[]
  receipts: CopiedReceipt[]
}

/** Stands where a text is too long for D1; the whole is in the session's object (D27). */
const OMITTED = '\u0001omitted:'

const omitted = (bytes: number): string => `${OMITTED}${bytes}`

const bounded = (text: string): string => {
  if (text.length * 3 <= MAX_D1_TEXT_BYTES) return text
  const bytes = byteLength(text)
  return bytes <= MAX_D1_TEXT_BYTES ? text : omitted(bytes)
}

const orOmitted = (text: () => string, omittedBytes: number | undefined): string =>
  omittedBytes === undefined ? bounded(text()) : omitted(omittedBytes)

/**
 * Writes the batch in one round trip. Each row is an upsert that only a greater `rev` can pass, so a batch may arrive
 * twice or late (D26).
 */
export async function writeCopy(
  db: Database,
  { session, shown, messages: said, turns: served, memory, receipts }: CopyBatch,
): Promise<void> {
  const { sessionId } = session
  const statements: [BatchItem<'sqlite'>, ...BatchItem<'sqlite'>[]] = [
    db
      .update(sessions)
      .set({
        title: session.title,
        scope: session.scope,
        updatedAt: session.updatedAtMs,
        archivedAt: session.archivedAtMs,
        shared: session.listed,
        ...shown,
        rev: session.rev,
      })
      .where(and(eq(sessions.id, sessionId), lt(sessions.rev, session.rev))),
  ]
  for (const message of said) {
    const row = {
      id: message.id,
      runId: message.runId,
      role: message.role,
      provider: message.provider ?? null,
      model: message.model ?? null,
      content: orOmitted(() => message.text, message.omittedText),
      calls:
        'length' in message.calls && message.calls.length === 0 && message.omittedCalls === undefined
          ? null
          : orOmitted(() => JSON.stringify(message.calls), message.omittedCalls),
      interrupted: message.interrupted,
      createdAt: message.createdAtMs,
      rev: message.rev,
    }
    statements.push(
      db
        .insert(messages)
        .values({ sessionId, seq: message.seq, ...row })
        .onConflictDoUpdate({
          target: [messages.sessionId, messages.seq],
          set: row,
          setWhere: sql`excluded.rev > ${messages.rev}`,
        }),
    )
  }
  for (const turn of served) {
    const row = {
      id: turn.turnId,
      runId: turn.runId,
      status: turn.status,
      trace: orOmitted(() => JSON.stringify(turn.trace), turn.omittedTrace),
      calls: orOmitted(() => JSON.stringify(turn.calls), turn.omittedCalls),
      startedAt: turn.startedAtMs,
      endedAt: turn.endedAtMs,
      rev: turn.rev,
    }
    statements.push(
      db
        .insert(turns)
        .values({ sessionId, seq: turn.seq, ...row })
        .onConflictDoUpdate({
          target: [turns.sessionId, turns.seq],
          set: row,
          setWhere: sql`excluded.rev > ${turns.rev}`,
        }),
    )
  }
  for (const { change } of memory) statements.push(writeChange(db, session, change))
  for (const receipt of receipts) statements.push(insertReceipt(db, session, receipt))
  await db.batch(statements)
}
