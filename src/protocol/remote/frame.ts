/** What a client receives after the handshake (remote protocol, "Session frames"), in the names of version 1. */

import { z } from 'zod'
import { RemoteEvent } from './events.ts'
import { REMOTE_PROTOCOL_VERSION } from './limits.ts'
import { ReceiptState, RemoteResult } from './results.ts'
import { RemoteSessionInfo } from './session-info.ts'

const protocol_version = z.literal(REMOTE_PROTOCOL_VERSION)

/** The one answer to a request. Mutations carry a receipt, unless the request could not be read. */
export const RemoteResponse = z
  .object({
    kind: z.literal('response'),
    protocol_version,
    request_id: z.string().describe('Empty when the request carried none that could be read.'),
    receipt: ReceiptState.optional(),
    result: RemoteResult,
  })
  .meta({ id: 'RemoteResponse' })
export type RemoteResponse = z.infer<typeof RemoteResponse>

/** One event of one attached session. */
export const RemoteEventFrame = z
  .object({
    kind: z.literal('event'),
    protocol_version,
    session_id: z.string(),
    registration_epoch: z.int().nonnegative(),
    sequence: z.int().nonnegative(),
    generation: z.int().nonnegative(),
    event: RemoteEvent,
  })
  .meta({ id: 'RemoteEventFrame' })
export type RemoteEventFrame = z.infer<typeof RemoteEventFrame>

/** The whole live list, in place of the one the client holds. */
export const RemoteSessionsFrame = z
  .object({
    kind: z.literal('sessions'),
    protocol_version,
    gateway_id: z.string(),
    instance_id: z.string().optional(),
    sessions: z.array(RemoteSessionInfo),
  })
  .meta({ id: 'RemoteSessionsFrame' })
export type RemoteSessionsFrame = z.infer<typeof RemoteSessionsFrame>

export const RemoteFrame = z
  .discriminatedUnion('kind', [RemoteResponse, RemoteEventFrame, RemoteSessionsFrame])
  .meta({ id: 'RemoteFrame' })
export type RemoteFrame = z.infer<typeof RemoteFrame>
