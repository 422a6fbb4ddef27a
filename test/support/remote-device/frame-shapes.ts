import { sessionEvent, sessionResults } from './attached/session-shapes.ts'
import {
  type Check,
  count,
  exactly,
  type Fields,
  flag,
  isFields,
  listOf,
  matching,
  object,
  oneOf,
  someText,
  text,
  time,
} from './shapes.ts'

/** The frames of remote protocol v1 on an authenticated connection, from its sections "Session frames" to "Sessions". */

export type WireNames = 'session' | 'thread'

/** "Thread names": a connection uses one of the two columns and nothing of the other. */
export const namesOf = (names: WireNames) =>
  names === 'session'
    ? {
        id: 'session_id',
        one: 'session',
        many: 'sessions',
        stale: 'stale_session',
        list: 'list_sessions',
        subscribe: 'subscribe_sessions',
        attach: 'attach_session',
        detach: 'detach_session',
        resume: 'resume_session',
        create: 'create_session',
        saved: 'list_saved_sessions',
        settings: 'set_session_settings',
      }
    : {
        id: 'thread_id',
        one: 'thread',
        many: 'threads',
        stale: 'stale_thread',
        list: 'list_threads',
        subscribe: 'subscribe_threads',
        attach: 'attach_thread',
        detach: 'detach_thread',
        resume: 'resume_thread',
        create: 'create_thread',
        saved: 'list_saved_threads',
        settings: 'set_thread_settings',
      }

/** Codes that any request can be refused with, and those that belong to one operation. */
const errorCodes = (names: WireNames) => [
  'incompatible_version',
  'invalid_request',
  'frame_too_large',
  'unsupported_operation',
  'not_found',
  namesOf(names).stale,
  'rate_limited',
  'owner_unavailable',
  'request_conflict',
  'internal',
  'busy',
  'not_running',
  'stale_turn',
  'stale_question',
  'stale_approval',
  'stale_cursor',
  'invalid_answer',
]

/** "Receipts": the operations whose response says what became of them. */
const MUTATIONS = [
  'submit_prompt',
  'steer',
  'queue',
  'cancel_turn',
  'answer_question',
  'cancel_question',
  'resolve_approval',
  'execute_command',
  'set_session_settings',
  'set_thread_settings',
  'create_session',
  'create_thread',
  'resume_session',
  'resume_thread',
  'set_settings',
  'pin_thread',
  'unpin_thread',
  'settle_thread',
  'unsettle_thread',
  'upload_image',
]
export const isMutation = (operation: string): boolean => MUTATIONS.includes(operation)

/** A refusal of a frame that could not be read as a request carries no receipt, whatever it asked for. */
const UNREAD = ['frame_too_large', 'incompatible_version', 'invalid_request', 'unsupported_operation']

/** Results of operations that nothing here serves yet; they are told apart by their names only. */
const otherResults = (names: WireNames) => ['changes', 'directories', `${names}_created`]

const CAPABILITIES = [
  ...['saved_sessions', 'session_changes', 'thread_create_options', 'usage_summary', 'settings_get'],
  ...['settings_set', 'thread_pin', 'thread_unpin', 'thread_settle', 'thread_unsettle', 'token_rotation'],
  ...['connect_requests', 'desktops', 'push', 'flow_ack'],
]

const row = (names: WireNames) =>
  object(
    {
      [namesOf(names).id]: someText,
      registration_epoch: count,
      title: text,
      model: text,
      activity: oneOf('idle', 'running', 'awaiting_approval', 'awaiting_question'),
      attention: object({ approval: flag, question: flag }),
      health: oneOf('live', 'unresponsive'),
    },
    {
      workspace: someText,
      harness: exactly('switchyard'),
      turn_count: count,
      last_active_at: time,
      parent: object({ [namesOf(names).id]: someText, relationship: someText }),
      host: object({ id: someText, name: text, online: flag }, { last_seen_at: time }),
    },
  )

/** Rows come in ascending order of their ids, each once. */
const rows =
  (names: WireNames): Check =>
  (value, at) => {
    const faults = listOf(row(names))(value, at)
    if (faults.length > 0 || !Array.isArray(value)) return faults
    const ids = value.map((entry: Fields) => String(entry[namesOf(names).id]))
    const sorted = [...new Set(ids)].sort((a, b) => (a < b ? -1 : 1))
    return JSON.stringify(ids) === JSON.stringify(sorted) ? [] : [`${at} is not in the order of ids: ${ids}`]
  }

const HEX_32 = matching(/^[0-9a-f]{32}$/)
const listFields = (names: WireNames) => ({
  gateway_id: HEX_32,
  instance_id: HEX_32,
  [namesOf(names).many]: rows(names),
})

const error =
  (names: WireNames): Check =>
  (value, at) => {
    const versioned = isFields(value) && value.code === 'incompatible_version'
    return object({
      type: exactly('error'),
      code: oneOf(...errorCodes(names)),
      message: someText,
      ...(versioned ? { supported_versions: listOf(exactly(1)) } : {}),
    })(value, at)
  }

const requestStatus =
  (names: WireNames): Check =>
  (value, at) => {
    const decided = isFields(value) && (value.receipt === 'applied' || value.receipt === 'rejected')
    return object({
      type: exactly('request_status'),
      target_request_id: text,
      receipt: oneOf('applied', 'rejected', 'received', 'unknown'),
      ...(decided ? { result: (inner: unknown, place: string) => result(names)(inner, place) } : {}),
    })(value, at)
  }

function result(names: WireNames): Check {
  const { many } = namesOf(names)
  const known: Readonly<Record<string, Check>> = {
    [many]: object(
      { type: exactly(many), ...listFields(names), subscribed: flag },
      { capabilities: listOf(oneOf(...CAPABILITIES)) },
    ),
    detached: object({ type: exactly('detached') }),
    request_status: requestStatus(names),
    error: error(names),
    ...sessionResults(names, namesOf(names).id, row(names), HEX_32),
  }
  return (value, at) => {
    const type = isFields(value) ? String(value.type) : ''
    const check = Object.hasOwn(known, type) ? known[type] : undefined
    if (check !== undefined) return check(value, at)
    return otherResults(names).includes(type)
      ? []
      : [`${at} is no result: ${JSON.stringify(value)?.slice(0, 80)}`]
  }
}

/** What is wrong with a response, to one of these operations; `null` stands for a frame without a readable one. */
function responseFaults(frame: Fields, names: WireNames, operations: ReadonlySet<string | null>): string[] {
  const code = isFields(frame.result) && frame.result.type === 'error' ? String(frame.result.code) : null
  const faults = object(
    {
      kind: exactly('response'),
      protocol_version: exactly(1),
      request_id: text,
      result: result(names),
    },
    { receipt: oneOf('applied', 'rejected', 'unknown') },
  )(frame, 'response')
  const mutate = [...operations].map((operation) => operation !== null && isMutation(operation))
  const receipt = frame.receipt
  if (!mutate.includes(true) && receipt !== undefined)
    faults.push('response.receipt stands where nothing can change')
  if (
    mutate.length > 0 &&
    !mutate.includes(false) &&
    receipt === undefined &&
    !(code !== null && UNREAD.includes(code))
  ) {
    faults.push('response.receipt is missing on an answer to a change')
  }
  if (receipt === 'applied' && code !== null) faults.push('response.receipt says applied of an error')
  if (receipt === 'rejected' && code === null) faults.push('response.receipt says rejected without an error')
  return faults
}

/** What is wrong with a frame of an authenticated connection. */
export function frameFaults(
  frame: Fields,
  names: WireNames,
  operationsOf: (requestId: string) => ReadonlySet<string | null>,
): string[] {
  const { id, many } = namesOf(names)
  if (frame.kind === 'response') {
    return responseFaults(frame, names, operationsOf(String(frame.request_id)))
  }
  if (frame.kind === many) {
    return object({ kind: exactly(many), protocol_version: exactly(1), ...listFields(names) })(frame, many)
  }
  if (frame.kind === 'event') {
    return object({
      kind: exactly('event'),
      protocol_version: exactly(1),
      [id]: someText,
      registration_epoch: count,
      sequence: count,
      generation: count,
      event: sessionEvent(names, row(names)),
    })(frame, 'event')
  }
  return [`there is no frame of the kind ${String(frame.kind)}`]
}
