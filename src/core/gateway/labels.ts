import type { DeviceKind } from '../../protocol/remote/handshake-request.ts'
import { MAX_DEVICE_NAME_CHARS } from '../../protocol/remote/limits.ts'

/** What a device says of itself. All of it is for the owner's eyes: labels, and no permission hangs on one. */

const UNNAMED_DEVICE = 'Unnamed device'

/** Control characters. */
const CONTROL = /\p{Cc}/gu
/** Marks that turn the direction of what follows: left open, they would rearrange the row that shows the name. */
const DIRECTION = /[\u202a-\u202e\u2066-\u2069]/g

/** From space to tilde: what ASCII can print. */
const STABLE_ID = /^[\x20-\x7e]{16,128}$/
const PLATFORM = /^[a-z0-9._-]{1,32}$/

/** Every kind there is; the type makes it complete without loading the wire's schemas. */
const KINDS: Readonly<Record<DeviceKind, true>> = { phone: true, desktop: true, cli: true }

/** A device's name in the form that is stored and sent back: 1 to 64 code points. */
export function deviceName(text: string): string {
  return hostLabel(text, MAX_DEVICE_NAME_CHARS) || UNNAMED_DEVICE
}

/** A machine's name on one line, at most `maxChars` code points; empty when nothing of it can be shown. */
export function hostLabel(text: string, maxChars: number): string {
  const line = text.toWellFormed().replace(CONTROL, '').replace(DIRECTION, '').replace(/\s+/g, ' ').trim()
  // The cut may end just behind a space.
  return Array.from(line).slice(0, maxChars).join('').trimEnd()
}

/**
 * An `install_id` or `host_id`: 16 to 128 printable ASCII characters. Anything else is null, as if it had not been sent
 * (remote protocol, "Handshake frames").
 */
export function stableId(text: unknown): string | null {
  return typeof text === 'string' && STABLE_ID.test(text) ? text : null
}

/** What kind of device it is; absent or a kind of a later release is a phone. */
export function deviceKind(text: unknown): DeviceKind {
  return isKind(text) ? text : 'phone'
}

function isKind(text: unknown): text is DeviceKind {
  return typeof text === 'string' && Object.hasOwn(KINDS, text)
}

/** `ios`, `windows`, …: 1 to 32 of lower-case letters, digits, `-`, `_` and `.`; else null, which is unknown. */
export function platformLabel(text: unknown): string | null {
  return typeof text === 'string' && PLATFORM.test(text) ? text : null
}
