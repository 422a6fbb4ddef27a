/** A session as a device sees it at one point of its events (remote protocol, "Attaching, ordering and resuming"; RF 14). */

import { z } from 'zod'
import { BoundedText, RemoteMessage, RemoteTurnTiming, thoughts } from './message.ts'
import { RemoteApprovalBatch, RemoteDecision, RemoteQuestion } from './question.ts'
import { RemoteSessionInfo } from './session-info.ts'
import { RemoteSessionSettings } from './session-settings.ts'

const count = z.int().nonnegative()

/** Optional operations that a session's owner serves. */
export const SnapshotCapability = z
  .enum(['cancel_question', 'execute_command', 'upload_image', 'host_threads'])
  .meta({ id: 'SnapshotCapability' })
export type SnapshotCapability = z.infer<typeof SnapshotCapability>

export const RemoteTool = z
  .object({
    id: z.string(),
    name: z.string(),
    detail: z.string().optional(),
    state: z.enum(['preparing', 'running', 'succeeded', 'failed']),
  })
  .meta({ id: 'RemoteTool' })
export type RemoteTool = z.infer<typeof RemoteTool>

/** The turn that is active. */
export const RemoteTurn = z
  .object({
    turn_id: z.string(),
    live_response: BoundedText.describe('The end of the answer so far: later text extends it.'),
    tools: z.array(RemoteTool),
    can_steer: z.boolean(),
    timing: RemoteTurnTiming.optional(),
    ...thoughts,
  })
  .meta({ id: 'RemoteTurn' })
export type RemoteTurn = z.infer<typeof RemoteTurn>

/** Typed for clients; this router lists none (D37). */
export const RemoteSubagent = z
  .object({
    id: count,
    parent_id: count.optional(),
    name: z.string(),
    task: BoundedText,
    model: z.string().optional(),
    status: z.enum(['queued', 'running', 'interrupted', 'completed', 'failed', 'cancelled']),
    active_turn: z.boolean(),
    depth: count,
    message_count: count,
  })
  .meta({ id: 'RemoteSubagent' })
export type RemoteSubagent = z.infer<typeof RemoteSubagent>

/** A command that a client may offer. */
export const RemoteCommandInfo = z
  .object({
    name: z.string(),
    description: z.string(),
    insertion: z.string(),
    action: z.enum(['new_session', 'model_picker', 'session_picker', 'copy_response', 'execute', 'terminal']),
  })
  .meta({ id: 'RemoteCommandInfo' })
export type RemoteCommandInfo = z.infer<typeof RemoteCommandInfo>

export const RemoteSnapshot = z
  .object({
    session: RemoteSessionInfo,
    snapshot_id: z.string().optional().describe('Another one for each state that replaced the one before.'),
    sequence: count.describe('Every event up to this one is contained.'),
    generation: count,
    capabilities: z.array(SnapshotCapability).optional(),
    commands: z.array(RemoteCommandInfo).optional(),
    settings: RemoteSessionSettings.optional(),
    turn: RemoteTurn.optional(),
    last_turn: RemoteTurnTiming.optional(),
    transcript: z.array(RemoteMessage).describe('The newest messages, the oldest of them first.'),
    history_revision: z.string(),
    history_cursor: z
      .string()
      .optional()
      .describe('Of the page before `transcript`; absent when there is none.'),
    pending_question: RemoteQuestion.optional(),
    pending_approval: RemoteApprovalBatch.optional(),
    approval_decision: RemoteDecision.optional().describe('The newest decision of a device in this turn.'),
    pending_prompts: z.array(z.object({ kind: z.enum(['steer', 'queue']), text: BoundedText })),
    subagents: z.array(RemoteSubagent),
    background_tasks: z.array(z.object({ id: z.string(), command: z.string(), elapsed_ms: count })),
    omitted: z
      .object({ tools: count, subagents: count, pending_prompts: count, background_tasks: count })
      .describe('How many of each list were left out.'),
  })
  .meta({ id: 'RemoteSnapshot' })
export type RemoteSnapshot = z.infer<typeof RemoteSnapshot>
