/**
 * Why a call to the router did not give what was asked. Clients match on `kind`, and for `http` and `turn` on `code`
 * (EC 3); `message` is a sentence for people and never holds a key, a prompt or a tool output.
 */
export type ClientFailure =
  /** The router refused with its error envelope. `retryAfterMs` when it named a waiting time. */
  | {
      kind: 'http'
      status: number
      code: string
      message: string
      details?: Record<string, unknown>
      retryAfterMs?: number
    }
  /** The turn itself failed: a `turn_end` with status `error` (EC 29.9). */
  | { kind: 'turn'; code: string; message: string; details?: Record<string, unknown> }
  /** No answer, or the answer broke off and could not be resumed. */
  | { kind: 'network'; message: string }
  /** An answer that is not JSON: most likely a proxy, a sign-in page or another program. */
  | { kind: 'not_json'; status: number; message: string }
  /** JSON, but not of the promised shape. */
  | { kind: 'unexpected_body'; status: number; message: string }
  /** The caller's own signal ended it. */
  | { kind: 'aborted'; message: string }
  /** The session is encrypted, and this client does not hold the key that it is sealed with (U35). */
  | { kind: 'locked'; keyId: string; message: string }
  /** Something that this client cannot do, such as opening what another kind of client has sealed. */
  | { kind: 'unsupported'; message: string }

/** The stable code of a failure, or its kind when it has none. */
export const codeOf = (failure: ClientFailure): string =>
  failure.kind === 'http' || failure.kind === 'turn' ? failure.code : failure.kind
