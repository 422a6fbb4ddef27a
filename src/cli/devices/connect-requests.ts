import type { SwitchyardClient } from '../../client/client.ts'
import type { ClientFailure } from '../../client/failure.ts'
import type { ConnectRequestSummary } from '../../protocol/execution/devices.ts'
import { CONNECT_REQUEST_TTL_MS } from '../../protocol/remote/limits.ts'
import { ok, type Result } from '../../protocol/result.ts'
import { type Clock, timeOfDay } from '../clock.ts'
import { must } from '../command-context.ts'
import { kindText, nameText, quotedName } from './device-list.ts'
import { requireByPrefix } from './find-by-prefix.ts'

/** A request on one line. */
export function requestLine({
  request_id: id,
  expires_at: expiresAt,
  ...device
}: ConnectRequestSummary): string {
  const kind = kindText(device.device_kind, device.platform)
  const until = `waits until ${timeOfDay(Date.parse(expiresAt))}`
  return `${[id, kind, nameText(device.device_name), until].join('  ')}\n`
}

/** The device in the middle of a sentence. */
export const askerText = ({
  device_name: name,
  device_kind: kind,
  platform,
}: ConnectRequestSummary): string => `${quotedName(name)} (${kindText(kind, platform)})`

/** The waiting request that a typed id, or the beginning of one, means; else the end of the command. */
export const requireRequest = async (
  client: SwitchyardClient,
  typed: string,
): Promise<ConnectRequestSummary> =>
  requireByPrefix(typed, must(await client.connectRequests.list()), 'request', ({ request_id: id }) => id)

/** A code that has to be typed on a device now. Accepting another request, or opening a pairing, ends it. */
export type CodeOut = { code: string; deviceName: string; untilMs: number }

/** Lets a device pair. */
export async function acceptRequest(
  client: SwitchyardClient,
  clock: Clock,
  { request_id: id, device_name: deviceName }: ConnectRequestSummary,
): Promise<Result<CodeOut, ClientFailure>> {
  const accepted = await client.connectRequests.accept(id)
  if (!accepted.ok) return accepted
  // By the clock of this machine: it is what the reader looks at, and those of two machines differ (U18).
  return ok({ code: accepted.value.code, deviceName, untilMs: clock.nowMs() + CONNECT_REQUEST_TTL_MS })
}

/** What to do with the code, which is to follow. */
export const typeItText = ({ deviceName, untilMs }: CodeOut): string =>
  `type this code on ${quotedName(deviceName)} until ${timeOfDay(untilMs)}:\n`
