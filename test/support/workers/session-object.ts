import { runDurableObjectAlarm, runInDurableObject } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import type { Session } from '../../../src/session/session.ts'
import { makeSql } from '../../../src/storage/object-sql.ts'
import { loadCheckpoint } from '../../../src/storage/session/checkpoint.ts'
import { loadMessages, type StoredMessage } from '../../../src/storage/session/messages.ts'
import type { Sql } from '../../../src/storage/session/sql.ts'
import { loadTurns, type StoredTurn } from '../../../src/storage/session/turns.ts'

const stubOf = (sessionId: string): DurableObjectStub<Session> =>
  // The binding's type does not know the class behind it.
  env.SESSION.getByName(sessionId) as unknown as DurableObjectStub<Session>

/** Works inside the object of a session. */
export const inside = <T>(
  sessionId: string,
  work: (sql: Sql, state: DurableObjectState, session: Session) => T | Promise<T>,
): Promise<T> =>
  runInDurableObject<Session, T>(stubOf(sessionId), (session, state) =>
    work(makeSql(state.storage), state, session),
  )

/** The object dies where it stands: memory and everything in flight is gone, storage stays. */
export async function crash(sessionId: string): Promise<void> {
  const asked = inside(sessionId, (_sql, state) => state.abort('crashed by the test'))
  await asked.catch(() => {})
}

export const ringAlarm = (sessionId: string): Promise<boolean> => runDurableObjectAlarm(stubOf(sessionId))

export const alarmOf = (sessionId: string): Promise<number | null> =>
  inside(sessionId, (_sql, state) => state.storage.getAlarm())

export const messagesOf = (sessionId: string): Promise<StoredMessage[]> =>
  inside(sessionId, (sql) => loadMessages(sql, 1, 100_000))

export const turnsOf = (sessionId: string): Promise<StoredTurn[]> =>
  inside(sessionId, (sql) => loadTurns(sql, 1, 100_000))

export const checkpointOf = (sessionId: string) => inside(sessionId, (sql) => loadCheckpoint(sql))

/** The transcript without what differs from run to run. */
export const transcriptOf = async (sessionId: string) =>
  (await messagesOf(sessionId)).map(({ role, text, interrupted, calls }) => ({
    role,
    text,
    ...(interrupted ? { interrupted } : {}),
    ...(calls.length === 0
      ? {}
      : { calls: calls.map(({ name, result, isError }) => ({ name, result, isError })) }),
  }))
