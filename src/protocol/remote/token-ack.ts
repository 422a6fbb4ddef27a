import { z } from 'zod'

/**
 * A device has stored its new refresh token: the one before may be retired (remote protocol, "Rotating tokens"). The
 * gateway consumes it; it is no request and has no answer.
 */
export const TokenAck = z
  .object({ type: z.literal('token_ack'), rotation_id: z.string() })
  .meta({ id: 'TokenAck' })
export type TokenAck = z.infer<typeof TokenAck>
