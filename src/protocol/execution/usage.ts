import { z } from 'zod'
import { Count, Decimal, Provider } from './ids.ts'
import { TaskIntent } from './policy.ts'

/** What a model call used. An absent counter is unknown, never zero (U43). */
export const Usage = z
  .object({
    input_tokens: Count.optional(),
    output_tokens: Count.optional(),
    cached_tokens: Count.optional(),
    cache_write_tokens: Count.optional().describe('Input that the cache of the provider took in.'),
    reasoning_tokens: Count.optional(),
    total_tokens: Count.optional(),
    estimated_cost: Decimal.optional(),
    actual_cost: Decimal.optional(),
    unknown_count: Count.optional().describe(
      'Model calls whose usage nobody told; they are missing from the sums.',
    ),
    sealed_count: Count.optional().describe(
      'Model calls of an encrypted session: what they used stands in its sealed trace, and is missing from the sums.',
    ),
    currency: z.string().optional(),
  })
  .meta({ id: 'Usage' })
export type Usage = z.infer<typeof Usage>

export const ModelUsage = z
  .object({ ...Usage.shape, provider: Provider, model: z.string(), request_count: Count })
  .meta({ id: 'ModelUsage' })
export type ModelUsage = z.infer<typeof ModelUsage>

export const TaskTypeUsage = z
  .object({ ...Usage.shape, task_type: TaskIntent, request_count: Count })
  .meta({ id: 'TaskTypeUsage' })
export type TaskTypeUsage = z.infer<typeof TaskTypeUsage>

/** `GET /sessions/{id}/usage` (EC 2.15, 20.2). */
export const SessionUsageResponse = z
  .object({ total: Usage, by_model: z.array(ModelUsage), by_task_type: z.array(TaskTypeUsage) })
  .meta({ id: 'SessionUsageResponse' })
export type SessionUsageResponse = z.infer<typeof SessionUsageResponse>
