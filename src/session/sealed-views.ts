import type { TraceEntry } from '../core/run/writes.ts'
import { messageRef, traceRef } from '../protocol/execution/content-refs.ts'
import type { SealedMap } from '../protocol/execution/sealed.ts'
import type { SessionMessageDetail } from '../protocol/execution/session.ts'
import { Payload } from '../protocol/execution/trace.ts'
import { loadMessages, type StoredMessage } from '../storage/session/messages.ts'
import { loadSealed, sealedAmong } from '../storage/session/sealed-contents.ts'
import type { Sql } from '../storage/session/sql.ts'
import type { RunEngine } from './engine.ts'
import type { OpenTurn } from './traces.ts'

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

/**
 * The sealed trace events of one turn: as their envelopes, or in clear while the client has not sealed them yet (EC 19). The
 * envelopes are read when the first of them is asked for.
 */
export function openTraces(sql: Sql, engine: RunEngine, trace: readonly TraceEntry[]): OpenTurn {
  const refs = trace.filter(({ payload }) => payload.type === 'sealed').map(({ id }) => traceRef(id))
  const known = sealedAmong(sql, refs)
  let envelopes: SealedMap | null = null
  return {
    isTold: (id) => known.has(traceRef(id)) || engine.held.has(traceRef(id)),
    open: (id) => {
      const ref = traceRef(id)
      envelopes ??= loadSealed(sql, refs)
      const encrypted = envelopes[ref]
      if (encrypted !== undefined) return { encrypted }
      const text = engine.held.get(ref)
      return text === undefined ? null : { plaintext: Payload.parse(JSON.parse(text)) }
    },
  }
}
