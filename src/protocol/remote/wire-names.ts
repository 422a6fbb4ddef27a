/**
 * Thread names (remote protocol, "Thread names"; RF 8): a device that asked for them says and hears `thread` where
 * version 1 says `session`. Names are translated by where they stand and never by what they look like, so no text, no
 * capability and no id is touched. Inside the router there are only the names of version 1.
 */

import { err, ok, type Result } from '../result.ts'
import type { RemoteEvent } from './events.ts'
import type { RemoteFrame } from './frame.ts'
import type { SavedSession } from './host-results.ts'
import type { MessageOrigin, RemoteMessage } from './message.ts'
import type { OperationType } from './operation-kinds.ts'
import { isJsonObject } from './parse-json.ts'
import type { RemoteResult } from './results.ts'
import type { RemoteSessionInfo } from './session-info.ts'
import type { RemoteSnapshot } from './snapshot.ts'

export const THREAD_FIELDS = { session_id: 'thread_id', session: 'thread', sessions: 'threads' } as const

export const THREAD_OPERATIONS = {
  subscribe_sessions: 'subscribe_threads',
  list_sessions: 'list_threads',
  list_saved_sessions: 'list_saved_threads',
  create_session: 'create_thread',
  attach_session: 'attach_thread',
  detach_session: 'detach_thread',
  resume_session: 'resume_thread',
  set_session_settings: 'set_thread_settings',
} as const satisfies Partial<Record<OperationType, string>>

export const THREAD_RESULTS = {
  sessions: 'threads',
  saved_sessions: 'saved_threads',
  session_created: 'thread_created',
  session_resumed: 'thread_resumed',
  session_settings_updated: 'thread_settings_updated',
} as const satisfies Partial<Record<RemoteResult['type'], string>>

export const THREAD_EVENTS = {
  session_closed: 'thread_closed',
} as const satisfies Partial<Record<RemoteEvent['type'], string>>

export const THREAD_FRAME_KINDS = { sessions: 'threads' } as const satisfies Partial<
  Record<RemoteFrame['kind'], string>
>

type CloseReason = Extract<RemoteEvent, { type: 'session_closed' }>['reason']
export const THREAD_CLOSE_REASONS = {
  session_changed: 'thread_changed',
} as const satisfies Partial<Record<CloseReason, string>>

type ErrorCode = Extract<RemoteResult, { type: 'error' }>['code']
export const THREAD_ERROR_CODES = {
  stale_session: 'stale_thread',
} as const satisfies Partial<Record<ErrorCode, string>>

/** The operations that hold a session's id themselves, beside their type. */
const HOLD_SESSION_ID: ReadonlySet<string> = new Set<OperationType>([
  'resume_session',
  'pin_thread',
  'unpin_thread',
  'settle_thread',
  'unsettle_thread',
])

type Names = Readonly<Record<string, string>>

const lookUp = (names: Names, name: string): string =>
  Object.hasOwn(names, name) ? (names[name] ?? name) : name

/** The same fields in the same order under the names of the other vocabulary. */
const renamed = (object: object, names: Names): Record<string, unknown> =>
  Object.fromEntries(Object.entries(object).map(([key, value]) => [lookUp(names, key), value]))

const V1_OPERATIONS: Names = Object.fromEntries(
  Object.entries(THREAD_OPERATIONS).map(([v1, thread]) => [thread, v1]),
)

/** Puts the session's id under its name of version 1; null stands for neither. */
function withSessionId(object: Record<string, unknown>): Result<Record<string, unknown>, 'v1_name'> {
  const { session_id: v1Name, ...rest } = object
  if (v1Name !== undefined && v1Name !== null) return err('v1_name')
  return ok(renamed(rest, { thread_id: 'session_id' }))
}

/**
 * A request in thread names, in the names of version 1. A name of version 1 where its thread name belongs is refused
 * (D37). Values that are no request pass unchanged: what is wrong with them is said by whoever decodes them.
 */
export function fromThreadNames(value: unknown): Result<unknown, 'v1_name'> {
  if (!isJsonObject(value)) return ok(value)
  const request = withSessionId(value)
  if (!request.ok) return request
  const { operation } = request.value
  if (!isJsonObject(operation) || typeof operation.type !== 'string') return request
  if (Object.hasOwn(THREAD_OPERATIONS, operation.type)) return err('v1_name')
  const type = lookUp(V1_OPERATIONS, operation.type)
  const named = HOLD_SESSION_ID.has(type) ? withSessionId(operation) : ok(operation)
  return named.ok ? ok({ ...request.value, operation: { ...named.value, type } }) : named
}

const row = <T extends RemoteSessionInfo | SavedSession>(info: T): object => ({
  ...renamed(info, THREAD_FIELDS),
  ...(info.parent && { parent: renamed(info.parent, THREAD_FIELDS) }),
})

const origin = (from: MessageOrigin): object => ({
  ...from,
  ...(from.threads && { threads: from.threads.map((thread) => renamed(thread, THREAD_FIELDS)) }),
})

const message = (one: RemoteMessage): object => ({
  ...one,
  ...(one.origin && { origin: origin(one.origin) }),
})

const snapshot = ({ session, ...rest }: RemoteSnapshot): object => ({
  thread: row(session),
  ...rest,
  transcript: rest.transcript.map(message),
})

function event(one: RemoteEvent): object {
  switch (one.type) {
    case 'turn_started':
      return { ...one, ...(one.origin && { origin: origin(one.origin) }) }
    case 'snapshot':
      return { ...one, snapshot: snapshot(one.snapshot) }
    case 'session_closed':
      return { type: THREAD_EVENTS[one.type], reason: lookUp(THREAD_CLOSE_REASONS, one.reason) }
    default:
      return one
  }
}

function result(one: RemoteResult): object {
  const type = lookUp(THREAD_RESULTS, one.type)
  switch (one.type) {
    case 'error':
      return { ...one, code: lookUp(THREAD_ERROR_CODES, one.code) }
    case 'sessions':
    case 'saved_sessions':
      return { ...renamed({ ...one, sessions: one.sessions.map(row) }, THREAD_FIELDS), type }
    case 'session_created':
    case 'session_resumed':
      return { type, thread: row(one.session) }
    case 'attached':
      return { ...one, snapshot: snapshot(one.snapshot) }
    case 'history':
      return { ...one, messages: one.messages.map(message) }
    case 'thread_pinned':
    case 'thread_settled':
      return renamed(one, THREAD_FIELDS)
    case 'request_status':
      return { ...one, ...(one.result && { result: result(one.result) }) }
    default:
      return { ...one, type }
  }
}

/** A frame in thread names, to be sent on a connection that asked for them. */
export function toThreadNames(frame: RemoteFrame): unknown {
  switch (frame.kind) {
    case 'response':
      return { ...frame, result: result(frame.result) }
    case 'event':
      return { ...renamed(frame, THREAD_FIELDS), event: event(frame.event) }
    case 'sessions':
      return {
        ...renamed({ ...frame, sessions: frame.sessions.map(row) }, THREAD_FIELDS),
        kind: THREAD_FRAME_KINDS[frame.kind],
      }
  }
}
