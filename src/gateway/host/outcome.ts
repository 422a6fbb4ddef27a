import type { RemoteErrorCode } from '../../protocol/remote/errors.ts'
import type { OutrightResult } from '../../protocol/remote/results.ts'
import { type Refusal, refusal } from '../refusal.ts'

/** What a mutation came to; `undecided`: it may have been carried out or not, and can be tried again. */
export type HostOutcome =
  | { receipt: 'applied' | 'rejected'; result: OutrightResult }
  | { receipt: 'undecided'; result: Refusal }

/** Nothing was done, and the same request is refused for ever (RF 28). */
export const rejected = (code: RemoteErrorCode, message: string): HostOutcome => ({
  receipt: 'rejected',
  result: refusal(code, message),
})

export const applied = (result: OutrightResult): HostOutcome => ({ receipt: 'applied', result })
