import type { RemoteErrorCode } from '../protocol/remote/errors.ts'
import type { OutrightResult } from '../protocol/remote/results.ts'
import type { RemoteSessionInfo } from '../protocol/remote/session-info.ts'

export type Refusal = Extract<OutrightResult, { type: 'error' }>

export const refusal = (code: RemoteErrorCode, message: string): Refusal => ({ type: 'error', code, message })

export const staleSession = (): Refusal =>
  refusal('stale_session', 'the session was shared again; list the sessions for its new epoch')

/** Why a request reaches no session (RF 10); null when it does. */
export function misdirected(row: RemoteSessionInfo | null, registrationEpoch: number | null): Refusal | null {
  if (row === null) return refusal('not_found', 'no such session is shared now; list the sessions')
  return row.registration_epoch === registrationEpoch ? null : staleSession()
}
