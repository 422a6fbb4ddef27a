// Where a deployed router is reached, and whether it answers there.
import { z } from 'zod'

const Status = z.object({ status: z.literal('ok'), version: z.string() })

/** A first address under workers.dev, or a certificate for a new domain, takes a minute or two to be known. */
const PATIENCE_MS = 150_000
const POLL_MS = 2_000
const REQUEST_TIMEOUT_MS = 10_000

/**
 * @typedef {{ fetch: typeof fetch, nowMs: () => number, pause: (ms: number) => Promise<unknown> }} Net `pause` may end
 *   early when the user interrupts
 */

/**
 * @param {readonly (string | { pattern: string, custom_domain?: unknown })[]} routes of the configuration
 * @param {readonly string[]} targets what wrangler says the Worker is reached by
 * @returns {string | undefined} an origin: the user's own domain if there is one, else the one under workers.dev;
 *   undefined when only patterns lead to it that name no single host
 */
export function addressOf(routes, targets) {
  const patterns = routes.map((route) => (typeof route === 'string' ? { pattern: route } : route))
  const domain = patterns.find((route) => route.custom_domain === true)?.pattern
  if (domain !== undefined) return `https://${domain}`
  const workersDev = targets.find((target) => target.startsWith('https://'))
  if (workersDev !== undefined) return workersDev
  const whole = patterns.map(({ pattern }) => /^([a-z0-9.-]+)\/\*$/.exec(pattern)?.[1]).find(Boolean)
  return whole === undefined ? undefined : `https://${whole}`
}

/**
 * Asks the router until it answers as one.
 * @param {string} origin
 * @param {Net} net
 * @param {AbortSignal} stop ends the waiting
 * @returns {Promise<{ ok: true, value: { version: string } } | { ok: false, error: string }>}
 */
export async function waitForAnswer(origin, { fetch, nowMs, pause }, stop) {
  const deadline = nowMs() + PATIENCE_MS
  for (;;) {
    let last
    try {
      const signal = AbortSignal.any([stop, AbortSignal.timeout(REQUEST_TIMEOUT_MS)])
      const answer = await fetch(`${origin}/status`, { signal })
      const text = await answer.text()
      const status = answer.ok ? readStatus(text) : undefined
      if (status !== undefined) return { ok: true, value: { version: status.version } }
      last = `HTTP ${answer.status}${answer.ok ? ', but not from a router' : ''}`
    } catch (error) {
      last = stop.aborted ? 'the waiting was interrupted' : reasonOf(error)
    }
    if (stop.aborted || nowMs() >= deadline) return { ok: false, error: last }
    await pause(POLL_MS)
  }
}

/** @param {string} text */
function readStatus(text) {
  try {
    return Status.safeParse(JSON.parse(text)).data
  } catch {
    return undefined
  }
}

/** @param {unknown} error what fetch threw: "fetch failed", with the reason as its cause */
function reasonOf(error) {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error
  return cause instanceof Error ? cause.message : String(cause)
}
