import { MAX_CONNECT_REQUESTS } from '../../protocol/remote/limits.ts'

/** A device that asks the owner, on its socket, to be let in (remote protocol, "Connection requests"). */
export type OpenRequest = {
  requestId: string
  address: string
  /** Of the app's install id; null when it named none. */
  installDigest: string | null
  /** Approved: a code is shown to the owner, and this socket may send it. */
  state: 'pending' | 'approved'
  expiresAtMs: number
}

export type RequestVerdict =
  /** `replaces`: the request of the same app before, whose socket is told that it expired and whose code is void. */
  | { k: 'taken'; replaces: string | null }
  /** Requests are not wanted now: the frame is as unknown as to a gateway without the feature (D41). */
  | { k: 'not_listening' }
  | { k: 'busy' }
  | { k: 'rate_limited'; retryAfterSecs: number }

/**
 * Whether a new request comes before the owner. Requests and denials that are over by `nowMs` do not count, whether or
 * not they have been cleared away. Four are open at once, and one per address.
 */
export function takeRequest(
  open: readonly OpenRequest[],
  denials: readonly { address: string; untilMs: number }[],
  listenUntilMs: number | null,
  asked: { address: string; installDigest: string | null; nowMs: number },
): RequestVerdict {
  const { address, installDigest, nowMs } = asked
  if (listenUntilMs === null || nowMs >= listenUntilMs) return { k: 'not_listening' }

  const deniedUntilMs = Math.max(
    ...denials.filter((denial) => denial.address === address).map((denial) => denial.untilMs),
    nowMs,
  )
  if (deniedUntilMs > nowMs)
    return { k: 'rate_limited', retryAfterSecs: Math.ceil((deniedUntilMs - nowMs) / 1000) }

  const waiting = open.filter((request) => nowMs < request.expiresAtMs)
  const here = waiting.find((request) => request.address === address)
  if (here !== undefined) {
    const isSameApp = installDigest !== null && installDigest === here.installDigest
    return isSameApp ? { k: 'taken', replaces: here.requestId } : { k: 'busy' }
  }
  return waiting.length < MAX_CONNECT_REQUESTS ? { k: 'taken', replaces: null } : { k: 'busy' }
}
