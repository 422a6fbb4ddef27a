import { err, ok, type Result } from '../../../protocol/result.ts'

/** What was read of a request before anything was done about it. */
export type RequestHead = {
  method: string
  /** The target as it stands in the first line. */
  target: string
  httpVersion: string
  /** Names and values in turn, as they came. */
  rawHeaders: readonly string[]
  /** How many bytes came right behind it. */
  early: number
}

/** An upgrade that the router may see: its path, and the headers in turn that go on as they came. */
export type Admitted = { path: string; headers: string[] }

/** The gateway of the first account, and one by its id (D42). No query, no other spelling. */
const GATEWAY_PATH = /^\/(g\/[0-9a-f]{32})?$/

/**
 * All that a handshake needs. Everything else stays outside, whatever it is called: headers that name the peer are the
 * door's to set, and the local router's own tools take orders from further ones. Extensions are not asked for: with
 * compression, a few bytes of somebody who has not said who he is would be megabytes in the router.
 */
const PASSED: ReadonlySet<string> = new Set([
  'origin',
  'user-agent',
  'sec-websocket-key',
  'sec-websocket-version',
  'sec-websocket-protocol',
])

const BODY_HEADERS = ['content-length', 'transfer-encoding']

/**
 * Whether a request may go in (D42): a WebSocket upgrade to a gateway, asked for under one of the machine's own
 * addresses. A page that lets its own name point here (DNS rebinding) says that name as the host.
 * @param ownHosts from `ownHostSet`
 * @returns the error is a sentence for the peer
 */
export function admit(head: RequestHead, ownHosts: ReadonlySet<string>): Result<Admitted, string> {
  const { method, target, httpVersion, rawHeaders, early } = head
  if (method !== 'GET' || httpVersion !== '1.1' || !asksForWebSocket(rawHeaders)) return err(ONLY_DEVICES)
  if (!GATEWAY_PATH.test(target)) return err(ONLY_DEVICES)
  // A device speaks after the answer: a body, or whatever else is in the same breath, is somebody's second request.
  if (early > 0 || BODY_HEADERS.some((name) => valuesOf(rawHeaders, name).length > 0)) {
    return err('an upgrade has nothing behind its head')
  }
  const [host, ...more] = valuesOf(rawHeaders, 'host')
  const canonical = host === undefined || more.length > 0 ? undefined : canonicalHost(host)
  if (canonical === undefined || !ownHosts.has(canonical))
    return err('this is not an address of this machine')
  return ok({ path: target, headers: passedOn(rawHeaders) })
}

/** Said to whoever takes the door for the router. */
export const ONLY_DEVICES =
  'devices connect here by WebSocket; everything else is served on the machine itself only'

function asksForWebSocket(rawHeaders: readonly string[]): boolean {
  const upgrade = valuesOf(rawHeaders, 'upgrade')
  const connection = valuesOf(rawHeaders, 'connection').join(',').toLowerCase().split(',')
  return (
    upgrade.length === 1 &&
    upgrade[0]?.toLowerCase() === 'websocket' &&
    connection.some((token) => token.trim() === 'upgrade')
  )
}

function passedOn(rawHeaders: readonly string[]): string[] {
  const kept: string[] = []
  for (const [name, value] of pairs(rawHeaders)) if (PASSED.has(name.toLowerCase())) kept.push(name, value)
  return kept
}

function valuesOf(rawHeaders: readonly string[], name: string): string[] {
  return [...pairs(rawHeaders)].filter(([given]) => given.toLowerCase() === name).map(([, value]) => value)
}

function* pairs(rawHeaders: readonly string[]): Generator<[string, string]> {
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) yield [rawHeaders[at] ?? '', rawHeaders[at + 1] ?? '']
}

/** The hosts (`host:port`) under which the machine may be asked. */
export function ownHostSet(hosts: readonly string[]): ReadonlySet<string> {
  return new Set(hosts.map(canonicalHost).filter((host) => host !== undefined))
}

/** One spelling per host: small letters, the short form of an IPv6 address, no port 80. */
function canonicalHost(host: string): string | undefined {
  if (!/^[a-z0-9.\-[\]:]+$/i.test(host) || !URL.canParse(`http://${host}/`)) return undefined
  return new URL(`http://${host}/`).host
}
