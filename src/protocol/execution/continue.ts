import { z } from 'zod'
import { Count, Uuid } from './ids.ts'
import { nullAsAbsent, withDefault } from './request-fields.ts'
import { EncryptedPayload, PlainMap, SealedMap } from './sealed.ts'

export const ContinueKind = z
  .enum(['tool_results', 'approval_decisions', 'decrypted', 'sealed', 'inject', 'break'])
  .meta({ id: 'ContinueKind' })
export type ContinueKind = z.infer<typeof ContinueKind>

export const ApprovalDecision = z.enum(['approved', 'rejected']).meta({ id: 'ApprovalDecision' })
export type ApprovalDecision = z.infer<typeof ApprovalDecision>

/** The report on one call; a tool's approval rides on it as `decision` ("Approvals"). `driver_epoch` is our addition (D05). */
export const ToolResult = z
  .object({
    call_id: z.string(),
    content: z.string(),
    is_error: withDefault(z.boolean(), false),
    decision: ApprovalDecision.nullish(),
    driver_epoch: nullAsAbsent(Count).describe(
      'The epoch that came with the call. A result of an older driver is refused; without it the result is accepted.',
    ),
  })
  .meta({ id: 'ToolResult' })
export type ToolResult = z.infer<typeof ToolResult>

export const ApprovalDecisionEntry = z
  .object({ approval_id: z.string(), decision: ApprovalDecision, reason: z.string().nullish() })
  .meta({ id: 'ApprovalDecisionEntry' })
export type ApprovalDecisionEntry = z.infer<typeof ApprovalDecisionEntry>

export const UserMessage = z
  .object({ text: z.string(), ciphertext: EncryptedPayload.nullish() })
  .meta({ id: 'UserMessage' })
export type UserMessage = z.infer<typeof UserMessage>

/** `POST /sessions/{id}/continue`: one tagged message that answers the current pause ("Advancing a run"). */
export const ContinueRequest = z
  .discriminatedUnion('type', [
    z.object({
      type: z.literal('tool_results'),
      data: z.object({ results: z.array(ToolResult), encrypted: nullAsAbsent(SealedMap) }),
    }),
    z.object({
      type: z.literal('approval_decisions'),
      data: z.object({ decisions: z.array(ApprovalDecisionEntry), encrypted: nullAsAbsent(SealedMap) }),
    }),
    z.object({
      type: z.literal('decrypted'),
      data: z.object({ plaintext: PlainMap, encrypted: nullAsAbsent(SealedMap) }),
    }),
    z.object({ type: z.literal('sealed'), data: z.object({ encrypted: SealedMap }) }),
    z.object({
      type: z.literal('inject'),
      data: z.object({
        messages: z.array(UserMessage).min(1),
        encrypted: nullAsAbsent(SealedMap).describe(
          'The ciphertext of what the pause asked to seal. Without it, what the router holds is asked for again.',
        ),
      }),
    }),
    z.object({
      type: z.literal('break'),
      data: nullAsAbsent(
        z.object({
          run_id: nullAsAbsent(Uuid).describe('The run that is meant: another one is left alone (U26).'),
          encrypted: nullAsAbsent(SealedMap).describe(
            'The ciphertext of what the pause asked to seal. Without it, what the router holds is asked for again.',
          ),
        }),
      ),
    }),
  ])
  .meta({ id: 'ContinueRequest' })
export type ContinueRequest = z.infer<typeof ContinueRequest>
