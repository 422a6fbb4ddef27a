import { z } from 'zod'
import { nullAsAbsent } from '../execution/request-fields.ts'
import { REMOTE_PROTOCOL_VERSION } from './limits.ts'
import { RemoteOperation } from './operations.ts'

/** A frame from a client after the handshake (remote protocol, "Session frames"), in the names of version 1. */
export const RemoteRequest = z
  .object({
    protocol_version: z.literal(REMOTE_PROTOCOL_VERSION),
    request_id: z.string().min(1).describe('At most 128 bytes as UTF-8.'),
    session_id: nullAsAbsent(z.string()).describe('Required with the operations of one session.'),
    registration_epoch: nullAsAbsent(z.int().nonnegative()).describe(
      'Required with the operations of one session.',
    ),
    operation: RemoteOperation,
  })
  .meta({ id: 'RemoteRequest' })
export type RemoteRequest = z.infer<typeof RemoteRequest>
