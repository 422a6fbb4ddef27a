import type { Refusal } from '../../core/operations/refusal.ts'
import type { RunInputEvent } from '../../core/run/inputs.ts'
import type { RemoteErrorCode } from '../../protocol/remote/errors.ts'
import type { OutrightResult } from '../../protocol/remote/results.ts'
import type { SessionRow } from '../../storage/session/session-row.ts'
import type { Sql } from '../../storage/session/sql.ts'
import type { StepRequest, StepTaken } from './ports.ts'

/**
 * What a mutation comes to, before anything of it is stored. Whoever decides waits for nothing: what was looked at is still
 * so when it is carried out (RF 10).
 */
export type Decision =
  /** `isKept` false: no receipt is stored, and the same request may be sent again. */
  | { k: 'refused'; refusal: Refusal; isKept: boolean }
  /** A step of the machine. `refused` says how the device is told when the machine does not take it. */
  | {
      k: 'step'
      input: RunInputEvent
      request: Pick<StepRequest, 'access' | 'facts' | 'runInput'>
      result: OutrightResult
      refused(why: Extract<StepTaken, { ok: false }>): Refusal
    }
  /** A change that is no step; `cut`: devices have to be shown the state anew (RF 13). */
  | { k: 'change'; work(sql: Sql): void; cut: boolean; result: OutrightResult }
  /** A change that itself says what it came to; an error is a refusal, which is kept. */
  | { k: 'attempt'; work(): OutrightResult }
  /** A change of the session's own row, which D1 and the live list are told of. */
  | { k: 'session'; session: SessionRow; result: OutrightResult }

export const refused = (refusal: Refusal): Decision => ({ k: 'refused', refusal, isKept: true })

/** Refused for now: nothing is stored, so that the same request may be sent again. */
export const refusedForNow = (refusal: Refusal): Decision => ({ k: 'refused', refusal, isKept: false })

/** The machine did not take an input: in the device's words, where the machine knows them. */
export const machineRefusal = (
  why: Extract<StepTaken, { ok: false }>,
  otherwise: RemoteErrorCode,
  message: string,
): Refusal => {
  if ('dropped' in why) return { code: otherwise, message }
  const { failure, remote } = why
  const code = remote ?? (failure.code === 'run_in_flight' ? 'busy' : 'invalid_request')
  return { code, message: failure.message }
}
