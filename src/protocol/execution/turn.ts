import { z } from 'zod'
import { ApprovalDecision, ContinueKind } from './continue.ts'
import { ApiErrorBody } from './errors.ts'
import { ContentRef, Count, Decimal, Provider, Timestamp, Uuid } from './ids.ts'
import { TaskIntent } from './policy.ts'
import { PlainMap, SealedMap } from './sealed.ts'
import { MessageRole } from './session.ts'
import { Usage } from './usage.ts'

export const IntentSource = z.enum(['explicit', 'inferred']).meta({ id: 'IntentSource' })
export type IntentSource = z.infer<typeof IntentSource>

export const Confidence = z.enum(['low', 'medium', 'high']).meta({ id: 'Confidence' })
export type Confidence = z.infer<typeof Confidence>

/** How the step was classified (EC 7). `matched_rule` is the index in the policy as sent. */
export const Classification = z
  .object({
    intent: TaskIntent,
    source: IntentSource,
    reason: z.string(),
    matched_rule: Count.nullable().optional(),
    confidence: Confidence.nullable().optional(),
  })
  .meta({ id: 'Classification' })
export type Classification = z.infer<typeof Classification>

/** The route of a completed turn (EC 4): `task_type`, and no reason. */
export const RoutingOutcome = z
  .object({
    task_type: TaskIntent,
    provider: Provider,
    model: z.string(),
    matched_rule: z.string().nullable().optional(),
    fallback_used: z.boolean(),
    override_used: z.boolean(),
  })
  .meta({ id: 'RoutingOutcome' })
export type RoutingOutcome = z.infer<typeof RoutingOutcome>

/** The route of a preview (EC 4): `intent`, and the reason. */
export const RoutingDecision = z
  .object({
    intent: TaskIntent,
    provider: Provider,
    model: z.string(),
    matched_rule: z.string().nullable().optional(),
    fallback_used: z.boolean(),
    override_used: z.boolean(),
    reason: z.string(),
  })
  .meta({ id: 'RoutingDecision' })
export type RoutingDecision = z.infer<typeof RoutingDecision>

/** Why something was left out of a prompt. `item` is its label in `excluded`. */
export const ContextExclusion = z
  .object({ item: z.string(), reason: z.string() })
  .meta({ id: 'ContextExclusion' })
export type ContextExclusion = z.infer<typeof ContextExclusion>

/** Display labels only; clients must not parse them (EC 10.4). `exclusions` is our addition. */
export const ContextOutcome = z
  .object({
    included: z.array(z.string()),
    excluded: z.array(z.string()),
    exclusions: z
      .array(ContextExclusion)
      .optional()
      .describe('The reason for each entry of `excluded`, in its order.'),
  })
  .meta({ id: 'ContextOutcome' })
export type ContextOutcome = z.infer<typeof ContextOutcome>

export const Message = z
  .object({
    role: MessageRole,
    content: z.string(),
    provider: Provider.nullable().optional(),
    model: z.string().nullable().optional(),
  })
  .meta({ id: 'Message' })
export type Message = z.infer<typeof Message>

export const ToolApproval = z.enum(['allow', 'ask']).meta({ id: 'ToolApproval' })
export type ToolApproval = z.infer<typeof ToolApproval>

/** Our additions (D05, D10): what a device has decided, and how far that has come. All are absent before. */
const decidedByDevice = {
  decision: ApprovalDecision.optional().describe('What a device has already decided about it.'),
  decision_state: z
    .enum(['stored', 'delivered', 'acted_on'])
    .optional()
    .describe('How far the decision has come: kept here, shown to the client, or carried out by it.'),
  decided_at: Timestamp.optional(),
  delivered_at: Timestamp.optional().describe('When the client was first shown the decision.'),
}

/** What is told of the decision of a device. */
export type DecisionProgress = {
  decision: ApprovalDecision
  decision_state: 'stored' | 'delivered' | 'acted_on'
  decided_at: string
  delivered_at?: string
}

/**
 * One call for the client to run. `driver_epoch` is our addition, as is what a device has decided: the epoch that a result
 * may carry back (D05).
 */
export const ToolRequest = z
  .object({
    call_id: z.string(),
    name: z.string(),
    arguments: z.record(z.string(), z.unknown()).nullable(),
    requires_approval: ToolApproval,
    ...decidedByDevice,
    driver_epoch: Count.optional().describe(
      'May be sent back with the result, which fences out an older driver.',
    ),
  })
  .meta({ id: 'ToolRequest' })
export type ToolRequest = z.infer<typeof ToolRequest>

export const ApprovalKind = z.enum(['remote_disclosure', 'cost_limit', 'plan']).meta({ id: 'ApprovalKind' })
export type ApprovalKind = z.infer<typeof ApprovalKind>

/** A decision with no tool behind it ("Approvals", EC 13). */
export const PendingApproval = z
  .object({
    approval_id: z.string(),
    kind: ApprovalKind,
    detail: z.record(z.string(), z.unknown()).nullable(),
    ...decidedByDevice,
  })
  .meta({ id: 'PendingApproval' })
export type PendingApproval = z.infer<typeof PendingApproval>

/** How an answer ended that did not end by itself (U42). */
export const AnswerEnding = z.enum(['truncated', 'refused']).meta({ id: 'AnswerEnding' })
export type AnswerEnding = z.infer<typeof AnswerEnding>

export const CompletedTurn = z
  .object({
    message: Message,
    ending: AnswerEnding.optional().describe(
      'Absent for an answer that is complete: `truncated` at the output limit, or `refused` by the provider.',
    ),
    classification: Classification,
    routing: RoutingOutcome,
    context: ContextOutcome,
    usage: Usage,
    to_encrypt: PlainMap.optional(),
    trace_id: z.string(),
  })
  .meta({ id: 'CompletedTurn' })
export type CompletedTurn = z.infer<typeof CompletedTurn>

/** What a stop has ended (U26). */
export const EndedRun = z
  .object({
    run_id: Uuid,
    interrupted: z.boolean().describe('A turn was being served, and its model call was cut.'),
    tool_calls: z.array(z.string()).describe('Calls that waited for a result, and are cancelled.'),
    approval_id: z.string().optional().describe('The approval that waited, and is ended.'),
  })
  .meta({ id: 'EndedRun' })
export type EndedRun = z.infer<typeof EndedRun>

const outcomes = {
  completed: { status: z.literal('completed'), data: CompletedTurn },
  awaiting_tool: {
    status: z.literal('awaiting_tool'),
    data: z.object({
      tool_requests: z.array(ToolRequest),
      to_encrypt: PlainMap.optional(),
      trace_id: z.string(),
    }),
  },
  awaiting_approval: {
    status: z.literal('awaiting_approval'),
    data: z.object({ approval: PendingApproval, to_encrypt: PlainMap.optional(), trace_id: z.string() }),
  },
  awaiting_decrypt: {
    status: z.literal('awaiting_decrypt'),
    data: z.object({ to_decrypt: SealedMap, to_encrypt: PlainMap.optional(), trace_id: z.string() }),
  },
  awaiting_encrypt: {
    status: z.literal('awaiting_encrypt'),
    data: z.object({
      to_encrypt: PlainMap,
      trace_id: z.string(),
      ended: EndedRun.optional().describe('What this message has ended, if there was anything to end.'),
    }),
  },
  idle: {
    status: z.literal('idle'),
    data: z.object({
      trace_id: z.string(),
      ended: EndedRun.optional().describe('What this message has ended, if there was anything to end.'),
    }),
  },
  error: { status: z.literal('error'), data: z.object({ error: ApiErrorBody }) },
} as const

/** What a turn came to: `status` names it, `data` carries it ("Response: completion or continuation"). */
export const TurnOutcome = z
  .discriminatedUnion('status', [
    z.object(outcomes.completed),
    z.object(outcomes.awaiting_tool),
    z.object(outcomes.awaiting_approval),
    z.object(outcomes.awaiting_decrypt),
    z.object(outcomes.awaiting_encrypt),
    z.object(outcomes.idle),
    z.object(outcomes.error),
  ])
  .meta({ id: 'TurnOutcome' })
export type TurnOutcome = z.infer<typeof TurnOutcome>

const next = { allowed_continuations: z.array(ContinueKind).optional() }

/** An outcome with the messages that the client may send next; the list is left out when empty (EC 5.5). */
export const TurnResponse = z
  .discriminatedUnion('status', [
    z.object({ ...outcomes.completed, ...next }),
    z.object({ ...outcomes.awaiting_tool, ...next }),
    z.object({ ...outcomes.awaiting_approval, ...next }),
    z.object({ ...outcomes.awaiting_decrypt, ...next }),
    z.object({ ...outcomes.awaiting_encrypt, ...next }),
    z.object({ ...outcomes.idle, ...next }),
    z.object({ ...outcomes.error, ...next }),
  ])
  .meta({ id: 'TurnResponse' })
export type TurnResponse = z.infer<typeof TurnResponse>

/** A turn that is being served, as `GET /sessions/{id}/run` shows it (D19). */
const running = {
  status: z.literal('running'),
  data: z.object({ trace_id: z.string(), run_id: Uuid.optional() }),
  allowed_continuations: z.array(ContinueKind),
}
export const RunningTurn = z.object(running).meta({ id: 'RunningTurn' })
export type RunningTurn = z.infer<typeof RunningTurn>

/**
 * What the user has allowed for the rest of the run (U23). `remote_disclosure`: models of `provider` may see the content of
 * `paths`, besides what is said and what their own tool calls bring; `model` is the one that it was first allowed for.
 * `cost_limit`: calls of `model` by `rule` may cost more than the rule allows; there are no `paths`.
 */
export const Grant = z
  .object({
    id: Uuid,
    kind: z.enum(['remote_disclosure', 'cost_limit']),
    provider: Provider,
    model: z.string(),
    paths: z.array(z.string()),
    local: z.literal(true).optional().describe('It was asked for local models of the provider.'),
    rule: z.string().optional().describe('Of a cost: the rule whose limit may be exceeded.'),
    up_to: Decimal.optional().describe(
      'Of a cost: the most that one call may cost. Absent for calls whose price nobody knows.',
    ),
  })
  .meta({ id: 'Grant' })
export type Grant = z.infer<typeof Grant>

const granted = {
  grants: z
    .array(Grant)
    .optional()
    .describe('What the user has allowed for the rest of this run; revocable one by one.'),
}

const unheld = {
  lost: z
    .array(ContentRef)
    .optional()
    .describe(
      'In an encrypted session: what the client was asked to seal and the router does not hold any more. Whoever has ' +
        'the texts may still hand in their ciphertext; whoever has not repeats the request that led to this pause.',
    ),
}

/** `GET /sessions/{id}/run` (D19, U23): the current envelope, or that a turn is being served; with the grants of the run. */
export const RunResponse = z
  .discriminatedUnion('status', [
    z.object({ ...outcomes.completed, ...next, ...granted }),
    z.object({ ...outcomes.awaiting_tool, ...next, ...granted, ...unheld }),
    z.object({ ...outcomes.awaiting_approval, ...next, ...granted, ...unheld }),
    z.object({ ...outcomes.awaiting_decrypt, ...next, ...granted, ...unheld }),
    z.object({ ...outcomes.awaiting_encrypt, ...next, ...granted, ...unheld }),
    z.object({ ...outcomes.idle, ...next, ...granted }),
    z.object({ ...outcomes.error, ...next, ...granted }),
    z.object({ ...running, ...granted }),
  ])
  .meta({ id: 'RunResponse' })
export type RunResponse = z.infer<typeof RunResponse>

/** `DELETE /sessions/{id}/grants/{grant_id}` (U23). */
export const RevokeGrantResponse = z.object({ revoked: z.boolean() }).meta({ id: 'RevokeGrantResponse' })
export type RevokeGrantResponse = z.infer<typeof RevokeGrantResponse>
