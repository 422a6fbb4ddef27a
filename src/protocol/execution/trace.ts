import { z } from 'zod'
import { ApprovalDecision } from './continue.ts'
import { ApiErrorBody } from './errors.ts'
import { Count, Decimal, Provider, Timestamp, Uuid } from './ids.ts'
import { ModelAuthRequirement, ModelCapabilities } from './models.ts'
import { Effort, TaskIntent } from './policy.ts'
import { EncryptedPayload } from './sealed.ts'
import { MessageRole } from './session.ts'
import { ApprovalKind, Classification } from './turn.ts'

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

/** What the classification was decided from. Of the prompt only the policy's own keywords that it contains. */
export const ClassificationInputs = z
  .object({
    command: TaskIntent.optional(),
    context: z.array(z.string()).describe('The context kinds that were present.'),
    keywords: z
      .array(z.object({ keyword: z.string(), match: z.enum(['exact', 'fuzzy']) }))
      .describe('The keywords of the policy that the text contains.'),
  })
  .meta({ id: 'ClassificationInputs' })
export type ClassificationInputs = z.infer<typeof ClassificationInputs>

/** Why only local models may serve a turn, and what it is, where something is: a path and the pattern that it matches. */
export const LocalReason = z
  .object({
    cause: z.enum(['required_content', 'preference', 'rule', 'remote_denied', 'remote_declined']),
    about: z.string().optional(),
  })
  .meta({ id: 'LocalReason' })
export type LocalReason = z.infer<typeof LocalReason>

/** A model of the route, what was known of it, and why it was or was not taken (EC 8.5). */
export const ConsideredModel = z
  .object({
    model: z.string().describe('As the policy names it: `provider/model`.'),
    verdict: z.enum([
      'used',
      'absent',
      'unavailable',
      'credential',
      'remote',
      'local',
      'capability',
      'window',
      'failed',
      'not_reached',
    ]),
    local: z.boolean().optional(),
    auth: ModelAuthRequirement.optional(),
    has_credential: z.boolean().optional(),
    capabilities: ModelCapabilities.optional(),
    max_context_tokens: Count.optional(),
    max_output_tokens: Count.optional(),
  })
  .meta({ id: 'ConsideredModel' })
export type ConsideredModel = z.infer<typeof ConsideredModel>

/** What a route was decided from, besides the policy: enough to decide it again. */
export const RoutingInputs = z
  .object({
    policy: z.string().optional().describe('The key of the policy in `policies` of the trace.'),
    explicit_model: z.string().optional(),
    paths: z.array(z.string()).describe('The paths that rules were held against.'),
    paths_left_out: Count.optional().describe('Further paths, which no rule matches.'),
    effort: Effort,
    local_because: z.array(LocalReason).optional().describe('Absent when remote models may serve the turn.'),
    local_denied: z.boolean().optional().describe('Only remote models may serve the turn.'),
    rule_capabilities: ModelCapabilities.describe('What the rule requires by name.'),
    needed_capabilities: ModelCapabilities.describe('What the turn itself needs.'),
    may_call_tools: z.boolean(),
    required_tokens: Count,
    models: z.array(ConsideredModel),
  })
  .meta({ id: 'RoutingInputs' })
export type RoutingInputs = z.infer<typeof RoutingInputs>

export const RoutingDecisionPayload = z
  .object({
    provider: Provider,
    model: z.string(),
    matched_rule: z.string().nullable().optional(),
    fallback_used: z.boolean(),
    override_used: z.boolean(),
    reason: z.string(),
    inputs: RoutingInputs.optional(),
    failure: ApiErrorBody.pick({ code: true, message: true })
      .optional()
      .describe(
        'What the turn ended with instead of an answer; the model is the one that was meant to serve it.',
      ),
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
    kind: ApprovalKind.optional().describe('What was asked, where it was no tool call.'),
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
    z.object({
      type: z.literal('classification'),
      ...Classification.shape,
      inputs: ClassificationInputs.optional(),
    }),
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
    run_id: Uuid.optional(),
    turn_id: Uuid.optional().describe('What belongs to one turn has one id.'),
    id: Uuid.optional().describe('In an encrypted session: sealed content is bound to `trace:<id>`.'),
    payload: TraceEventPayload,
  })
  .meta({ id: 'TraceEvent' })
export type TraceEvent = z.infer<typeof TraceEvent>

export const Trace = z
  .object({
    session_id: Uuid,
    events: z.array(TraceEvent),
    policies: z
      .record(z.string(), z.record(z.string(), z.unknown()))
      .optional()
      .describe('The policies that the routing decisions among the events name, each an `ExecutePolicy`.'),
  })
  .meta({ id: 'Trace' })
export type Trace = z.infer<typeof Trace>

/** `GET /sessions/{id}/traces` (EC 2.14): oldest first. */
export const TraceResponse = z.object({ trace: Trace }).meta({ id: 'TraceResponse' })
export type TraceResponse = z.infer<typeof TraceResponse>
