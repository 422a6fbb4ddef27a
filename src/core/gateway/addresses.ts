/**
 * What a network address says about where its holder is (D42). Pure text work: no name is resolved. IPv6 in brackets,
 * with a zone, or with IPv4 inside is read as well; addresses with a port are not.
 */

/**
 * `overlay`: 100.64.0.0/10, which overlay networks use, and unique-local IPv6, which they and home networks use.
 * `public`: everything else that is an address.
 */
export type AddressKind = 'loopback' | 'private' | 'overlay' | 'link_local' | 'public'

/** Null for a text that is no IP address. */
export function addressKind(address: string): AddressKind | null {
  const v4 = parseIpv4(address)
  if (v4 !== null) return kindOfIpv4(v4)
  const v6 = parseIpv6(address)
  if (v6 === null) return null
  const mapped = ipv4Inside(v6)
  return mapped === null ? kindOfIpv6(v6) : kindOfIpv4(mapped)
}

/** One spelling per address, so that a peer is counted once; a text that is no address stays as it is. */
export function plainAddress(address: string): string {
  const v4 = parseIpv4(address)
  if (v4 !== null) return v4.join('.')
  const v6 = parseIpv6(address)
  if (v6 === null) return address
  const mapped = ipv4Inside(v6)
  return mapped === null ? v6.map((group) => group.toString(16)).join(':') : mapped.join('.')
}

/** Whoever has one public IPv6 address has the 2^64 of its network. */
const GROUPS_OF_NETWORK = 4

/** What limits per address count by: the address, and of public IPv6 its /64, in which nobody is a stranger. */
export function networkOf(address: string): string {
  const v6 = parseIpv6(address)
  if (v6 === null || addressKind(address) !== 'public') return plainAddress(address)
  if (ipv4Inside(v6) !== null) return plainAddress(address)
  const groups = v6.slice(0, GROUPS_OF_NETWORK).map((group) => group.toString(16))
  return `${groups.join(':')}::/64`
}

type Ipv4 = readonly [number, number, number, number]

function parseIpv4(text: string): Ipv4 | null {
  // No leading zeros: some read those as octal, and the two readings are different hosts.
  const match = /^(0|[1-9]\d{0,2})\.(0|[1-9]\d{0,2})\.(0|[1-9]\d{0,2})\.(0|[1-9]\d{0,2})$/.exec(text)
  if (match === null) return null
  const [a = 256, b = 256, c = 256, d = 256] = match.slice(1).map(Number)
  return a < 256 && b < 256 && c < 256 && d < 256 ? [a, b, c, d] : null
}

/** Eight groups of 16 bits. */
function parseIpv6(text: string): number[] | null {
  const bare = text.replace(/^\[(.*)\]$/, '$1').replace(/%[^%]+$/, '')
  const halves = bare.split('::')
  if (halves.length > 2) return null
  const [head, tail] = halves.map((half, index) => parseGroups(half, index === halves.length - 1))
  if (head === undefined || head === null || tail === null) return null
  if (tail === undefined) return head.length === 8 ? head : null
  const missing = 8 - head.length - tail.length
  return missing < 1 ? null : [...head, ...Array<number>(missing).fill(0), ...tail]
}

/** Groups between two ends; the last of an address may be written as IPv4. */
function parseGroups(text: string, last: boolean): number[] | null {
  if (text === '') return []
  const groups: number[] = []
  const parts = text.split(':')
  for (const [index, part] of parts.entries()) {
    const v4 = last && index === parts.length - 1 ? parseIpv4(part) : null
    if (v4 !== null) groups.push(v4[0] * 256 + v4[1], v4[2] * 256 + v4[3])
    else if (/^[0-9a-f]{1,4}$/i.test(part)) groups.push(Number.parseInt(part, 16))
    else return null
  }
  return groups
}

/** The IPv4 address of a v4-mapped one (::ffff:a.b.c.d). */
function ipv4Inside(groups: readonly number[]): Ipv4 | null {
  const [high = 0, low = 0] = groups.slice(6)
  if (groups.slice(0, 5).some((group) => group !== 0) || groups[5] !== 0xffff) return null
  return [high >> 8, high & 0xff, low >> 8, low & 0xff]
}

function kindOfIpv4([a, b]: Ipv4): AddressKind {
  if (a === 127) return 'loopback'
  if (a === 10 || (a === 172 && b >= 16 && b < 32) || (a === 192 && b === 168)) return 'private'
  if (a === 100 && b >= 64 && b < 128) return 'overlay'
  if (a === 169 && b === 254) return 'link_local'
  return 'public'
}

function kindOfIpv6(groups: readonly number[]): AddressKind {
  const [first = 0] = groups
  if (groups.slice(0, 7).every((group) => group === 0) && groups[7] === 1) return 'loopback'
  // fe80::/10 and fc00::/7
  if ((first & 0xffc0) === 0xfe80) return 'link_local'
  if ((first & 0xfe00) === 0xfc00) return 'overlay'
  return 'public'
}
