import { messageRef, traceRef } from '../core/run/contents.ts'
import type { SessionMessageDetail } from '../protocol/execution/session.ts'
import { Payload, type TraceEventPayload } from '../protocol/execution/trace.ts'
import { loadMessages, type StoredMessage } from '../storage/session/messages.ts'
import { loadSealed } from '../storage/session/sealed-contents.ts'
import type { Sql } from '../storage/session/sql.ts'
import type { RunEngine } from './engine.ts'

/** More rows than a session can have: reads the whole. */
const ALL = Number.MAX_SAFE_INTEGER

const messageHead = ({ role, provider, model, interrupted }: StoredMessage) => ({
  role,
  ...(provider === undefined ? {} : { provider }),
  ...(model === undefined ? {} : { model }),
  ...(interrupted ? { interrupted: true } : {}),
})

export const clearMessages = (sql: Sql): SessionMessageDetail[] =>
  loadMessages(sql, 1, ALL, { calls: false }).map((message) => ({
    ...messageHead(message),
    content: { plaintext: message.text },
  }))

/** A message that nobody has sealed yet is not in the transcript (EC 17.3). */
export function sealedMessages(sql: Sql): SessionMessageDetail[] {
  const messages = loadMessages(sql, 1, ALL, { calls: false })
  const envelopes = loadSealed(
    sql,
    messages.map(({ id }) => messageRef(id)),
  )
  return messages.flatMap((message) => {
    const encrypted = envelopes[messageRef(message.id)]
    return encrypted === undefined
      ? []
      : [{ ...messageHead(message), content: { encrypted }, id: message.id }]
  })
}

/** The payload of a sealed trace event; in clear only while the client has not sealed it yet (EC 19). */
export function openTrace(sql: Sql, engine: RunEngine, id: string): TraceEventPayload | null {
  const ref = traceRef(id)
  const encrypted = loadSealed(sql, [ref])[ref]
  if (encrypted !== undefined) return { encrypted }
  const text = engine.held.get(ref)
  return text === undefined ? null : { plaintext: Payload.parse(JSON.parse(text)) }
}
