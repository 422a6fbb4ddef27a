import { z } from 'zod'
import { LocalPreferences } from './execute.ts'
import { Timestamp } from './ids.ts'
import { ExecutePolicy } from './policy.ts'
import { nullAsAbsent } from './request-fields.ts'

/**
 * `PUT /settings/policy` (D07): the policy of prompts from a device in sessions that never ran, in place of the one before.
 * Without preferences the ones of a cautious default hold: all of them false.
 */
export const PutPolicyRequest = z
  .object({ policy: ExecutePolicy, local_preferences: nullAsAbsent(LocalPreferences) })
  .meta({ id: 'PutPolicyRequest' })
export type PutPolicyRequest = z.infer<typeof PutPolicyRequest>

/** `GET` and `PUT /settings/policy`: what was published; nothing at all before that. */
export const PolicySettingResponse = z
  .object({
    policy: z
      .record(z.string(), z.unknown())
      .optional()
      .describe('An `ExecutePolicy`, its defaults filled in.'),
    local_preferences: z
      .object({ auto_apply: z.boolean(), local_only: z.boolean(), no_network: z.boolean() })
      .optional(),
    updated_at: Timestamp.optional(),
  })
  .meta({ id: 'PolicySettingResponse' })
export type PolicySettingResponse = z.infer<typeof PolicySettingResponse>
