import { z } from 'zod'
import { ApprovalDecision } from './continue.ts'
import { DeviceSummary } from './devices.ts'
import { Count, Provider, Timestamp, Uuid } from './ids.ts'
import { MemoryRecord } from './memory.ts'
import { EncryptedPayload } from './sealed.ts'
import { MessageContent, MessageRole, SessionSummary } from './session.ts'
import { PolicySettingResponse } from './settings.ts'
import { ToolCallStatus, TraceEvent } from './trace.ts'
import { SessionUsageResponse } from './usage.ts'

export const ExportedToolCall = z
  .object({
    id: Uuid,
    name: z.string(),
    arguments: z.record(z.string(), z.unknown()),
    status: ToolCallStatus,
    result: z.string().optional(),
    encrypted: EncryptedPayload.optional().describe('Of an encrypted session: the result, sealed.'),
  })
  .meta({ id: 'ExportedToolCall' })
export type ExportedToolCall = z.infer<typeof ExportedToolCall>

export const PlanStatus = z.enum(['draft', 'approved', 'rejected']).meta({ id: 'PlanStatus' })
export type PlanStatus = z.infer<typeof PlanStatus>

const inSession = { session_id: Uuid }

/**
 * One line of an export: JSON lines, in this order. `export` opens it; facts about the user, settings and paired devices follow;
 * then each session with what belongs to it; `end` closes it. An export without its `end` was cut off. `next` in it names the session
 * after which the next page goes on.
 */
export const ExportRecord = z
  .discriminatedUnion('type', [
    z.object({
      type: z.literal('export'),
      version: z.literal(1),
      user_id: Uuid,
      exported_at: Timestamp,
    }),
    z.object({ type: z.literal('memory'), ...MemoryRecord.shape }),
    z.object({ type: z.literal('device'), ...DeviceSummary.shape }),
    z.object({ type: z.literal('session'), ...SessionSummary.shape }),
    z.object({
      type: z.literal('message'),
      ...inSession,
      id: Uuid,
      run_id: Uuid,
      role: MessageRole,
      content: MessageContent,
      provider: Provider.optional(),
      model: z.string().optional(),
      interrupted: z.boolean().optional(),
      local_only: z.boolean().optional().describe('Only local models may see it.'),
      seen: z
        .object({
          under: z.string(),
          root: z.string(),
          files: z.array(z.string()).optional(),
          readings: z.array(z.string()).optional(),
          messages: z.string().optional(),
        })
        .optional()
        .describe('What its prompt held, for policies that come later.'),
      tool_calls: z.array(ExportedToolCall).optional(),
      encrypted_calls: EncryptedPayload.optional().describe(
        'Of an encrypted session: the arguments of the calls, what the router answered, and `seen`, sealed.',
      ),
      created_at: Timestamp,
    }),
    z.object({
      type: z.literal('plan'),
      ...inSession,
      id: Uuid,
      version: Count,
      status: PlanStatus,
      content: z.string(),
      encrypted: EncryptedPayload.optional().describe('Of an encrypted session: the plan, sealed.'),
      created_at: Timestamp,
      updated_at: Timestamp,
    }),
    z.object({
      type: z.literal('approval'),
      ...inSession,
      id: Uuid,
      target_type: z.string(),
      target_id: z.string(),
      decision: ApprovalDecision,
      outcome: z
        .string()
        .optional()
        .describe(
          'What became of it: `approved`, `rejected`, `cancelled` by a stop, or `superseded` by new input.',
        ),
      reason: z.string().optional(),
      created_at: Timestamp,
    }),
    z.object({
      type: z.literal('policy'),
      ...inSession,
      key: z.string().describe('The name under which traces point at it.'),
      policy: z.record(z.string(), z.unknown()),
    }),
    z.object({
      type: z.literal('settings'),
      harness: z.string().optional(),
      model: z.string().optional(),
      effort: z.string().optional(),
      default_policy: PolicySettingResponse.optional(),
    }),
    z.object({ type: z.literal('trace'), ...inSession, event: TraceEvent }),
    z.object({ type: z.literal('usage'), ...inSession, usage: SessionUsageResponse }),
    z.object({ type: z.literal('end'), sessions: Count, next: Uuid.optional() }),
  ])
  .meta({ id: 'ExportRecord' })
export type ExportRecord = z.infer<typeof ExportRecord>
