import { lookup } from 'node:dns/promises'
import os from 'node:os'
import path from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { ROOT } from '../../../../scripts/lib-node/repository.mjs'
import type { Route } from '../../../protocol/remote/handshake-request.ts'
import { err, ok, type Result } from '../../../protocol/result.ts'
import { type Door, openDoor } from './door.ts'
import { hostAndPort, isLocalName, lanAddresses, type ResolvedName, routesOf } from './routes.ts'

/** A door that is open, and what to say about it. */
export type OpenLan = {
  door: Door
  /** For devices, and for the router to tell them. */
  routes: Route[]
  /** One sentence for each address that could not be had. */
  notices: string[]
}

/** A name of the local network is answered within a moment, or by nobody. */
const LOOKUP_MS = 1_000

/**
 * Opens the door of `npm start -- --lan` on this machine's addresses, at the port that the router has on 127.0.0.1.
 * It may open before the router answers: a device that is as quick as that is told to come back.
 * @returns the error is a sentence for the user
 */
export async function openLan(port: number): Promise<Result<OpenLan, string>> {
  const addresses = lanAddresses(os.networkInterfaces())
  if (addresses.length === 0) return err(NO_ADDRESS)
  const name = os.hostname()
  const hosts = addresses.map(({ host }) => host)
  const door = await openDoor({ hosts, names: isLocalName(name) ? [name] : [], port, routerPort: port })
  const notices = door.refused.map(
    ({ host, code }) => `No device can use ${hostAndPort(host, port)}: ${reason(code)}.`,
  )
  if (door.listening.length === 0)
    return err([...notices, `Choose another port: PORT=8788 npm start -- --lan`].join('\n'))
  const open = addresses.filter(({ host }) => door.listening.includes(host))
  return ok({ door, routes: routesOf(open, port, await resolved(name)), notices })
}

/** Why nothing can be opened, and what would help. */
export const NO_ADDRESS =
  'This machine has no address that a device could use: neither a private one on Wi-Fi or Ethernet nor one of an overlay network (Tailscale, NetBird, ZeroTier, WireGuard). Connect it to a network, or start without --lan.'

async function resolved(name: string): Promise<ResolvedName | undefined> {
  if (!isLocalName(name)) return undefined
  const late = new AbortController()
  const answer = lookup(name, { all: true }).then(
    (found) => ({ name, addresses: found.map(({ address }) => address) }),
    () => undefined,
  )
  const nothing = wait(LOOKUP_MS, undefined, { signal: late.signal }).catch(() => undefined)
  const first = await Promise.race([answer, nothing])
  late.abort()
  return first
}

function reason(code: string): string {
  switch (code) {
    case 'EADDRINUSE':
      return 'another program has the port there'
    case 'EACCES':
      return 'the port needs special rights on this system'
    default:
      return `the system refuses it (${code})`
  }
}

/** What the user reads once the router is up: where devices find it, and what to do next. */
export function lanText(routes: readonly Route[], url: string): string {
  const rows = routes.map(
    ({ address, kind, provider }) => `  ${address}  ${KIND_TEXT[kind]}${provider ? ` (${provider})` : ''}\n`,
  )
  return [
    'Devices reach this router at\n',
    ...rows,
    'as long as this command runs. Only their sockets are let in there; everything else stays on 127.0.0.1.\n',
    `Pair one, in another terminal: ${path.join(ROOT, 'bin/switchyard.mjs')} pair --url ${url}\n`,
  ].join('')
}

const KIND_TEXT: Record<Route['kind'], string> = {
  lan: 'local network',
  overlay: 'overlay network',
  hostname: 'name on the local network',
  public: 'public',
}
