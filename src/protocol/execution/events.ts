import { z } from 'zod'
import { Count } from './ids.ts'

/**
 * One event of a session as `GET /sessions/{id}/events` streams it (D38). It is a `RemoteEvent` of the remote protocol,
 * whose schema says what each type holds; types and fields that a client does not know it ignores.
 */
export const SessionEvent = z.looseObject({ type: z.string() }).meta({
  id: 'SessionEvent',
  description: 'A `RemoteEvent` of the remote protocol (schemas/remote/frame.schema.json).',
})
export type SessionEvent = z.infer<typeof SessionEvent>

/** `GET /sessions/{id}/events` as JSON (D38): what happened behind `after`, at once or as soon as there is something. */
export const SessionEventsResponse = z
  .object({
    events: z
      .array(z.object({ sequence: Count, event: SessionEvent }))
      .describe('In their order, without a gap; empty when nothing happened for 25 s.'),
    next_after: z.string().describe('The `after` of the next request. Opaque.'),
    more: z.literal(true).optional().describe('There is more already: ask again at once.'),
    resync: z
      .string()
      .optional()
      .describe('What happened behind `after` cannot be told any more, and why: `snapshot` stands for it.'),
    snapshot: z
      .looseObject({ sequence: Count })
      .optional()
      .describe(
        'A `RemoteSnapshot` of the remote protocol: the session with everything up to its `sequence`. It comes after the events.',
      ),
  })
  .meta({ id: 'SessionEventsResponse' })
export type SessionEventsResponse = z.infer<typeof SessionEventsResponse>
