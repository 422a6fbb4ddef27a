/**
 * What a socket hears before requests are served, and the error that ends a connection (remote protocol, "Handshake
 * frames", "Connection requests", "The bare error frame"). Absent fields are left out, never sent as null.
 */

import { z } from 'zod'
import { Route } from './handshake-request.ts'
import { CODE_LENGTH, REMOTE_PROTOCOL_VERSION } from './limits.ts'

const timestamp = z.iso.datetime({ offset: true })
const seconds = z.int().nonnegative()

/** What `paired` and `authenticated` share: who this is, what a client may call it, and the tokens just issued. */
const admission = {
  protocol_version: z.literal(REMOTE_PROTOCOL_VERSION),
  gateway_id: z.string().describe('Stable for this account; a client keys its stored token by it.'),
  instance_id: z.string(),
  device_id: z.string(),
  device_name: z.string().describe('As it was stored.'),
  refresh_token: z.string().optional().describe('Of a device that rotates its tokens.'),
  access_token: z.string().optional(),
  access_expires_at: timestamp.optional(),
  expires_at: timestamp.optional().describe('When the pairing of a device with one static token ends.'),
  host_name: z.string().optional().describe('A label, not an identity.'),
  version: z.string().optional().describe('The release of the router: a label, never a gate.'),
  routes: z.array(Route).optional().describe('Best first; absent when only loopback is listened on.'),
  wire_names: z.literal('thread').optional().describe('From here on this connection uses thread names.'),
}

export const Paired = z
  .object({
    type: z.literal('paired'),
    ...admission,
    token: z.string().optional().describe('Of a device that does not rotate its tokens; shown once.'),
  })
  .meta({ id: 'Paired' })
export type Paired = z.infer<typeof Paired>

export const Authenticated = z
  .object({
    type: z.literal('authenticated'),
    ...admission,
    rotation_id: z
      .string()
      .optional()
      .describe('Of the rotation that this answer made: `token_ack` names it. Absent when nothing rotated.'),
  })
  .meta({ id: 'Authenticated' })
export type Authenticated = z.infer<typeof Authenticated>

/** The request is in front of the owner. */
export const ConnectPending = z
  .object({ type: z.literal('connect_pending'), request_id: z.string(), expires_in_secs: seconds })
  .meta({ id: 'ConnectPending' })
export type ConnectPending = z.infer<typeof ConnectPending>

/** The owner sees a code: exactly one `pair` frame with it may follow on this socket. */
export const ConnectApproved = z
  .object({
    type: z.literal('connect_approved'),
    request_id: z.string(),
    code_length: z.literal(CODE_LENGTH),
    expires_in_secs: seconds,
  })
  .meta({ id: 'ConnectApproved' })
export type ConnectApproved = z.infer<typeof ConnectApproved>

export const ConnectDenied = z.object({ type: z.literal('connect_denied') }).meta({ id: 'ConnectDenied' })
export type ConnectDenied = z.infer<typeof ConnectDenied>

export const ConnectExpired = z.object({ type: z.literal('connect_expired') }).meta({ id: 'ConnectExpired' })
export type ConnectExpired = z.infer<typeof ConnectExpired>

/** Why a connection ends. `not_implemented` is reserved and never sent (D37). */
export const BareErrorCode = z
  .enum([
    'invalid_frame',
    'frame_too_large',
    'unsupported_version',
    'handshake_timeout',
    'pairing_failed',
    'rate_limited',
    'unauthorized',
    'access_expired',
    'token_replayed',
    'busy',
    'connect_busy',
    'connect_rate_limited',
    'internal',
    'revoked',
    'slow_consumer',
    'idle_timeout',
    'shutting_down',
    'not_implemented',
  ])
  .meta({ id: 'BareErrorCode' })
export type BareErrorCode = z.infer<typeof BareErrorCode>

/** Always the last frame of its connection, and never the answer to a request. */
export const BareError = z
  .object({
    type: z.literal('error'),
    code: BareErrorCode,
    message: z.string(),
    retry_after_secs: seconds.optional().describe('With `rate_limited` and `connect_rate_limited`.'),
    supported_versions: z.array(z.int().nonnegative()).optional().describe('With `unsupported_version`.'),
  })
  .meta({ id: 'BareError' })
export type BareError = z.infer<typeof BareError>

export const HandshakeResponse = z
  .discriminatedUnion('type', [
    Paired,
    Authenticated,
    ConnectPending,
    ConnectApproved,
    ConnectDenied,
    ConnectExpired,
    BareError,
  ])
  .meta({ id: 'HandshakeResponse' })
export type HandshakeResponse = z.infer<typeof HandshakeResponse>
