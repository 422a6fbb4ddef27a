import type { Provider } from '../protocol/execution/ids.ts'

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
