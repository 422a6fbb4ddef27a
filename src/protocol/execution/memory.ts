import { z } from 'zod'
import { Timestamp, Uuid } from './ids.ts'
import { nullAsAbsent, withDefault } from './request-fields.ts'
import { EncryptedPayload } from './sealed.ts'

/** `user`: known in every session of the user. `session`: known in one session, and gone with it (EC 16). */
export const MemoryScope = z.enum(['user', 'session']).meta({ id: 'MemoryScope' })
export type MemoryScope = z.infer<typeof MemoryScope>

/** A fact is a line or two; what is longer belongs in a file. In characters. */
export const MAX_MEMORY_CONTENT_CHARS = 4000
export const MAX_MEMORY_KEY_CHARS = 200

/** A remembered fact. At most one fact of a scope bears a key (EC 16, D50). */
export const MemoryRecord = z
  .object({
    id: Uuid,
    scope: MemoryScope,
    session_id: Uuid.optional().describe('The session that a session fact belongs to.'),
    key: z.string().optional(),
    content: z.string(),
    encrypted: EncryptedPayload.optional().describe(
      'Of an encrypted session: key and content, sealed; both are empty in clear.',
    ),
    local_only: z.boolean().optional().describe('Only local models may see it.'),
    created_at: Timestamp,
    updated_at: Timestamp,
  })
  .meta({ id: 'MemoryRecord' })
export type MemoryRecord = z.infer<typeof MemoryRecord>

/** `GET /memory` (D50): the newest first. */
export const ListMemoryResponse = z
  .object({ memories: z.array(MemoryRecord) })
  .meta({ id: 'ListMemoryResponse' })
export type ListMemoryResponse = z.infer<typeof ListMemoryResponse>

/**
 * What a fact or its key may be: more than blanks, as for the tool, and kept as it came. Half of a pair of surrogates is
 * no text that storage gives back.
 */
const factText = (maxChars: number) =>
  z
    .string()
    .max(maxChars)
    .regex(/\S/, 'must hold more than blanks')
    .refine((text) => text.isWellFormed(), 'is no valid Unicode: it holds half of a surrogate pair')

/**
 * `PUT /memory/{id}` (D50): makes the fact of that id, or replaces its key and content. Scope and session of a fact
 * that exists stay what they are.
 */
export const PutMemoryRequest = z
  .object({
    scope: withDefault(MemoryScope, 'user'),
    session_id: nullAsAbsent(Uuid),
    key: nullAsAbsent(factText(MAX_MEMORY_KEY_CHARS)),
    content: factText(MAX_MEMORY_CONTENT_CHARS),
    local_only: nullAsAbsent(z.boolean()),
  })
  .meta({ id: 'PutMemoryRequest' })
export type PutMemoryRequest = z.infer<typeof PutMemoryRequest>

export const PutMemoryResponse = z.object({ memory: MemoryRecord }).meta({ id: 'PutMemoryResponse' })
export type PutMemoryResponse = z.infer<typeof PutMemoryResponse>

/** `DELETE /memory/{id}` (D50). */
export const DeleteMemoryResponse = z.object({ deleted: z.boolean() }).meta({ id: 'DeleteMemoryResponse' })
export type DeleteMemoryResponse = z.infer<typeof DeleteMemoryResponse>
