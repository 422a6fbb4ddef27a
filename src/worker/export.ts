import type { DeviceRecord } from '../gateway/rpc.ts'
import type { ExportRecord } from '../protocol/execution/export.ts'
import { toWireTime } from '../protocol/time.ts'
import type { SessionRpc } from '../session/rpc.ts'
import type { Database } from '../storage/d1/database.ts'
import { accountLives, listSessionIds, listUserFacts } from '../storage/d1/export.ts'
import { loadDefaultPolicy, loadSettings } from '../storage/d1/settings.ts'
import { SESSIONS_PER_PAGE } from '../storage/limits.ts'
import { toDeviceSummary } from './device-summary.ts'
import { toPolicySetting } from './policy-setting.ts'

/** Facts that are read from D1 at a time; each is a line or two. */
const FACTS_PER_READ = 100

const encoder = new TextEncoder()
const line = (record: ExportRecord): Uint8Array => encoder.encode(`${JSON.stringify(record)}\n`)
const opening = (userId: string): Uint8Array =>
  line({ type: 'export', version: 1, user_id: userId, exported_at: toWireTime(Date.now()) })

/** One session between `export` and `end`. */
export async function* exportSession(
  userId: string,
  lines: ReadableStream<Uint8Array>,
): AsyncGenerator<Uint8Array> {
  yield opening(userId)
  yield* lines
  yield line({ type: 'end', sessions: 1 })
}

/** The sessions of a page of everything: those after `after`, the oldest first, and whether there are more. */
export type SessionPage = { ids: string[]; more: boolean }

export async function sessionPage(db: Database, userId: string, after: string | null): Promise<SessionPage> {
  const ids = await listSessionIds(db, userId, after ?? '', SESSIONS_PER_PAGE + 1)
  return { ids: ids.slice(0, SESSIONS_PER_PAGE), more: ids.length > SESSIONS_PER_PAGE }
}

/** Where what is kept of a user is read from. */
export type AccountSources = {
  db: Database
  session(id: string): SessionRpc
  devices(): Promise<DeviceRecord[]>
}

/**
 * A page of everything: on the first one what is remembered about the user, settings and the paired devices, then the
 * sessions in the order they were made, each read from its object while it is written out. One that was deleted meanwhile is passed over; the account
 * itself, or any other failure, throws, and the page has no `end`.
 */
export async function* exportAccount(
  { db, session, devices }: AccountSources,
  userId: string,
  { ids, more, first }: SessionPage & { first: boolean },
): AsyncGenerator<Uint8Array> {
  yield opening(userId)
  if (first) {
    yield* userFacts(db, userId)
    yield* userSettings(db, userId)
    for (const device of await devices()) yield line({ type: 'device', ...toDeviceSummary(device) })
  }
  let sessions = 0
  for (const id of ids) {
    const lines = await session(id).exportLines(userId)
    if (!lines.ok) continue
    yield* lines.value
    sessions++
  }
  if (sessions < ids.length && !(await accountLives(db, userId))) {
    throw new Error('the account was deleted while it was exported')
  }
  const next = more ? ids.at(-1) : undefined
  yield line({ type: 'end', sessions, ...(next === undefined ? {} : { next }) })
}

async function* userFacts(db: Database, userId: string): AsyncGenerator<Uint8Array> {
  for (let after = ''; ; ) {
    const facts = await listUserFacts(db, userId, after, FACTS_PER_READ)
    for (const fact of facts) yield line({ type: 'memory', ...fact })
    const last = facts.at(-1)
    if (last === undefined) return
    after = last.id
  }
}

/** One line, if the user has set anything. */
async function* userSettings(db: Database, userId: string): AsyncGenerator<Uint8Array> {
  const settings = (await loadSettings(db, userId)) ?? {}
  const published = await loadDefaultPolicy(db, userId)
  if (published === null && Object.keys(settings).length === 0) return
  const policy = published === null ? {} : { default_policy: toPolicySetting(published) }
  yield line({ type: 'settings', ...settings, ...policy })
}

/** Bytes as they are asked for, never ahead. An error of the source breaks the stream, so that its end is missing. */
export function toByteStream(chunks: AsyncGenerator<Uint8Array>): ReadableStream<Uint8Array> {
  return new ReadableStream({
    type: 'bytes',
    pull: async (controller) => {
      try {
        const next = await chunks.next()
        if (next.done) controller.close()
        else controller.enqueue(next.value)
      } catch (error) {
        console.error('an export broke off:', error)
        controller.error(error)
      }
    },
    cancel: async () => {
      await chunks.return(undefined)
    },
  })
}
