import { z } from 'zod'
import { Decimal } from './ids.ts'
import { PermissionMode } from './policy.ts'
import { Classification, RoutingDecision } from './turn.ts'

export const CostRange = z
  .object({ min: Decimal, max: Decimal, currency: z.string() })
  .meta({ id: 'CostRange' })
export type CostRange = z.infer<typeof CostRange>

export const RequiredPermission = z
  .object({ permission: z.string(), mode: PermissionMode })
  .meta({ id: 'RequiredPermission' })
export type RequiredPermission = z.infer<typeof RequiredPermission>

/** `POST /sessions/{id}/preview` (EC 2.13). */
export const PreviewResponse = z
  .object({
    classification: Classification,
    routing: RoutingDecision,
    included_context: z.array(z.string()),
    excluded_context: z.array(z.string()),
    estimated_cost: CostRange,
    required_permissions: z.array(RequiredPermission),
  })
  .meta({ id: 'PreviewResponse' })
export type PreviewResponse = z.infer<typeof PreviewResponse>
