import { z } from 'zod'

/**
 * How much a device has read, so that what it may not have read need not be guessed (D35): the UTF-8 bytes of all text
 * frames of this connection from the answer to the handshake on, that one included and `{"type":"pong"}` left out, of
 * which the router does not hear. The gateway consumes it; it is no request and has no answer.
 */
export const FlowAck = z
  .object({ type: z.literal('flow_ack'), bytes: z.int().nonnegative() })
  .meta({ id: 'FlowAck' })
export type FlowAck = z.infer<typeof FlowAck>
