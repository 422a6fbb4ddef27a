import type { TraceEntry } from '../../core/run/writes.ts'
import type { TranscriptCall } from '../../core/transcript.ts'
import { callsRef, messageRef, resultRef, traceRef } from '../../protocol/execution/content-refs.ts'
import type { EncryptedPayload } from '../../protocol/execution/sealed.ts'
import type { StoredMessage } from './messages.ts'
import { loadSealed } from './sealed-contents.ts'
import type { Sql } from './sql.ts'

/**
 * A call of a sealed session: `encrypted` is its result. A result in clear is the router's own note about it, or empty
 * where what the router answered stands with what the call was given.
 */
export type SealedCall = Pick<TranscriptCall, 'id' | 'name' | 'isError' | 'changesFiles'> & {
  result?: string
  encrypted?: EncryptedPayload
}
/** The calls of a message of a sealed session. `encrypted`: what they were given, and what its prompt held. */
export type SealedCalls = { encrypted?: EncryptedPayload; calls: SealedCall[] }

/**
 * The envelopes of a message of a sealed session, in place of its text and its calls; `text` is undefined while it has
 * none. `parts`: what of them is read; what is not is empty.
 */
export function sealedParts(
  sql: Sql,
  message: StoredMessage,
  parts: { texts: boolean; calls: boolean } = { texts: true, calls: true },
): { text: EncryptedPayload | undefined; calls: SealedCalls } {
  const { id: messageId } = message
  const calls = parts.calls ? message.calls : []
  const envelopes = loadSealed(sql, [
    ...(parts.texts ? [messageRef(messageId)] : []),
    ...(parts.calls ? [callsRef(messageId)] : []),
    ...calls.map(({ id }) => resultRef(id)),
  ])
  const given = envelopes[callsRef(messageId)]
  return {
    text: envelopes[messageRef(messageId)],
    calls: {
      ...(given === undefined ? {} : { encrypted: given }),
      calls: calls.map(({ id, name, isError, changesFiles, result }) => {
        const encrypted = envelopes[resultRef(id)]
        return {
          id,
          name,
          isError,
          changesFiles,
          ...(result === undefined ? {} : encrypted === undefined ? { result } : { encrypted }),
        }
      }),
    },
  }
}

/** An entry of a trace with its envelope in place. */
export type SealedEntry = Omit<TraceEntry, 'payload'> & {
  payload: { event_type: string; encrypted: EncryptedPayload }
}

/** A trace with the envelopes of its sealed entries; those that have none are left out. */
export function sealedTrace(sql: Sql, trace: readonly TraceEntry[]): (TraceEntry | SealedEntry)[] {
  const envelopes = loadSealed(
    sql,
    trace.filter(({ payload }) => payload.type === 'sealed').map(({ id }) => traceRef(id)),
  )
  return trace.flatMap((entry): (TraceEntry | SealedEntry)[] => {
    const { payload } = entry
    if (payload.type !== 'sealed') return [entry]
    const encrypted = envelopes[traceRef(entry.id)]
    return encrypted === undefined
      ? []
      : [{ ...entry, payload: { event_type: payload.event_type, encrypted } }]
  })
}
