/** What a session waits for a person to decide (remote protocol, "Identity"; RF 18, 19). */

import { z } from 'zod'
import { BoundedText } from './message.ts'

/** One question of a chain. A free answer is accepted beside the options. */
export const RemoteQuestion = z
  .object({
    question_id: z.string(),
    header: z.string(),
    text: z.string(),
    options: z.array(z.object({ label: z.string(), description: z.string().optional() })),
    multiple: z.boolean(),
    position: z.int().min(1).describe('In the chain, from 1.'),
    chain_length: z.int().min(1),
  })
  .meta({ id: 'RemoteQuestion' })
export type RemoteQuestion = z.infer<typeof RemoteQuestion>

const timestamp = z.iso.datetime({ offset: true })

/**
 * How far a device's decision has come on its way to the program that carries it out (an addition to the contract):
 * `stored` here, `delivered` to that program, `acted_on` by it.
 */
export const RemoteDecision = z
  .object({
    batch_id: z.string(),
    choice: z.enum(['approve', 'deny']),
    state: z.enum(['stored', 'delivered', 'acted_on']),
    stored_at: timestamp,
    delivered_at: timestamp.optional(),
    acted_on_at: timestamp.optional(),
  })
  .meta({ id: 'RemoteDecision' })
export type RemoteDecision = z.infer<typeof RemoteDecision>

/** Calls that are approved or denied together. */
export const RemoteApprovalBatch = z
  .object({
    batch_id: z.string(),
    actions: z.array(
      z.object({
        tool_name: z.string(),
        summary: z.string(),
        risk: z.string(),
        details: BoundedText.describe('The literal arguments. Cut ones are read in full before deciding.'),
      }),
    ),
  })
  .meta({ id: 'RemoteApprovalBatch' })
export type RemoteApprovalBatch = z.infer<typeof RemoteApprovalBatch>
