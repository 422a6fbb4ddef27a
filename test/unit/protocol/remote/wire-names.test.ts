import { describe, expect, test } from 'vitest'
import type { SchemaNode } from '../../../../scripts/lib/json-schema-node.ts'
import { decodeRequest } from '../../../../src/protocol/remote/decode-request.ts'
import { RemoteFrame } from '../../../../src/protocol/remote/frame.ts'
import { RemoteRequest } from '../../../../src/protocol/remote/request.ts'
import {
  fromThreadNames,
  THREAD_CLOSE_REASONS,
  THREAD_ERROR_CODES,
  THREAD_EVENTS,
  THREAD_FIELDS,
  THREAD_FRAME_KINDS,
  THREAD_OPERATIONS,
  THREAD_RESULTS,
  toThreadNames,
} from '../../../../src/protocol/remote/wire-names.ts'
import { isObject, type Json, type JsonObject } from '../support/schema-walk.ts'
import { DOCUMENT_NAMES, documentOf, goldensOf } from './support/documents.ts'

const asJson = (value: unknown): Json => JSON.parse(JSON.stringify(value))
const frames = goldensOf('frame').map((file) => ({ ...file, frame: RemoteFrame.parse(file.wire) }))

const frameAt = (path: string) => {
  const found = frames.find((file) => file.path === `frames/${path}.json`)
  if (found === undefined) throw new Error(`there is no frames/${path}.json`)
  return found.frame
}

/** A frame in thread names, to be looked into. */
const translated = (path: string): JsonObject => {
  const frame = asJson(toThreadNames(frameAt(path)))
  if (!isObject(frame)) throw new Error(`${path} is no object`)
  return frame
}

/** The request of a golden file in thread names, by a rule of its own: these names stand nowhere but at these places. */
function inThreadNames(wire: unknown): JsonObject {
  const request = asJson(wire)
  if (!isObject(request) || !isObject(request.operation)) throw new Error('no request')
  const rename = ({ session_id, ...rest }: JsonObject): JsonObject =>
    session_id === undefined ? rest : { thread_id: session_id, ...rest }
  const operation = rename(request.operation)
  const names: Record<string, string> = THREAD_OPERATIONS
  return {
    ...rename(request),
    operation: { ...operation, type: names[String(operation.type)] ?? operation.type ?? null },
  }
}

/** Every key, and every `type`, `kind`, `code` and `reason`, anywhere in a value. */
function namesIn(value: Json): string[] {
  if (Array.isArray(value)) return value.flatMap(namesIn)
  if (!isObject(value)) return []
  return Object.entries(value).flatMap(([key, member]) => {
    const isName = ['type', 'kind', 'code', 'reason'].includes(key) && typeof member === 'string'
    return [key, ...(isName ? [String(member)] : []), ...namesIn(member)]
  })
}

const TABLE: Record<string, string> = {
  ...THREAD_FIELDS,
  ...THREAD_OPERATIONS,
  ...THREAD_RESULTS,
  ...THREAD_EVENTS,
  ...THREAD_FRAME_KINDS,
  ...THREAD_CLOSE_REASONS,
  ...THREAD_ERROR_CODES,
}

/** Values that speak of sessions and are no names of the table: they stay as they are (RF 8). */
const EXCEPTIONS = [
  // Capabilities of the host.
  'saved_sessions',
  'session_changes',
  // What a client does for a command.
  'new_session',
  'session_picker',
]

/** Every property, constant and listed value of a schema, with the name of the list or property it stands in. */
function wordsOf(node: SchemaNode, inside: string): { word: string; inside: string }[] {
  return [
    ...(node.const === undefined ? [] : [{ word: String(node.const), inside }]),
    ...(node.enum ?? []).map((word) => ({ word: String(word), inside })),
    ...Object.entries(node.properties ?? {}).flatMap(([key, property]) => [
      { word: key, inside: 'property' },
      ...wordsOf(property, key),
    ]),
    ...[...(node.anyOf ?? []), ...(node.oneOf ?? [])].flatMap((variant) => wordsOf(variant, inside)),
    ...(node.items === undefined ? [] : wordsOf(node.items, inside)),
  ]
}

describe('[RF 8] the table of thread names', () => {
  const words = DOCUMENT_NAMES.flatMap((name) => {
    const { root, defs } = documentOf(name)
    return [...wordsOf(root, name), ...Object.entries(defs).flatMap(([def, node]) => wordsOf(node, def))]
  })
  const speaking = words.filter(({ word }) => word.includes('session'))

  test('knows every name of the wire that speaks of sessions, and no other', () => {
    const unknown = speaking.filter(({ word, inside }) => {
      const isException = EXCEPTIONS.includes(word) && ['HostCapability', 'action'].includes(inside)
      return !isException && !Object.hasOwn(TABLE, word)
    })
    expect(unknown).toEqual([])
    const present = new Set(speaking.map(({ word }) => word))
    expect(Object.keys(TABLE).filter((name) => !present.has(name))).toEqual([])
    expect(EXCEPTIONS.filter((name) => !present.has(name))).toEqual([])
  })

  test('is the one of the contract', () => {
    expect(TABLE).toEqual({
      session_id: 'thread_id',
      session: 'thread',
      sessions: 'threads',
      subscribe_sessions: 'subscribe_threads',
      list_sessions: 'list_threads',
      list_saved_sessions: 'list_saved_threads',
      create_session: 'create_thread',
      attach_session: 'attach_thread',
      detach_session: 'detach_thread',
      resume_session: 'resume_thread',
      set_session_settings: 'set_thread_settings',
      saved_sessions: 'saved_threads',
      session_created: 'thread_created',
      session_resumed: 'thread_resumed',
      session_settings_updated: 'thread_settings_updated',
      session_closed: 'thread_closed',
      session_changed: 'thread_changed',
      stale_session: 'stale_thread',
    })
  })

  test('gives no two things one name', () => {
    expect(new Set(Object.values(TABLE)).size).toBe(Object.keys(TABLE).length)
    const taken = new Set(words.filter(({ inside }) => inside !== 'wire_names').map(({ word }) => word))
    // `threads` of an origin stands where no renamed field does.
    expect(Object.values(TABLE).filter((name) => taken.has(name))).toEqual(['threads'])
  })
})

describe('[RF 8] a frame in thread names', () => {
  test.each(frames)('$path holds no name of version 1', ({ frame }) => {
    const left = namesIn(asJson(toThreadNames(frame))).filter((name) => name.includes('session'))
    expect(left).toEqual([])
  })

  test.each(frames)('$path is otherwise the same, in the same order', ({ frame }) => {
    const sent = JSON.stringify(toThreadNames(frame))
    const renamed = JSON.stringify(frame, (key, value) => {
      if (typeof value === 'string') {
        const isName = ['type', 'kind', 'code', 'reason'].includes(key)
        return isName ? (TABLE[value] ?? value) : value
      }
      if (!isObject(value)) return value
      return Object.fromEntries(Object.entries(value).map(([name, member]) => [TABLE[name] ?? name, member]))
    })
    expect(sent).toBe(renamed)
  })

  test('leaves the frame itself alone', () => {
    const before = structuredClone(frameAt('response_attached'))
    toThreadNames(frameAt('response_attached'))
    expect(frameAt('response_attached')).toEqual(before)
  })

  test('keeps texts, ids, titles and capabilities that look like names', () => {
    const sessions = frameAt('sessions')
    if (sessions.kind !== 'sessions') throw new Error('another frame')
    const [row] = sessions.sessions
    if (row === undefined) throw new Error('an empty list')
    const named = {
      ...row,
      session_id: 'session_id',
      title: 'stale_session',
      workspace: '/sessions',
      model: 'session',
    }
    const frame = toThreadNames({
      kind: 'response',
      protocol_version: 1,
      request_id: 'list_sessions',
      result: {
        type: 'sessions',
        gateway_id: 'sessions',
        sessions: [named],
        subscribed: false,
        capabilities: ['saved_sessions', 'session_changes'],
      },
    })
    const { session_id, ...rest } = named
    expect(frame).toEqual({
      kind: 'response',
      protocol_version: 1,
      request_id: 'list_sessions',
      result: {
        type: 'threads',
        gateway_id: 'sessions',
        threads: [{ thread_id: session_id, ...rest }],
        subscribed: false,
        capabilities: ['saved_sessions', 'session_changes'],
      },
    })
    const message = 'stale_session: the session_id is of a session_closed'
    const error = { type: 'error', code: 'not_found', message } as const
    expect(
      toThreadNames({ kind: 'response', protocol_version: 1, request_id: 'r', result: error }),
    ).toMatchObject({
      result: error,
    })
    const delta = { type: 'text_delta', text: '{"session_id":"x"}' } as const
    const event = {
      protocol_version: 1,
      session_id: 's',
      registration_epoch: 1,
      sequence: 1,
      generation: 0,
    } as const
    expect(toThreadNames({ kind: 'event', ...event, event: delta })).toMatchObject({
      thread_id: 's',
      event: delta,
    })
  })

  test('renames the id of a parent and of a thread that an origin names, and keeps `threads` there', () => {
    expect(translated('response_saved_sessions')).toMatchObject({
      result: {
        threads: [{}, { parent: { thread_id: expect.any(String), relationship: 'fork' } }, {}, {}, {}],
      },
    })
    const origin = { kind: 'delegate', threads: [{ thread_id: expect.any(String), title: 'Read the docs' }] }
    expect(translated('event_turn_started_by_delegate')).toMatchObject({ event: { origin } })
    expect(translated('response_history_start')).toMatchObject({
      result: {
        messages: [{ origin: { kind: 'agent', threads: [{ title: 'Compare collations' }] } }, {}, {}],
      },
    })
    expect(translated('response_attached_resync_gateway_restarted')).toMatchObject({
      result: { snapshot: { transcript: [{}, { origin: { ...origin, threads: expect.anything() } }, {}] } },
    })
  })

  test('reaches into the result that a request status holds', () => {
    expect(translated('response_request_status_rejected')).toMatchObject({
      result: { type: 'request_status', result: { type: 'error', code: 'stale_thread' } },
    })
    expect(translated('response_request_status_created')).toMatchObject({
      result: { result: { type: 'thread_created', thread: { thread_id: expect.any(String) } } },
    })
  })

  test('names its push, its closing event and the reason of that', () => {
    expect(translated('sessions')).toMatchObject({ kind: 'threads', threads: expect.any(Array) })
    expect(translated('event_session_closed_session_changed')).toMatchObject({
      event: { type: 'thread_closed', reason: 'thread_changed' },
    })
    expect(translated('event_session_closed_owner_exited')).toMatchObject({
      event: { reason: 'owner_exited' },
    })
  })
})

describe('[RF 8] a request in thread names', () => {
  test.each(goldensOf('request'))('$path is read as the same request', ({ wire }) => {
    expect(decodeRequest(JSON.stringify(inThreadNames(wire)), 'thread')).toEqual(
      decodeRequest(JSON.stringify(wire), 'session'),
    )
  })

  test.each(Object.keys(THREAD_OPERATIONS))('[D37] %s is a name of version 1', (type) => {
    expect(fromThreadNames({ operation: { type } })).toEqual({ ok: false, error: 'v1_name' })
  })

  test('[D37] so is the id of a session, beside the operation and inside one that holds it', () => {
    const refused = { ok: false, error: 'v1_name' }
    expect(fromThreadNames({ session_id: 's', operation: { type: 'get_usage' } })).toEqual(refused)
    expect(fromThreadNames({ session_id: 's', thread_id: 't', operation: { type: 'get_usage' } })).toEqual(
      refused,
    )
    for (const type of ['resume_thread', 'pin_thread', 'unpin_thread', 'settle_thread', 'unsettle_thread'])
      expect(fromThreadNames({ operation: { type, session_id: 's', thread_id: 't' } })).toEqual(refused)
  })

  test('says null for an absent id under either name', () => {
    const request = RemoteRequest.parse(
      goldensOf('request').find((f) => f.path.endsWith('/steer.json'))?.wire,
    )
    const { session_id, ...rest } = request
    for (const names of [
      { session_id: null, thread_id: session_id },
      { thread_id: session_id, session_id: null },
    ]) {
      expect(decodeRequest(JSON.stringify({ ...names, ...rest }), 'thread')).toMatchObject({
        request: { sessionId: session_id },
      })
    }
  })

  test('keeps its texts, and fields that look like names where none stands', () => {
    const operation = {
      type: 'submit_prompt',
      prompt: 'create_session {"session_id":"x"}',
      session_id: 5,
      thread_id: 6,
    }
    expect(fromThreadNames({ thread_id: 's', operation })).toEqual({
      ok: true,
      value: { session_id: 's', operation },
    })
    const command = { type: 'execute_command', command: '/title attach_thread' }
    expect(fromThreadNames({ thread_id: 's', operation: command })).toMatchObject({
      value: { operation: command },
    })
  })

  test.each([
    null,
    5,
    'list_threads',
    [],
    {},
    { operation: null },
    { operation: [] },
    { operation: { type: 5 } },
  ])('that is none passes as it is: %j', (value) => {
    expect(fromThreadNames(value)).toEqual({ ok: true, value })
  })

  test('looks names up, and not what objects inherit', () => {
    for (const type of ['__proto__', 'constructor', 'toString', 'hasOwnProperty']) {
      const value = { operation: { type } }
      expect(fromThreadNames(value)).toEqual({ ok: true, value })
    }
    const hidden = JSON.parse(
      '{"__proto__":{"session_id":"s"},"operation":{"type":"list_threads","__proto__":{"type":"x"}}}',
    )
    expect(fromThreadNames(hidden)).toMatchObject({
      ok: true,
      value: { operation: { type: 'list_sessions' } },
    })
  })
})
