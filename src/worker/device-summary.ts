import type { DeviceRecord } from '../gateway/rpc.ts'
import type { DeviceSummary } from '../protocol/execution/devices.ts'
import { toWireTime } from '../protocol/time.ts'

/** A device as lists and exports show it: what is unknown is left out. */
export function toDeviceSummary(device: DeviceRecord): DeviceSummary {
  const { platform, lastSeenAtMs, expiresAtMs, revokedReason } = device
  return {
    device_id: device.deviceId,
    device_name: device.name,
    device_kind: device.kind,
    ...(platform === null ? {} : { platform }),
    paired_at: toWireTime(device.pairedAtMs),
    ...(lastSeenAtMs === null ? {} : { last_seen_at: toWireTime(lastSeenAtMs) }),
    online: device.online,
    ...(expiresAtMs === null ? {} : { expires_at: toWireTime(expiresAtMs) }),
    ...(revokedReason === null ? {} : { revoked_reason: revokedReason }),
  }
}
