import {
  type Check,
  count,
  exactly,
  type Fields,
  listOf,
  matching,
  object,
  oneOf,
  someText,
  text,
  time,
} from './shapes.ts'

/** The frames of remote protocol v1 around the handshake, as its section "Handshake frames" writes them. */

const VERSION = exactly(1)
const HEX_32 = matching(/^[0-9a-f]{32}$/)
const HEX_16 = matching(/^[0-9a-f]{16}$/)
/** 32 random bytes in base64url. */
const SECRET = matching(/^[A-Za-z0-9_-]{43}$/)

const route = object(
  { address: someText, kind: oneOf('lan', 'overlay', 'hostname', 'public') },
  { provider: oneOf('netbird', 'tailscale', 'zerotier') },
)
const identity = {
  protocol_version: VERSION,
  gateway_id: HEX_32,
  instance_id: HEX_32,
  device_id: HEX_16,
  device_name: someText,
}
const labels = {
  host_name: someText,
  version: someText,
  routes: listOf(route),
  wire_names: exactly('thread'),
}

const staticPaired = object({ type: exactly('paired'), ...identity, token: SECRET, expires_at: time }, labels)
const rotatingPaired = object(
  {
    type: exactly('paired'),
    ...identity,
    refresh_token: SECRET,
    access_token: SECRET,
    access_expires_at: time,
  },
  labels,
)
const staticAuthenticated = object({ type: exactly('authenticated'), ...identity, expires_at: time }, labels)
const accessAuthenticated = object(
  { type: exactly('authenticated'), ...identity, access_expires_at: time },
  labels,
)
const rotatedAuthenticated = object(
  {
    type: exactly('authenticated'),
    ...identity,
    refresh_token: SECRET,
    access_token: SECRET,
    access_expires_at: time,
    rotation_id: HEX_16,
  },
  labels,
)

/** Every code of "The bare error frame". */
export const BARE_CODES = [
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
] as const
export type BareCode = (typeof BARE_CODES)[number]

const WAITS = ['rate_limited', 'connect_rate_limited']

/** A bare error: what only some codes carry is there with them and absent with all others. */
const bareError: Check = (value, at) => {
  const code = String((value as Fields).code)
  return object({
    type: exactly('error'),
    code: oneOf(...BARE_CODES),
    message: someText,
    ...(WAITS.includes(code) ? { retry_after_secs: matchingSeconds } : {}),
    ...(code === 'unsupported_version' ? { supported_versions: listOf(VERSION) } : {}),
  })(value, at)
}

/** A wait that is worth telling. */
const matchingSeconds: Check = (value, at) => [
  ...count(value, at),
  ...(Number(value) >= 1 && Number(value) <= 300
    ? []
    : [`${at} is no wait of 1 to 300 seconds: ${String(value)}`]),
]

const SECONDS_120: Check = (value, at) =>
  Number(value) >= 1 && Number(value) <= 120 ? count(value, at) : [`${at} is not up to 120: ${String(value)}`]

const ANSWERS: Readonly<Record<string, Check>> = {
  paired: (value, at) => ('token' in (value as Fields) ? staticPaired : rotatingPaired)(value, at),
  authenticated: (value, at) => {
    const fields = value as Fields
    if ('expires_at' in fields) return staticAuthenticated(value, at)
    return ('rotation_id' in fields ? rotatedAuthenticated : accessAuthenticated)(value, at)
  },
  connect_pending: object({
    type: exactly('connect_pending'),
    request_id: HEX_16,
    expires_in_secs: SECONDS_120,
  }),
  connect_approved: object({
    type: exactly('connect_approved'),
    request_id: HEX_16,
    code_length: exactly(8),
    expires_in_secs: SECONDS_120,
  }),
  connect_denied: object({ type: exactly('connect_denied') }),
  connect_expired: object({ type: exactly('connect_expired') }),
  error: bareError,
}

/** What is wrong with an answer of the handshake or a bare error. */
export const handshakeFaults = (frame: Fields): string[] => {
  const type = text(frame.type, 'type').length === 0 ? String(frame.type) : ''
  const check = Object.hasOwn(ANSWERS, type) ? ANSWERS[type] : undefined
  return check === undefined ? [`there is no frame of the type ${type}`] : check(frame, type)
}
