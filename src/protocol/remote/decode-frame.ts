/** How a client reads what it receives after the handshake, in the names of version 1. */

import { z } from 'zod'
import { RemoteEvent } from './events.ts'
import { parseJson } from './parse-json.ts'
import { RemoteResult } from './results.ts'

const tagged = z.object({ type: z.string() })
/** Of a row of the live list, what says which registration it is; a client that shows rows reads more. */
const row = z.object({ session_id: z.string(), registration_epoch: z.int().nonnegative() })

const Envelope = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('response'), request_id: z.string(), result: z.looseObject(tagged.shape) }),
  z.object({
    kind: z.literal('event'),
    session_id: z.string(),
    registration_epoch: z.int().nonnegative(),
    sequence: z.int().nonnegative(),
    event: z.looseObject(tagged.shape),
  }),
  z.object({ kind: z.literal('sessions'), sessions: z.array(row) }),
])
/** The list with which a subscription begins, however much more a newer gateway says with it. */
const ListAnswer = z.object({
  type: z.literal('sessions'),
  sessions: z.array(row),
  capabilities: z.array(z.string()).optional().catch(undefined),
})
const BareError = z.object({ type: z.literal('error'), code: z.string(), message: z.string() })

export type ListedRow = z.infer<typeof row>

/** What a frame says. `null` in place of an event or a result: of a type that is not known here (contract, "Compatibility"). */
export type ReceivedFrame =
  | {
      k: 'response'
      requestId: string
      result: RemoteResult | null
      listed: ListedRow[] | null
      /** What the gateway can do, of an answer with a list. */
      capabilities: readonly string[]
    }
  | { k: 'event'; sessionId: string; registrationEpoch: number; sequence: number; event: RemoteEvent | null }
  | { k: 'sessions'; sessions: ListedRow[] }
  /** The connection ends behind it. */
  | { k: 'error'; code: string; message: string }
  /** Nothing that this client knows: to be ignored. */
  | { k: 'unknown' }

/** Never fails: a client has to live with what it does not know. */
export function decodeFrame(text: string): ReceivedFrame {
  const parsed = parseJson(text)
  if (!parsed.ok) return { k: 'unknown' }
  const json = parsed.value
  const bare = BareError.safeParse(json)
  if (bare.success) return { k: 'error', code: bare.data.code, message: bare.data.message }
  const envelope = Envelope.safeParse(json)
  if (!envelope.success) return { k: 'unknown' }
  const frame = envelope.data
  switch (frame.kind) {
    case 'response': {
      const result = RemoteResult.safeParse(frame.result)
      const list = ListAnswer.safeParse(frame.result)
      return {
        k: 'response',
        requestId: frame.request_id,
        result: result.success ? result.data : null,
        listed: list.success ? list.data.sessions : null,
        capabilities: list.data?.capabilities ?? [],
      }
    }
    case 'event': {
      const event = RemoteEvent.safeParse(frame.event)
      return {
        k: 'event',
        sessionId: frame.session_id,
        registrationEpoch: frame.registration_epoch,
        sequence: frame.sequence,
        event: event.success ? event.data : null,
      }
    }
    case 'sessions':
      return { k: 'sessions', sessions: frame.sessions }
  }
}
