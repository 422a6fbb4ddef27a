import { HandshakeRequest } from './handshake-request.ts'
import type { BareErrorCode } from './handshake-response.ts'
import { SUPPORTED_VERSIONS } from './limits.ts'
import { isJsonObject, isVersion, parseJson } from './parse-json.ts'

export type FirstFrame =
  | { ok: true; request: HandshakeRequest }
  | { ok: false; error: { code: BareErrorCode; message: string; supported_versions?: number[] } }

const invalid = (message: string): FirstFrame => ({ ok: false, error: { code: 'invalid_frame', message } })

/**
 * Reads the first frame of a socket, in the order of RF 3 from its second check on: whether it is text, and how long,
 * the caller has looked at. The version comes before the type, so that a frame of a later version is told which
 * versions there are. No message repeats anything that was sent: it may hold a secret.
 */
export function decodeHandshake(text: string): FirstFrame {
  const json = parseJson(text)
  if (!json.ok) return invalid('The frame is not JSON.')
  const frame = json.value
  if (!isJsonObject(frame)) return invalid('The frame is not a JSON object.')
  if (!isVersion(frame.protocol_version)) return invalid('protocol_version is not a whole number.')
  if (!SUPPORTED_VERSIONS.includes(frame.protocol_version)) {
    const known = SUPPORTED_VERSIONS.join(', ')
    const message = `This router speaks version ${known} of the remote protocol. Update the app or the router, so that both speak the same version.`
    return {
      ok: false,
      error: { code: 'unsupported_version', message, supported_versions: [...SUPPORTED_VERSIONS] },
    }
  }
  const request = HandshakeRequest.safeParse(frame)
  if (request.success) return { ok: true, request: request.data }
  // The path names fields of ours only; unknown fields are not complained about.
  const at = request.error.issues[0]?.path.map(String).join('.')
  return invalid(
    at === 'type' ? 'The frame is not a handshake frame.' : `${at} is missing or of a wrong form.`,
  )
}
