import { z } from 'zod'

/** What a device is, for the owner's list: a label and no permission. */
export const DEVICE_KINDS = ['phone', 'desktop', 'cli'] as const
export type DeviceKind = (typeof DEVICE_KINDS)[number]

/** One address that the router answers on (remote protocol, "Handshake frames"). */
export const Route = z.object({
  /** `host:port`, IPv6 in brackets. */
  address: z.string(),
  kind: z.enum(['lan', 'overlay', 'hostname', 'public']),
  provider: z.enum(['netbird', 'tailscale', 'zerotier']).optional(),
})
export type Route = z.infer<typeof Route>
