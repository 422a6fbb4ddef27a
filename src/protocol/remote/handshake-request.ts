/**
 * What a client may send as its first frame (remote protocol, "Handshake frames", "Connection requests"). Labels say
 * what a device is and allow nothing; one of a wrong form is read as if it were absent, and whoever stores labels
 * looks at their form (RF 1, 5).
 */

import { z } from 'zod'
import { nullAsAbsent } from '../execution/request-fields.ts'
import { REMOTE_PROTOCOL_VERSION } from './limits.ts'

/** What a device is, for the owner's list: a label and no permission. */
export const DEVICE_KINDS = ['phone', 'desktop', 'cli'] as const
export type DeviceKind = (typeof DEVICE_KINDS)[number]

/** One address that the router answers on (remote protocol, "Handshake frames"). */
export const Route = z
  .object({
    /** `host:port`, IPv6 in brackets. */
    address: z.string(),
    kind: z.enum(['lan', 'overlay', 'hostname', 'public']),
    provider: z.enum(['netbird', 'tailscale', 'zerotier']).optional(),
  })
  .meta({ id: 'Route' })
export type Route = z.infer<typeof Route>

const version = z.literal(REMOTE_PROTOCOL_VERSION)
/** Any text, since its form is judged later; what is no text at all is as good as absent. */
const label = nullAsAbsent(z.string()).catch(undefined)
/** What the device understands. Names that this router does not know are kept, and mean nothing. */
const capabilities = nullAsAbsent(z.array(z.string().catch('')))
const wireNames = label.describe('Asks for thread names by `thread`; anything else is as if absent.')

const deviceLabels = {
  device_kind: label.describe('phone, desktop or cli; anything else means phone.'),
  platform: label.describe('ios, android, macos, windows, linux, …; absent: unknown.'),
  install_id: label.describe(
    'Random, once per installation, 16 to 128 printable ASCII characters. A pairing with the same one replaces the earlier.',
  ),
  host_id: label.describe('The machine a desktop app or command line runs on, in the form of `install_id`.'),
}

/** Redeems the secret of a pairing: `credential` is the one of the QR code, `code` the one that a person types. */
export const PairRequest = z
  .object({
    type: z.literal('pair'),
    protocol_version: version,
    method: z.enum(['credential', 'code']),
    secret: z.string(),
    device_name: z.string(),
    ...deviceLabels,
    capabilities,
    wire_names: wireNames,
  })
  .meta({ id: 'PairRequest' })
export type PairRequest = z.infer<typeof PairRequest>

/** Presents one token of a paired device: which one counts is decided by the device's record. */
export const AuthenticateRequest = z
  .object({
    type: z.literal('authenticate'),
    protocol_version: version,
    device_id: z.string(),
    token: nullAsAbsent(z.string()).describe('Of a device that does not rotate its tokens.'),
    refresh_token: nullAsAbsent(z.string()),
    access_token: nullAsAbsent(z.string()),
    capabilities,
    wire_names: wireNames,
  })
  .meta({ id: 'AuthenticateRequest' })
export type AuthenticateRequest = z.infer<typeof AuthenticateRequest>

/** Asks the owner to let this device pair, without a secret. */
export const ConnectRequest = z
  .object({
    type: z.literal('connect_request'),
    protocol_version: version,
    device_name: z.string(),
    ...deviceLabels,
  })
  .meta({ id: 'ConnectRequest' })
export type ConnectRequest = z.infer<typeof ConnectRequest>

export const HandshakeRequest = z
  .discriminatedUnion('type', [PairRequest, AuthenticateRequest, ConnectRequest])
  .meta({ id: 'HandshakeRequest' })
export type HandshakeRequest = z.infer<typeof HandshakeRequest>
