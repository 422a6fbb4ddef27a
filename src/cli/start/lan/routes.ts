import type { NetworkInterfaceInfo } from 'node:os'
import { addressKind } from '../../../core/gateway/addresses.ts'
import type { Route } from '../../../protocol/remote/handshake-request.ts'

/**
 * Which addresses of this machine a device may use: those of the local network and of overlays that the user set up,
 * never a public, loopback or link-local one. Nothing is asked of the system here.
 */

/** An address to listen on; IPv6 without brackets. */
export type LanAddress = { host: string; kind: 'lan' | 'overlay'; provider?: Provider }
/** The machine's own name, and what it resolves to. */
export type ResolvedName = { name: string; addresses: readonly string[] }

type Provider = NonNullable<Route['provider']>
type Interfaces = NodeJS.Dict<NetworkInterfaceInfo[]>

/** A device tries them all at once; more than this no ordinary machine has. */
export const MAX_ROUTES = 8

/**
 * Interfaces that lead to guests of this machine (containers, virtual machines), where no device is, or into a mobile
 * operator's network, where strangers are.
 */
const LEFT_OUT =
  /^(docker|br-|veth|virbr|vmnet|vboxnet|vnet|podman|cni|flannel|cali|lxc|lxd|incus|bridge\d{3}|vethernet|virtualbox|vmware|wwan|rmnet|pdp_ip|cellular|mobile)/i

/** The products that name their interfaces so that one can tell. */
const PROVIDERS: readonly (readonly [RegExp, Provider])[] = [
  [/^wt\d+$|^netbird/i, 'netbird'],
  [/^tailscale/i, 'tailscale'],
  [/^zt[a-z0-9]{8,}$|^zerotier/i, 'zerotier'],
]
/** A WireGuard network that the user made himself: services that sell one take names of their own. */
const OWN_WIREGUARD = /^wg\d+$/
const TUNNEL = /^(utun|tun|tap|wg|feth|nebula|ppp|ipsec)/i
/** Of an interface that has no hardware: a tunnel on Linux and on Windows, whatever its name. */
const NO_MAC = '00:00:00:00:00:00'

/**
 * The addresses to listen on, best first: the local network, then overlays. Private IPv4 of a tunnel counts only where
 * the interface's name says that it is the user's own overlay; in any other (a company's, a VPN service's) he may not
 * want to be found.
 */
export function lanAddresses(interfaces: Interfaces): LanAddress[] {
  const found = new Map<string, LanAddress>()
  for (const [name, infos] of Object.entries(interfaces)) {
    if (LEFT_OUT.test(name)) continue
    for (const info of infos ?? []) {
      const address = addressOf(name, info)
      if (address !== undefined && !found.has(address.host)) found.set(address.host, address)
    }
  }
  return [...found.values()].sort((a, b) => rank(a) - rank(b)).slice(0, MAX_ROUTES)
}

function addressOf(name: string, info: NetworkInterfaceInfo): LanAddress | undefined {
  if (info.internal) return undefined
  const host = info.address
  const provider = PROVIDERS.find(([pattern]) => pattern.test(name))?.[1]
  const isTunnel = provider !== undefined || TUNNEL.test(name) || info.mac === NO_MAC
  const overlay: LanAddress = { host, kind: 'overlay', ...(provider === undefined ? {} : { provider }) }
  switch (addressKind(host)) {
    case 'overlay':
      // Home networks have unique-local IPv6 too; every device there has IPv4 as well.
      return info.family === 'IPv4' || isTunnel ? overlay : undefined
    case 'private':
      if (!isTunnel) return { host, kind: 'lan' }
      return provider !== undefined || OWN_WIREGUARD.test(name) ? overlay : undefined
    default:
      return undefined
  }
}

/** IPv4 before IPv6 within a kind, since every device can dial it; otherwise in the system's own order. */
const rank = ({ kind, host }: LanAddress): number => (kind === 'lan' ? 0 : 2) + (host.includes(':') ? 1 : 0)

/**
 * What devices are told, best first (remote protocol, "Handshake frames"). The name comes last, since it must be looked
 * up, and only when it is one that local networks resolve (`.local`) and leads to one of the addresses.
 */
export function routesOf(addresses: readonly LanAddress[], port: number, own?: ResolvedName): Route[] {
  const routes: Route[] = addresses.map(({ host, kind, provider }) => ({
    address: hostAndPort(host, port),
    kind,
    ...(provider === undefined ? {} : { provider }),
  }))
  const leadsHere = own?.addresses.some((address) => addresses.some(({ host }) => host === address))
  if (own && leadsHere && isLocalName(own.name)) {
    routes.splice(MAX_ROUTES - 1)
    routes.push({ address: hostAndPort(own.name, port), kind: 'hostname' })
  }
  return routes
}

/** Whether local networks resolve it, without any server. */
export const isLocalName = (name: string): boolean => /^[a-z0-9-]+\.local$/i.test(name)

/** As in a URL: IPv6 in brackets. */
export const hostAndPort = (host: string, port: number): string =>
  host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`
