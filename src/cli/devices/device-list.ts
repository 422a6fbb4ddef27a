import type { DeviceSummary } from '../../protocol/execution/devices.ts'
import { MAX_DEVICE_NAME_CHARS } from '../../protocol/remote/limits.ts'
import { oneLine } from '../printable.ts'

/** A platform is one short word. */
const MAX_PLATFORM_CHARS = 32

/** A device's name in the middle of a sentence: nobody but the device chose it, so it must not end its own quotation. */
export const quotedName = (name: string): string => `“${nameText(name).replace(/[“”]/g, "'")}”`

/** Names come from strangers. */
export const nameText = (name: string): string => oneLine(name, MAX_DEVICE_NAME_CHARS)

/** What a device says that it is. */
export function kindText(kind: string, platform: string | undefined): string {
  const known = platform === undefined || platform === 'unknown' ? [] : [platform]
  return [kind, ...known].map((label) => oneLine(label, MAX_PLATFORM_CHARS)).join(', ')
}

const minute = (time: string): string => time.slice(0, 16).replace('T', ' ')

/** A device on one line, and one more when its pairing has ended. */
export function deviceLines(device: DeviceSummary): string {
  const { device_id: id, paired_at: pairedAt, last_seen_at: seenAt, expires_at: expiresAt } = device
  const seen = seenAt === undefined ? 'never seen' : `seen ${minute(seenAt)}`
  const parts = [
    id,
    kindText(device.device_kind, device.platform),
    nameText(device.device_name),
    `paired ${minute(pairedAt)}`,
    device.online ? 'online' : seen,
    ...(expiresAt === undefined ? [] : [`expires ${minute(expiresAt)}`]),
  ]
  const warning =
    device.revoked_reason === undefined ? '' : `  warning: ${endedText(id, device.revoked_reason)}\n`
  return `${parts.join('  ')}\n${warning}`
}

/** Why a pairing ended, and what to do (U33). */
function endedText(id: string, reason: string): string {
  const why =
    reason === 'token_replayed'
      ? 'a token of it that had been replaced was used again, as if somebody had copied it; its pairing was ended'
      : 'its pairing has ended'
  return `${why}. Pair it again with \`switchyard pair\`; \`switchyard devices revoke ${id}\` takes it off this list`
}
