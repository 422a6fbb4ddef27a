import { z } from 'zod'
import type { DeviceKind } from '../remote/handshake-request.ts'
import { PairingQr } from '../remote/pairing-qr.ts'
import { Timestamp } from './ids.ts'

/**
 * How an owner pairs devices and looks after them. What the devices themselves say is the remote protocol's. Kinds,
 * platforms and names are labels: no permission hangs on one.
 */

/** 16 hex digits. */
const ShortId = z.string().regex(/^[0-9a-f]{16}$/)
const Kind = z.enum(['phone', 'desktop', 'cli'] satisfies DeviceKind[])

/** `POST /pairing`: opens pairing, in place of what was opened before. Code and credential are shown this once (U31). */
export const OpenPairingResponse = z
  .object({
    code: z.string().describe('To be typed on the device: eight digits, as `4821-9034`.'),
    credential: z.string().describe('What the QR code carries instead of the code.'),
    gateway_id: z.string(),
    qr: PairingQr.describe('The content of the QR code: its JSON, in one line.'),
    only_by_url: z
      .literal(true)
      .optional()
      .describe(
        'The address alone leads to the first account of this router: only a client that dials `url` can use this code.',
      ),
    expires_at: Timestamp,
  })
  .meta({ id: 'OpenPairingResponse' })
export type OpenPairingResponse = z.infer<typeof OpenPairingResponse>

/** A device as lists show it. */
export const DeviceSummary = z
  .object({
    device_id: ShortId,
    device_name: z.string(),
    device_kind: Kind,
    platform: z.string().optional().describe('Such as `ios`; absent when the device did not say.'),
    paired_at: Timestamp,
    last_seen_at: Timestamp.optional().describe('Absent when it has not been seen since it was paired.'),
    online: z.boolean(),
    expires_at: Timestamp.optional().describe(
      'When it has to pair again; absent when its pairing has no end.',
    ),
    revoked_reason: z
      .enum(['revoked', 'token_replayed'])
      .optional()
      .describe('Its pairing has ended, and this is why; `token_replayed`: a retired token was presented.'),
  })
  .meta({ id: 'DeviceSummary' })
export type DeviceSummary = z.infer<typeof DeviceSummary>

/** `GET /devices`: the newest first, with those whose pairing ended without the owner. */
export const ListDevicesResponse = z
  .object({ devices: z.array(DeviceSummary) })
  .meta({ id: 'ListDevicesResponse' })
export type ListDevicesResponse = z.infer<typeof ListDevicesResponse>

/** Characters of a name as it is sent. What is kept of it is shorter still, so this only keeps nonsense out. */
const MAX_SENT_NAME_CHARS = 256

/** `PUT /devices/{device_id}`. The name is stored on one line and cut to 64 characters. */
export const RenameDeviceRequest = z
  .object({ name: z.string().min(1).max(MAX_SENT_NAME_CHARS) })
  .meta({ id: 'RenameDeviceRequest' })
export type RenameDeviceRequest = z.infer<typeof RenameDeviceRequest>

export const RenameDeviceResponse = z.object({ device: DeviceSummary }).meta({ id: 'RenameDeviceResponse' })
export type RenameDeviceResponse = z.infer<typeof RenameDeviceResponse>

/** `DELETE /devices/{device_id}`: its connections end at once, and it can pair again (U32). */
export const RevokeDeviceResponse = z.object({ revoked: z.boolean() }).meta({ id: 'RevokeDeviceResponse' })
export type RevokeDeviceResponse = z.infer<typeof RevokeDeviceResponse>

/** A device that asks to be paired. */
export const ConnectRequestSummary = z
  .object({
    request_id: ShortId,
    device_name: z.string(),
    device_kind: Kind,
    platform: z.string().describe('`unknown` when the device did not say.'),
    expires_at: Timestamp,
  })
  .meta({ id: 'ConnectRequestSummary' })
export type ConnectRequestSummary = z.infer<typeof ConnectRequestSummary>

/** `GET /connect-requests`: those that wait for the owner, the oldest first. */
export const ListConnectRequestsResponse = z
  .object({ requests: z.array(ConnectRequestSummary) })
  .meta({ id: 'ListConnectRequestsResponse' })
export type ListConnectRequestsResponse = z.infer<typeof ListConnectRequestsResponse>

/** `POST /connect-requests/listen`: until then requests are taken (D41). */
export const ListenResponse = z.object({ expires_at: Timestamp }).meta({ id: 'ListenResponse' })
export type ListenResponse = z.infer<typeof ListenResponse>

/** `POST /connect-requests/{request_id}/accept`: the code that the owner reads out to the device. */
export const AcceptConnectRequestResponse = z
  .object({ code: z.string(), expires_at: Timestamp })
  .meta({ id: 'AcceptConnectRequestResponse' })
export type AcceptConnectRequestResponse = z.infer<typeof AcceptConnectRequestResponse>

export const DenyConnectRequestResponse = z
  .object({ denied: z.boolean() })
  .meta({ id: 'DenyConnectRequestResponse' })
export type DenyConnectRequestResponse = z.infer<typeof DenyConnectRequestResponse>
