import type { SwitchyardClient } from '../client/client.ts'
import { traceRef } from '../protocol/execution/content-refs.ts'
import type { EncryptedPayload } from '../protocol/execution/sealed.ts'
import { Payload, type TraceEvent } from '../protocol/execution/trace.ts'
import { err, ok, type Result } from '../protocol/result.ts'
import type { SessionKeys } from './session-keys.ts'

/** Events with what this machine can open. `locked` says of each that stays sealed why it does (U35). */
export type OpenedEvents = { events: TraceEvent[]; locked: ReadonlyMap<TraceEvent, string> }

/** Opens what is sealed among the events of a session's trace, as far as its key is here. */
export async function openTrace(
  client: SwitchyardClient,
  keys: SessionKeys,
  sessionId: string,
  events: readonly TraceEvent[],
): Promise<OpenedEvents> {
  const locked = new Map<TraceEvent, string>()
  const opened: TraceEvent[] = []
  for (const event of events) {
    const { payload } = event
    const read =
      'encrypted' in payload
        ? await openPayload(client, keys, sessionId, event, payload.encrypted)
        : ok(payload.plaintext)
    opened.push(read.ok ? { ...event, payload: { plaintext: read.value } } : event)
    if (!read.ok) locked.set(event, read.error)
  }
  return { events: opened, locked }
}

async function openPayload(
  client: SwitchyardClient,
  keys: SessionKeys,
  sessionId: string,
  { id, event_type: type }: TraceEvent,
  sealed: EncryptedPayload,
): Promise<Result<Payload, string>> {
  // An event without an id is of another router, which binds nothing to it.
  const text = await keys.open(client, sessionId, traceRef(id ?? 'unknown'), sealed)
  if (!text.ok) return text
  const payload = Payload.safeParse(parseJson(text.value))
  return payload.success && payload.data.type === type
    ? ok(payload.data)
    : err('damaged: it is no such event')
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
