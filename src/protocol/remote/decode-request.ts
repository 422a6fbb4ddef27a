import type { RemoteErrorCode } from './errors.ts'
import { FlowAck } from './flow-ack.ts'
import type { RemoteResponse } from './frame.ts'
import { MAX_REQUEST_ID_BYTES, REMOTE_PROTOCOL_VERSION, SUPPORTED_VERSIONS } from './limits.ts'
import { isOperationType, namesSession } from './operation-kinds.ts'
import type { RemoteOperation } from './operations.ts'
import { isJsonObject, isVersion, parseJson } from './parse-json.ts'
import { RemoteRequest } from './request.ts'
import { TokenAck } from './token-ack.ts'
import { utf8Bytes } from './utf8.ts'
import { fromThreadNames } from './wire-names.ts'

/** The vocabulary of a connection. */
export type WireNames = 'session' | 'thread'

/** A request in the names of version 1, whatever its connection speaks. Null: not given, and not needed. */
export type RequestEnvelope = {
  requestId: string
  sessionId: string | null
  registrationEpoch: number | null
  operation: RemoteOperation
}

export type Decoded =
  | { k: 'request'; request: RequestEnvelope }
  | { k: 'token_ack'; rotationId: string }
  | { k: 'bad_token_ack' }
  | { k: 'flow_ack'; bytes: number }
  | { k: 'bad_flow_ack' }
  | { k: 'refused'; response: RemoteResponse }

function refused(requestId: string, code: RemoteErrorCode, message: string): Decoded {
  const versions = code === 'incompatible_version' ? { supported_versions: [...SUPPORTED_VERSIONS] } : {}
  return {
    k: 'refused',
    response: {
      kind: 'response',
      protocol_version: REMOTE_PROTOCOL_VERSION,
      request_id: requestId,
      result: { type: 'error', code, message, ...versions },
    },
  }
}

const isRequestId = (id: unknown): id is string =>
  typeof id === 'string' &&
  id !== '' &&
  id.length <= MAX_REQUEST_ID_BYTES &&
  utf8Bytes(id) <= MAX_REQUEST_ID_BYTES

/** The id of a frame that is refused as a whole, since it holds half a character: its sender waits for an answer. */
function readableId(text: string): string {
  try {
    const frame: unknown = JSON.parse(text)
    const id = isJsonObject(frame) ? frame.request_id : null
    return isRequestId(id) && id.isWellFormed() ? id : ''
  } catch {
    return ''
  }
}

/**
 * Reads a text frame after the handshake, in the order of RF 9 from its second check on: frames over the limit of a
 * request are the caller's. A refusal is a whole answer without a receipt, in the names of version 1, and its message
 * repeats nothing that was sent.
 * @param acknowledges the connection named the capability `flow_ack`; to others that frame is an unknown one
 */
export function decodeRequest(text: string, wireNames: WireNames, acknowledges = false): Decoded {
  const json = parseJson(text)
  if (!json.ok) return refused(readableId(text), 'invalid_request', 'The frame is not JSON.')
  const frame = json.value
  if (!isJsonObject(frame)) return refused('', 'invalid_request', 'The frame is not a JSON object.')
  if (frame.type === 'token_ack') {
    const ack = TokenAck.safeParse(frame)
    return ack.success ? { k: 'token_ack', rotationId: ack.data.rotation_id } : { k: 'bad_token_ack' }
  }
  if (frame.type === 'flow_ack' && acknowledges) {
    const ack = FlowAck.safeParse(frame)
    return ack.success ? { k: 'flow_ack', bytes: ack.data.bytes } : { k: 'bad_flow_ack' }
  }

  const requestId = isRequestId(frame.request_id) ? frame.request_id : ''
  const { protocol_version: version } = frame
  if (!isVersion(version)) {
    return refused(requestId, 'invalid_request', 'protocol_version is not a whole number.')
  }
  if (!SUPPORTED_VERSIONS.includes(version)) {
    const known = SUPPORTED_VERSIONS.join(', ')
    return refused(
      requestId,
      'incompatible_version',
      `This router speaks version ${known} of the remote protocol.`,
    )
  }
  if (requestId === '') {
    const message = `request_id is not a text of 1 to ${MAX_REQUEST_ID_BYTES} bytes.`
    return refused('', 'invalid_request', message)
  }
  return decodeOperation(requestId, frame, wireNames)
}

function decodeOperation(requestId: string, frame: Record<string, unknown>, wireNames: WireNames): Decoded {
  const invalid = (message: string) => refused(requestId, 'invalid_request', message)
  const named = wireNames === 'thread' ? fromThreadNames(frame) : { ok: true as const, value: frame }
  if (!named.ok) return invalid('This connection uses thread names, and the request a session name.')
  const { value } = named

  const operation = isJsonObject(value) ? value.operation : undefined
  const type = isJsonObject(operation) ? operation.type : undefined
  if (typeof type === 'string' && !isOperationType(type)) {
    return refused(requestId, 'unsupported_operation', 'This router does not know the operation.')
  }
  const parsed = RemoteRequest.safeParse(value)
  const idField = wireNames === 'thread' ? 'thread_id' : 'session_id'
  if (!parsed.success) {
    // The path names fields of ours only; unknown fields are not complained about.
    const path = parsed.error.issues[0]?.path.map((part) => (part === 'session_id' ? idField : String(part)))
    return invalid(`${path?.join('.')} is missing or of a wrong form.`)
  }
  const { session_id: sessionId = null, registration_epoch: registrationEpoch = null } = parsed.data
  if (namesSession(parsed.data.operation.type) && (sessionId === null || registrationEpoch === null)) {
    return invalid(`The operation needs ${idField} and registration_epoch.`)
  }
  return {
    k: 'request',
    request: { requestId, sessionId, registrationEpoch, operation: parsed.data.operation },
  }
}
