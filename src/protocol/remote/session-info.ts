import { z } from 'zod'

/** The session that another one was started from. Typed for clients; nothing makes such sessions yet. */
export const ParentSession = z
  .object({
    session_id: z.string(),
    relationship: z.enum(['delegate', 'fork', 'side_chat', 'other']),
  })
  .meta({ id: 'ParentSession' })
export type ParentSession = z.infer<typeof ParentSession>

/** One row of the live list, also the `session` of a snapshot (remote protocol, "Sessions"; `host` is D03's addition). */
export const RemoteSessionInfo = z
  .object({
    session_id: z.string(),
    registration_epoch: z.int().nonnegative(),
    title: z.string(),
    workspace: z.string().optional(),
    model: z.string(),
    harness: z.string().optional(),
    parent: ParentSession.optional(),
    turn_count: z.int().nonnegative().optional(),
    last_active_at: z.string().optional(),
    activity: z.enum(['idle', 'running', 'awaiting_approval', 'awaiting_question']),
    attention: z.object({ approval: z.boolean(), question: z.boolean() }),
    health: z.enum(['live', 'unresponsive']),
    host: z
      .object({
        id: z.string(),
        name: z.string(),
        online: z.boolean(),
        last_seen_at: z.string().optional(),
      })
      .optional(),
  })
  .meta({ id: 'RemoteSessionInfo' })
export type RemoteSessionInfo = z.infer<typeof RemoteSessionInfo>
