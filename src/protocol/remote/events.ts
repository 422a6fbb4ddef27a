/** What happens in a session that a device is attached to (remote protocol, "Attaching, ordering and resuming"; RF 13). */

import { z } from 'zod'
import { BoundedText, MessageOrigin, RemoteTurnTiming, thoughts } from './message.ts'
import { RemoteApprovalBatch, RemoteDecision, RemoteQuestion } from './question.ts'
import { RemoteSnapshot, RemoteSubagent, RemoteTool } from './snapshot.ts'

/** Why a client's state cannot be continued. `history_changed` is reserved until something rewrites a transcript (D37). */
export const ResyncReason = z
  .enum(['gateway_restarted', 'lagged', 'sequence_gap', 'history_changed'])
  .meta({ id: 'ResyncReason' })
export type ResyncReason = z.infer<typeof ResyncReason>

/** Why a session left the live list. `session_changed` and `device_revoked` are reserved and never sent (D37). */
export const SessionCloseReason = z
  .enum(['sharing_disabled', 'session_changed', 'owner_exited', 'device_revoked'])
  .meta({ id: 'SessionCloseReason' })
export type SessionCloseReason = z.infer<typeof SessionCloseReason>

const event = <T extends string, Fields extends z.ZodRawShape>(type: T, fields: Fields) =>
  z.object({ type: z.literal(type), ...fields })

const ended = { turn_id: z.string().optional(), timing: RemoteTurnTiming.optional() }

export const RemoteEvent = z
  .discriminatedUnion('type', [
    event('turn_started', {
      turn_id: z.string().optional(),
      prompt: BoundedText,
      origin: MessageOrigin.optional(),
      timing: RemoteTurnTiming.optional(),
    }),
    event('text_delta', { text: z.string(), timing: RemoteTurnTiming.optional(), ...thoughts }),
    event('tool_started', { tool: RemoteTool }),
    event('tool_finished', {
      id: z.string(),
      success: z.boolean(),
      pending: z.boolean(),
      content: BoundedText,
    }),
    event('subagent_updated', { subagent: RemoteSubagent }),
    event('approval_requested', { approval: RemoteApprovalBatch }),
    event('approval_resolved', { batch_id: z.string() }),
    event('approval_decision', { decision: RemoteDecision }),
    event('question_requested', { question: RemoteQuestion }),
    event('question_resolved', { question_id: z.string() }),
    event('turn_finished', ended),
    event('turn_cancelled', ended),
    event('snapshot', { snapshot: RemoteSnapshot }),
    event('resync_required', { reason: ResyncReason }),
    event('session_closed', { reason: SessionCloseReason }),
  ])
  .meta({ id: 'RemoteEvent' })
export type RemoteEvent = z.infer<typeof RemoteEvent>
