import type { SwitchyardClient } from '../../client/client.ts'
import type { DeviceSummary } from '../../protocol/execution/devices.ts'
import { must } from '../command-context.ts'
import { kindText, quotedName } from './device-list.ts'
import { ifReached } from './polling.ts'

/** One look for a device that has paired since; undefined: none yet, or the router could not be asked just now. */
export type NewDeviceLook = (signal: AbortSignal, isLast: boolean) => Promise<DeviceSummary | undefined>

/** Remembers which devices there are, so that the next one is noticed. A device that pairs again has a new id. */
export async function rememberDevices(client: SwitchyardClient): Promise<NewDeviceLook> {
  const known = new Set(must(await client.devices.list()).map(({ device_id: id }) => id))
  return async (signal, isLast) =>
    ifReached(await client.devices.list({ signal }), isLast)?.find(
      ({ device_id: id, revoked_reason: ended }) => !known.has(id) && ended === undefined,
    )
}

export const pairedText = ({
  device_id: id,
  device_name: name,
  device_kind: kind,
  platform,
}: DeviceSummary) => `paired ${quotedName(name)} (${kindText(kind, platform)}), ${id}`
