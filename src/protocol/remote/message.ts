/** Messages of a transcript, and the texts and clocks they are made of (remote protocol, "Size", "Who sent a message"). */

import { z } from 'zod'

const count = z.int().nonnegative()
const timestamp = z.iso.datetime({ offset: true })

/** A text that may have been cut. Sizes and offsets are UTF-8 bytes (RF 15). */
export const BoundedText = z
  .object({
    text: z.string(),
    truncated: z.boolean(),
    offset: count.describe('Where `text` begins in the whole.'),
    total_bytes: count,
    content_id: z.string().optional().describe('The name of the whole, for `get_content`.'),
  })
  .meta({ id: 'BoundedText' })
export type BoundedText = z.infer<typeof BoundedText>

/** When a turn ran and how it ended. What is absent is unknown, not zero (RF 14). */
export const RemoteTurnTiming = z
  .object({
    turn_id: z.string(),
    started_at: timestamp.optional(),
    ended_at: timestamp.optional(),
    elapsed_work_ms: count.optional().describe('Without the time that was spent waiting for the user.'),
    outcome: z.enum(['completed', 'cancelled', 'failed']).optional(),
  })
  .meta({ id: 'RemoteTurnTiming' })
export type RemoteTurnTiming = z.infer<typeof RemoteTurnTiming>

/** What was observed of a model's thinking: totals of one segment, to be replaced and not added up. */
export const thoughts = {
  thought_time_ms: count.optional(),
  thought_tokens: count.optional(),
  thought_tokens_estimated: z.boolean().optional(),
}

/** Who wrote a user message. This router produces `user` and `system` only. */
export const MessageOrigin = z
  .object({
    kind: z.enum(['user', 'agent', 'delegate', 'system']),
    threads: z
      .array(
        z.object({
          session_id: z.string().optional(),
          title: z.string().optional(),
          status: z.enum(['done', 'failed', 'needs_user', 'stalled']).optional(),
          link_id: z.string().optional(),
        }),
      )
      .optional(),
  })
  .meta({ id: 'MessageOrigin' })
export type MessageOrigin = z.infer<typeof MessageOrigin>

export const RemoteMessageTool = z
  .object({
    call_id: z.string().optional(),
    name: z.string(),
    detail: z.string().optional(),
    arguments_id: z
      .string()
      .optional()
      .describe('The name of all that the call was given, for `get_content`.'),
    success: z.boolean(),
    pending: z.boolean(),
  })
  .meta({ id: 'RemoteMessageTool' })
export type RemoteMessageTool = z.infer<typeof RemoteMessageTool>

export const RemoteMessage = z
  .object({
    message_id: z.string().describe('Unique together with the revision of the history.'),
    role: z.enum(['user', 'assistant', 'tool', 'system']),
    content: BoundedText,
    origin: MessageOrigin.optional(),
    tool: RemoteMessageTool.optional(),
    timestamp: timestamp.optional(),
    response_time_ms: count.optional(),
    ...thoughts,
    completed_at: timestamp.optional(),
    turn: RemoteTurnTiming.optional(),
    sealed: z
      .object({ key_id: z.string() })
      .optional()
      .describe('The message is encrypted; `content` says so, and this names the key.'),
  })
  .meta({ id: 'RemoteMessage' })
export type RemoteMessage = z.infer<typeof RemoteMessage>
