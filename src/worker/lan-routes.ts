import type { Route } from '../protocol/remote/handshake-request.ts'

const KINDS: readonly string[] = ['lan', 'overlay', 'hostname', 'public'] satisfies Route['kind'][]
const PROVIDERS: readonly unknown[] = ['netbird', 'tailscale', 'zerotier'] satisfies Route['provider'][]

/**
 * The addresses on which devices of the local network reach this router, best first (`LAN_ROUTES`). An entry that is
 * none is left out, and so is everything when the text is no list. Read by hand: the schemas of the remote protocol are
 * not to be built when the Worker starts.
 */
export function parseRoutes(text: string | undefined): Route[] {
  if (text === undefined || text === '') return []
  let json: unknown
  try {
    json = JSON.parse(text)
  } catch {
    return []
  }
  return Array.isArray(json) ? json.filter(isRoute) : []
}

function isRoute(entry: unknown): entry is Route {
  if (typeof entry !== 'object' || entry === null) return false
  const { address, kind, provider } = entry as Record<string, unknown>
  return (
    typeof address === 'string' &&
    address !== '' &&
    typeof kind === 'string' &&
    KINDS.includes(kind) &&
    (provider === undefined || PROVIDERS.includes(provider))
  )
}
