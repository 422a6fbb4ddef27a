import {
  MAX_QR_ALTERNATES,
  MAX_QR_HOST_NAME_CHARS,
  REMOTE_PROTOCOL_VERSION,
} from '../../protocol/remote/limits.ts'
import type { PairingQr } from '../../protocol/remote/pairing-qr.ts'
import { utf8Bytes } from '../../protocol/remote/utf8.ts'
import { hostLabel } from './labels.ts'

/** A code of this much is read from a terminal by any phone: its cells stay large enough. */
export const MAX_QR_BYTES = 700

export type QrFacts = {
  gatewayId: string
  credential: string
  /** `host:port`, best first. */
  addresses: readonly [string, ...string[]]
  /** The whole WebSocket address. */
  url: string
  hostName: string | null
}

/**
 * What the pairing QR code holds (remote protocol, "Rotating tokens", at its end). Its JSON is at most `MAX_QR_BYTES` long:
 * what a device can do without goes first, the worst alternates, then the name, and at last what `address` says as well.
 */
export function makePairingQr(facts: QrFacts): PairingQr {
  const [address, ...others] = facts.addresses
  const base = {
    protocol_version: REMOTE_PROTOCOL_VERSION,
    address,
    gateway_id: facts.gatewayId,
    credential: facts.credential,
  } as const
  const host_name = facts.hostName === null ? '' : nameThatFits(facts.hostName)
  const named = host_name === '' ? base : { ...base, host_name }
  const candidates: PairingQr[] = []
  for (let most = Math.min(others.length, MAX_QR_ALTERNATES); most > 0; most--) {
    candidates.push({ ...named, alternates: others.slice(0, most), url: facts.url })
  }
  candidates.push({ ...named, url: facts.url }, { ...base, url: facts.url })
  return candidates.find((qr) => utf8Bytes(JSON.stringify(qr)) <= MAX_QR_BYTES) ?? base
}

/** Both ways of counting characters are in use among those who read it, so it is short by both. */
function nameThatFits(hostName: string): string {
  for (let chars = MAX_QR_HOST_NAME_CHARS; ; chars--) {
    const label = hostLabel(hostName, chars)
    if (label.length <= MAX_QR_HOST_NAME_CHARS) return label
  }
}
