import { z } from 'zod'
import { ContentRef, Count } from './ids.ts'

/** One sealed piece of content. The router keeps it as it came (EC 17.1). */
export const EncryptedPayload = z
  .object({
    version: Count,
    algorithm: z.string(),
    key_id: z.string(),
    nonce: z.string(),
    ciphertext: z.string(),
  })
  .meta({ id: 'EncryptedPayload' })
export type EncryptedPayload = z.infer<typeof EncryptedPayload>

/** Sealed content by reference. */
export const SealedMap = z.record(ContentRef, EncryptedPayload)
export type SealedMap = z.infer<typeof SealedMap>

/** Clear content by reference, on its way to or from the client. */
export const PlainMap = z.record(ContentRef, z.string())
export type PlainMap = z.infer<typeof PlainMap>
