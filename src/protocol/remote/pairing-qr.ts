import { z } from 'zod'
import { MAX_QR_ALTERNATES, MAX_QR_HOST_NAME_CHARS, REMOTE_PROTOCOL_VERSION } from './limits.ts'

/**
 * What the pairing QR code holds, as JSON in one line (remote protocol, "Rotating tokens", at its end). `url` is our
 * addition: where a deployment is reached that plain `ws` cannot reach (D42).
 */
export const PairingQr = z
  .object({
    protocol_version: z.literal(REMOTE_PROTOCOL_VERSION),
    address: z.string().describe('`host:port` to dial first.'),
    gateway_id: z.string(),
    credential: z.string().describe('The secret of a `pair` frame with the method `credential`.'),
    host_name: z.string().max(MAX_QR_HOST_NAME_CHARS).optional(),
    alternates: z
      .array(z.string())
      .max(MAX_QR_ALTERNATES)
      .optional()
      .describe('Other addresses of the same listener, best first.'),
    url: z.string().optional().describe('The whole WebSocket address, with its scheme and path.'),
  })
  .meta({ id: 'PairingQr' })
export type PairingQr = z.infer<typeof PairingQr>
