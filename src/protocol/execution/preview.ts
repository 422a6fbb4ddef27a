import { z } from 'zod'
import { Decimal } from './ids.ts'
import { Effort, PermissionMode } from './policy.ts'
import { ApprovalKind, Classification, ContextExclusion, RoutingDecision } from './turn.ts'

export const CostRange = z
  .object({ min: Decimal, max: Decimal, currency: z.string() })
  .meta({ id: 'CostRange' })
export type CostRange = z.infer<typeof CostRange>

export const RequiredPermission = z
  .object({ permission: z.string(), mode: PermissionMode })
  .meta({ id: 'RequiredPermission' })
export type RequiredPermission = z.infer<typeof RequiredPermission>

/** Something in a policy that a client should put right, and that no run fails for (EC 24.2). */
export const PolicyWarning = z
  .object({
    code: z.string().describe('What it is, for programs: `invalid_glob`, `duplicate_rule_name` …'),
    path: z.string().describe('Where it stands in the body, as in `policy.routing.rules.2.paths.0`.'),
    message: z.string(),
    suggestion: z.string().optional().describe('What to write instead.'),
  })
  .meta({ id: 'PolicyWarning' })
export type PolicyWarning = z.infer<typeof PolicyWarning>

/** The decision that `execute` would ask for before the first model call (EC 13). */
export const PreviewedApproval = z
  .object({ kind: ApprovalKind, detail: z.record(z.string(), z.unknown()).nullable() })
  .meta({ id: 'PreviewedApproval' })
export type PreviewedApproval = z.infer<typeof PreviewedApproval>

/** `POST /sessions/{id}/preview` (EC 2.13). What is optional is our addition. */
export const PreviewResponse = z
  .object({
    classification: Classification,
    routing: RoutingDecision,
    included_context: z.array(z.string()),
    excluded_context: z.array(z.string()),
    estimated_cost: CostRange,
    required_permissions: z.array(RequiredPermission),
    exclusions: z
      .array(ContextExclusion)
      .optional()
      .describe('The reason for each entry of `excluded_context`, in its order.'),
    effort: Effort.optional().describe('How hard the model is asked to think.'),
    approval: PreviewedApproval.optional().describe('What `execute` would ask before it calls the model.'),
    warnings: z
      .array(PolicyWarning)
      .optional()
      .describe('What is amiss in the policy: nothing that stops a run, but for `permission_expansion`.'),
  })
  .meta({ id: 'PreviewResponse' })
export type PreviewResponse = z.infer<typeof PreviewResponse>
