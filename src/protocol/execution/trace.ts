import { z } from 'zod'
import { ApprovalDecision } from './continue.ts'
import { Count, Decimal, Provider, Timestamp, Uuid } from './ids.ts'
import { TaskIntent } from './policy.ts'
import { EncryptedPayload } from './sealed.ts'
import { MessageRole } from './session.ts'
import { Classification } from './turn.ts'

export const TraceEventType = z
  .enum([
    'message',
    'classification',
    'routing_decision',
    'context_selection',
    'tool_call',
    'approval',
    'cost',
  ])
  .meta({ id: 'TraceEventType' })
export type TraceEventType = z.infer<typeof TraceEventType>

export const ToolCallStatus = z
  .enum(['pending', 'running', 'completed', 'failed'])
  .meta({ id: 'ToolCallStatus' })
export type ToolCallStatus = z.infer<typeof ToolCallStatus>

export const MessagePayload = z
  .object({ role: MessageRole, provider: Provider, model: z.string() })
  .meta({ id: 'MessagePayload' })

export const RoutingDecisionPayload = z
  .object({
    provider: Provider,
    model: z.string(),
    matched_rule: z.string().nullable().optional(),
    fallback_used: z.boolean(),
    override_used: z.boolean(),
    reason: z.string(),
  })
  .meta({ id: 'RoutingDecisionPayload' })

export const ContextSelectionPayload = z
  .object({
    path: z.string().nullable().optional(),
    kind: z.string(),
    included: z.boolean(),
    reason: z.string(),
  })
  .meta({ id: 'ContextSelectionPayload' })

export const ToolCallPayload = z
  .object({
    tool_name: z.string(),
    status: ToolCallStatus,
    arguments: z.string().nullable().optional(),
    result: z.string().nullable().optional(),
    error: z.string().nullable().optional(),
  })
  .meta({ id: 'ToolCallPayload' })

export const ApprovalPayload = z
  .object({
    target_type: z.string(),
    target_id: z.string(),
    decision: ApprovalDecision,
    reason: z.string().nullable().optional(),
  })
  .meta({ id: 'ApprovalPayload' })

/** The tokens and price of one model call. Absent `cost` means unknown. */
export const CostPayload = z
  .object({
    provider: Provider,
    model: z.string(),
    input_tokens: Count,
    output_tokens: Count,
    cached_tokens: Count.optional(),
    cache_write_tokens: Count.optional(),
    reasoning_tokens: Count.optional(),
    cost: Decimal.nullable().optional(),
  })
  .meta({ id: 'CostPayload' })

/** What happened; never prompt text, file contents or credentials (EC 19). */
export const Payload = z
  .discriminatedUnion('type', [
    z.object({ type: z.literal('message'), ...MessagePayload.shape }),
    z.object({ type: z.literal('classification'), ...Classification.shape }),
    z.object({ type: z.literal('routing_decision'), ...RoutingDecisionPayload.shape }),
    z.object({ type: z.literal('context_selection'), ...ContextSelectionPayload.shape }),
    z.object({ type: z.literal('tool_call'), ...ToolCallPayload.shape }),
    z.object({ type: z.literal('approval'), ...ApprovalPayload.shape }),
    z.object({ type: z.literal('cost'), ...CostPayload.shape }),
  ])
  .meta({ id: 'Payload' })
export type Payload = z.infer<typeof Payload>

export const TraceEventPayload = z
  .union([z.object({ plaintext: Payload }), z.object({ encrypted: EncryptedPayload })])
  .meta({ id: 'TraceEventPayload' })
export type TraceEventPayload = z.infer<typeof TraceEventPayload>

export const TraceEvent = z
  .object({
    event_type: TraceEventType,
    task_type: TaskIntent,
    provider: Provider,
    model: z.string(),
    matched_rule: z.string().nullable().optional(),
    created_at: Timestamp,
    payload: TraceEventPayload,
  })
  .meta({ id: 'TraceEvent' })
export type TraceEvent = z.infer<typeof TraceEvent>

export const Trace = z.object({ session_id: Uuid, events: z.array(TraceEvent) }).meta({ id: 'Trace' })
export type Trace = z.infer<typeof Trace>

/** `GET /sessions/{id}/traces` (EC 2.14): oldest first. */
export const TraceResponse = z.object({ trace: Trace }).meta({ id: 'TraceResponse' })
export type TraceResponse = z.infer<typeof TraceResponse>
