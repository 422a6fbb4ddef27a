/**
 * Where our remote protocol keeps from the reference, which is older than the contract, what the reference has. Data
 * only: `npm run check:contract` fails on whatever else differs, and on an entry that no difference answers to.
 */

import type { IntendedDifference } from './intended-differences.ts'

export const REMOTE_INTENDED_DIFFERENCES: readonly IntendedDifference[] = [
  {
    what: 'bounds',
    at: ['PairRequest.protocol_version', 'AuthenticateRequest.protocol_version', 'request.protocol_version'],
    reason: 'requests of other versions are answered before their shape is looked at (RF 3, 9)',
  },
  {
    what: 'bounds',
    at: ['request.request_id'],
    reason: 'an empty id counts as none: answers could not be told apart by it (RF 9)',
  },
  {
    what: 'became optional',
    at: ['Paired.token'],
    reason: 'a device that rotates its tokens has no static one (RF 6)',
  },
  {
    what: 'variant missing',
    at: ['RemoteResult(type=request_status).result(type=request_status)'],
    reason: 'asking for an outcome leaves no outcome that could be asked for (RF 28)',
  },
]
