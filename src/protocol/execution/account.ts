import { z } from 'zod'
import { Timestamp, Uuid } from './ids.ts'

/** An API key as lists show it: never the key itself. */
export const ApiKeySummary = z
  .object({
    id: Uuid,
    created_at: Timestamp,
    last_used_at: Timestamp.optional().describe('When it was last traded for a token.'),
    current: z.boolean().describe('The presented token came from this key.'),
  })
  .meta({ id: 'ApiKeySummary' })
export type ApiKeySummary = z.infer<typeof ApiKeySummary>

/** `GET /auth/keys`: the working keys, oldest first. */
export const ListApiKeysResponse = z
  .object({ keys: z.array(ApiKeySummary) })
  .meta({ id: 'ListApiKeysResponse' })
export type ListApiKeysResponse = z.infer<typeof ListApiKeysResponse>

/** `POST /auth/keys`: another key beside those that are there. It is shown this once. */
export const CreateApiKeyResponse = z
  .object({ id: Uuid, api_key: z.string(), created_at: Timestamp })
  .meta({ id: 'CreateApiKeyResponse' })
export type CreateApiKeyResponse = z.infer<typeof CreateApiKeyResponse>

/** `DELETE /auth/keys/{key_id}`: the key and the tokens that it was traded for end at once. */
export const RevokeApiKeyResponse = z.object({ revoked: z.boolean() }).meta({ id: 'RevokeApiKeyResponse' })
export type RevokeApiKeyResponse = z.infer<typeof RevokeApiKeyResponse>

/** `DELETE /auth/me`: the account with everything that is kept of it. */
export const DeleteAccountResponse = z.object({ deleted: z.boolean() }).meta({ id: 'DeleteAccountResponse' })
export type DeleteAccountResponse = z.infer<typeof DeleteAccountResponse>
