import { and, desc, eq, isNull, type SQL, sql } from 'drizzle-orm'
import type { Database } from './database.ts'
import { orFault } from './fault.ts'
import { sessions } from './schema.ts'

/** A session as the list of saved ones shows it. Times are epoch milliseconds. */
export type SavedRow = {
  sessionId: string
  /** As the client set it; null or blank: none. */
  title: string | null
  derivedTitle: string | null
  workspace: string | null
  createdAtMs: number
  updatedAtMs: number
  messageCount: number
}

/** Where a page begins: behind this session. */
export type SavedPlace = { createdAtMs: number; sessionId: string }

/** `query`: kept are sessions whose title, workspace or id contains it, in any case. */
export type SavedFilter = { after: SavedPlace | null; query: string | null; limit: number }

/** A title of blanks is none. */
const shownTitle = sql`coalesce(nullif(trim(${sessions.title}, char(9, 10, 13, 32)), ''), ${sessions.derivedTitle}, '')`

/** When the transcript was last written: a new title is none of it. */
const writtenAt = sql<number>`coalesce(
  (SELECT m.created_at FROM messages m WHERE m.session_id = sessions.id ORDER BY m.seq DESC LIMIT 1),
  sessions.created_at)`

// LIKE patterns are short on this platform and have wildcards of their own (D27).
const contains = (text: SQL, query: string): SQL => sql`instr(lower(${text}), lower(${query})) > 0`

/** Of these letters alone the database knows both cases. */
const ASCII = /^\p{ASCII}*$/u
/** Sessions that are read at once where the database cannot compare. */
const BATCH = 500

/** A user's sessions that are not archived (D03), the newest first by when they were made. */
export async function listSavedSessions(
  db: Database,
  userId: string,
  filter: SavedFilter,
): Promise<SavedRow[]> {
  const { query, limit } = filter
  if (query === null || ASCII.test(query)) return selectSaved(db, userId, filter)
  const wanted = query.toLowerCase()
  const found: SavedRow[] = []
  let after = filter.after
  for (;;) {
    const batch = await selectSaved(db, userId, { after, query: null, limit: BATCH })
    found.push(...batch.filter((row) => textsOf(row).some((text) => text.toLowerCase().includes(wanted))))
    const last = batch.at(-1)
    if (last === undefined || batch.length < BATCH || found.length >= limit) return found.slice(0, limit)
    after = last
  }
}

/** What a query is looked for in. */
const textsOf = ({ sessionId, title, derivedTitle, workspace }: SavedRow): string[] => [
  title === null || title.trim() === '' ? (derivedTitle ?? '') : title,
  workspace ?? '',
  sessionId,
]

function selectSaved(
  db: Database,
  userId: string,
  { after, query, limit }: SavedFilter,
): Promise<SavedRow[]> {
  return orFault(
    db
      .select({
        sessionId: sessions.id,
        title: sessions.title,
        derivedTitle: sessions.derivedTitle,
        workspace: sessions.workspace,
        createdAtMs: sessions.createdAt,
        updatedAtMs: writtenAt,
        messageCount: sessions.messageCount,
      })
      .from(sessions)
      .where(
        and(
          eq(sessions.userId, userId),
          isNull(sessions.archivedAt),
          after === null
            ? undefined
            : sql`(${sessions.createdAt}, ${sessions.id}) < (${after.createdAtMs}, ${after.sessionId})`,
          query === null
            ? undefined
            : sql`(${contains(shownTitle, query)}
                OR ${contains(sql`coalesce(${sessions.workspace}, '')`, query)}
                OR ${contains(sql`${sessions.id}`, query)})`,
        ),
      )
      .orderBy(desc(sessions.createdAt), desc(sessions.id))
      .limit(limit),
  )
}

/** What stands in the way of opening a user's session: nothing, that it is archived, or that there is none. */
export async function savedState(
  db: Database,
  userId: string,
  sessionId: string,
): Promise<'saved' | 'archived' | 'unknown'> {
  const rows = await orFault(
    db
      .select({ archivedAt: sessions.archivedAt })
      .from(sessions)
      .where(and(eq(sessions.id, sessionId), eq(sessions.userId, userId))),
  )
  const row = rows[0]
  if (row === undefined) return 'unknown'
  return row.archivedAt === null ? 'saved' : 'archived'
}

/** What the user marks sessions with on a device. */
export type ThreadMark = 'pinned' | 'settled'

/** Sets or takes back a mark; false when the user has no such session. */
export async function markThread(
  db: Database,
  owned: { userId: string; sessionId: string },
  mark: ThreadMark,
  setAtMs: number | null,
): Promise<boolean> {
  const written = await orFault(
    db
      .update(sessions)
      .set(mark === 'pinned' ? { pinnedAt: setAtMs } : { settledAt: setAtMs })
      .where(and(eq(sessions.id, owned.sessionId), eq(sessions.userId, owned.userId))),
  )
  return written.meta.changes > 0
}
