import type { Provider } from '../protocol/execution/ids.ts'

/** What sends a request: the platform's, or one that an egress made. */
export type Fetch = typeof fetch

/** Why a request leaves: written down before it does (U38). Holds no content and no credential. */
export type RouteRecord = {
  purpose: 'completion' | 'catalogue'
  provider: Provider
  /** Empty for a catalogue call. */
  model: string
  local: boolean
  /** The rule that chose the model; `default route`, `explicit model` or `catalogue` where no rule did. */
  chosenBy: string
  origin: string
}

/**
 * Makes the `fetch` of one upstream call. Every byte that leaves for a model provider leaves through one of these:
 * redirects are never followed, the target must lie under `baseUrl`, and the route is recorded first (D16, U38).
 */
export type Egress = (endpoint: { baseUrl: string; local: boolean; model?: string }) => typeof fetch

export type EgressOptions = {
  /** Called before each request; when it throws, nothing is sent. */
  record: (route: RouteRecord) => void
  purpose: RouteRecord['purpose']
  provider: Provider
  chosenBy: string
  /** False for a turn that is bound to local models: then no remote endpoint is reached, whatever asks for it (U37). */
  remoteAllowed: boolean
  /** What really sends; the global `fetch` unless a test or a tunnel stands in for it. */
  fetch?: typeof fetch
}

/** A request that the router must never make. A broken invariant: it passes through every adapter as a throw. */
export class EgressViolation extends Error {
  override readonly name = 'EgressViolation'
}

/** The provider answered with a redirect. It is not followed: it could lead a prompt and a key anywhere (D16). */
export class RedirectRefused extends Error {
  override readonly name = 'RedirectRefused'
}

/**
 * The one way out for model traffic (D16). Nothing is retried here.
 * @throws EgressViolation when a remote endpoint is asked for in a local-only turn (at once), or when a target lies
 *   outside its base URL (from the returned `fetch`, before any byte leaves).
 */
export function makeEgress(options: EgressOptions): Egress {
  const send: typeof fetch = options.fetch ?? ((input, init) => fetch(input, init))
  return ({ baseUrl, local, model = '' }) => {
    if (!local && !options.remoteAllowed) {
      throw new EgressViolation(`remote egress to ${options.provider} in a turn bound to local models`)
    }
    const base = new URL(baseUrl)
    return async (input, init) => {
      if (typeof input !== 'string' && !(input instanceof URL)) {
        throw new EgressViolation('egress takes a URL, not a request object')
      }
      const target = new URL(input)
      if (!liesUnder(target, base)) {
        throw new EgressViolation(`${target.origin} is not under the base URL of ${options.provider}`)
      }
      const headers = new Headers(init?.headers)
      headers.delete('cookie')
      options.record({
        purpose: options.purpose,
        provider: options.provider,
        model,
        local,
        chosenBy: options.chosenBy,
        origin: base.origin,
      })
      const response = await send(target.href, { ...init, headers, redirect: 'manual' })
      // Status 0 is how some runtimes show a redirect that they did not follow.
      if (response.status === 0 || (response.status >= 300 && response.status < 400)) {
        await response.body?.cancel()
        throw new RedirectRefused(`HTTP ${response.status}`)
      }
      return response
    }
  }
}

/** Same origin, no user name or password, and a path that is the base path or continues it at a slash. */
function liesUnder(target: URL, base: URL): boolean {
  const prefix = base.pathname.endsWith('/') ? base.pathname : `${base.pathname}/`
  return (
    target.origin === base.origin &&
    target.username === '' &&
    target.password === '' &&
    `${target.pathname}/`.startsWith(prefix)
  )
}
