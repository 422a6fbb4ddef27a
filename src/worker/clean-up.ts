import type { GatewayRpc } from '../gateway/rpc.ts'
import { mapBounded } from '../providers/map-bounded.ts'
import type { SessionRpc } from '../session/rpc.ts'
import { listDeletedUsers } from '../storage/d1/accounts.ts'
import type { Database } from '../storage/d1/database.ts'
import {
  deleteOldRows,
  listExpiredSessions,
  listOldTraces,
  type OwnedSession,
} from '../storage/d1/retention.ts'
import { deleteSession } from '../storage/d1/sessions.ts'
import { finishAccountDeletion } from './account-deletion.ts'
import type { Retention } from './retention-config.ts'

export type CleanUpDeps = {
  db: Database
  session(id: string): SessionRpc
  gateway(userId: string): Pick<GatewayRpc, 'remove'>
  retention: Retention
  now(): number
}

/** What a run did; for the log. */
export type CleanUpReport = {
  rows: number
  accounts: number
  sessionsRemoved: number
  tracesExpired: number
  failures: number
}

const DAY_MS = 24 * 60 * 60 * 1000
/** Tokens that ended stay this long, so that their holder is told that they ended and not that they never were. */
const ENDED_TOKENS_DAYS = 30
/** Creating a session may be repeated days later (U16); a week is more than any client waits. */
const CREATE_KEYS_DAYS = 7
/** A copy that is still on its way cannot bring a forgotten fact back within this time. */
const FORGOTTEN_FACTS_DAYS = 30
/** Receipts outlive their session, which has the ones that count while it is there (D26). */
const RECEIPTS_DAYS = 30
/** A run ends by itself after this long; the next one goes on. */
const RUN_MS = 20_000
/** Sessions that one duty visits in a run. */
const MAX_VISITS = 200
/** Sessions that are listed, and objects that are asked, at a time. */
const PAGE = 50
const WIDTH = 8
/** An object that does not answer by then counts as failed: the others must not wait for it. */
const VISIT_MS = 5_000

/**
 * The hourly clean-up (D31, EC 22). Each duty is bounded, may be cut off anywhere and repeated, and fails for itself:
 * what fails is logged and comes again next hour. Never throws.
 */
export async function cleanUp(deps: CleanUpDeps): Promise<CleanUpReport> {
  const { db, session, gateway, retention, now } = deps
  const startMs = now()
  const report: CleanUpReport = { rows: 0, accounts: 0, sessionsRemoved: 0, tracesExpired: 0, failures: 0 }
  const run: Run = { deps, report, deadlineMs: startMs + RUN_MS }
  const ago = (days: number): number => startMs - days * DAY_MS
  const duty = async (name: string, work: () => Promise<void>) => {
    try {
      await work()
    } catch (error) {
      report.failures++
      console.error(`clean-up: ${name} failed:`, error)
    }
  }

  await duty('old rows', async () => {
    report.rows = await deleteOldRows(db, {
      tokensBeforeMs: ago(ENDED_TOKENS_DAYS),
      createKeysBeforeMs: ago(CREATE_KEYS_DAYS),
      forgottenBeforeMs: ago(FORGOTTEN_FACTS_DAYS),
      receiptsBeforeMs: ago(RECEIPTS_DAYS),
    })
  })

  await duty('deleted accounts', async () => {
    for (const userId of await listDeletedUsers(db)) {
      if (now() >= run.deadlineMs) return
      await finishAccountDeletion({ db, session, gateway, now }, userId, run.deadlineMs)
      report.accounts++
    }
  })

  const { archivedDays, sessionsDays, tracesDays } = retention
  const cutoffs = {
    archivedBeforeMs: archivedDays === 0 ? null : ago(archivedDays),
    idleBeforeMs: sessionsDays === 0 ? null : ago(sessionsDays),
  }
  await duty('expired sessions', () =>
    visitSessions(
      run,
      (after) => listExpiredSessions(db, cutoffs, after, PAGE),
      async ({ id, userId }) => {
        const removed = await session(id).expire(userId, cutoffs)
        if (removed.ok && removed.value) report.sessionsRemoved++
        return removed.ok
      },
    ),
  )

  if (tracesDays > 0) {
    // Whole days: what was looked through today has nothing to say before tomorrow.
    const beforeMs = Math.floor(ago(tracesDays) / DAY_MS) * DAY_MS
    await duty('old traces', () =>
      visitSessions(
        run,
        (after) => listOldTraces(db, beforeMs, after, PAGE),
        async ({ id, userId }) => {
          const expired = await session(id).expireTraces(userId, beforeMs)
          if (expired.ok) report.tracesExpired++
          return expired.ok
        },
      ),
    )
  }
  return report
}

type Run = { deps: CleanUpDeps; report: CleanUpReport; deadlineMs: number }

/**
 * Visits listed sessions page by page until there are no more or the bounds are reached. `visit` says whether the object
 * holds the session; where it does not, the row in D1 is a leftover and goes. One that fails holds up no other.
 */
async function visitSessions(
  { deps: { db, now }, report, deadlineMs }: Run,
  list: (after: string) => Promise<OwnedSession[]>,
  visit: (session: OwnedSession) => Promise<boolean>,
): Promise<void> {
  for (let after = '', visits = 0; visits < MAX_VISITS && now() < deadlineMs; ) {
    const page = await list(after)
    const last = page.at(-1)
    if (last === undefined) return
    await mapBounded(page, WIDTH, async (owned) => {
      if (now() >= deadlineMs) return
      try {
        const held = await withDeadline(visit(owned), VISIT_MS)
        if (!held) await deleteSession(db, owned.userId, owned.id)
      } catch (error) {
        report.failures++
        console.error(`clean-up: session ${owned.id} failed:`, error)
      }
    })
    visits += page.length
    after = last.id
  }
}

async function withDeadline<T>(work: Promise<T>, ms: number): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | null = null
  const limit = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error('the object did not answer in time')), ms)
  })
  try {
    return await Promise.race([work, limit])
  } finally {
    clearTimeout(timer)
  }
}
