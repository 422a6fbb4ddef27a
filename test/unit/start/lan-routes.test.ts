import type { NetworkInterfaceInfo } from 'node:os'
import { describe, expect, test } from 'vitest'
import { lanText } from '../../../src/cli/start/lan/open-lan.ts'
import { lanAddresses, MAX_ROUTES, routesOf } from '../../../src/cli/start/lan/routes.ts'

/** Which addresses devices are told (D42). */

const v4 = (address: string, mac = '02:11:22:33:44:55'): NetworkInterfaceInfo => ({
  address,
  family: 'IPv4',
  netmask: '255.255.255.0',
  mac,
  internal: false,
  cidr: `${address}/24`,
})
const v6 = (address: string, mac = '02:11:22:33:44:55'): NetworkInterfaceInfo => ({
  address,
  family: 'IPv6',
  netmask: 'ffff:ffff:ffff:ffff::',
  mac,
  internal: false,
  cidr: `${address}/64`,
  scopeid: 0,
})
const NO_MAC = '00:00:00:00:00:00'
const loopback = [
  { ...v4('127.0.0.1', NO_MAC), internal: true },
  { ...v6('::1', NO_MAC), internal: true },
]
const hosts = (interfaces: NodeJS.Dict<NetworkInterfaceInfo[]>) =>
  lanAddresses(interfaces).map(({ host }) => host)

describe('[D42] addresses for devices', () => {
  test('macOS: Wi-Fi is the local network, a utun an overlay without a provider; guests and peer links are left out', () => {
    const interfaces = {
      lo0: loopback,
      utun3: [v6('fe80::1'), v4('100.92.13.44', NO_MAC), v6('fd7a:115c:a1e0::5', NO_MAC)],
      en0: [v6('fe80::10:1'), v4('192.168.1.20'), v6('fd12:3456::9'), v6('2001:db8::20')],
      awdl0: [v6('fe80::aw:1')],
      bridge100: [v4('192.168.64.1')],
      en7: [v4('169.254.3.4')],
    }
    const addresses = lanAddresses(interfaces)
    expect(addresses).toEqual([
      { host: '192.168.1.20', kind: 'lan' },
      { host: '100.92.13.44', kind: 'overlay' },
      { host: 'fd7a:115c:a1e0::5', kind: 'overlay' },
    ])
    const own = { name: 'studio.local', addresses: ['127.0.0.1', '192.168.1.20'] }
    expect(routesOf(addresses, 8787, own)).toEqual([
      { address: '192.168.1.20:8787', kind: 'lan' },
      { address: '100.92.13.44:8787', kind: 'overlay' },
      { address: '[fd7a:115c:a1e0::5]:8787', kind: 'overlay' },
      { address: 'studio.local:8787', kind: 'hostname' },
    ])
  })

  test('Linux: containers and virtual machines are left out, overlays name their product', () => {
    const interfaces = {
      lo: loopback,
      docker0: [v4('172.17.0.1')],
      'br-1a2b3c4d5e6f': [v4('172.18.0.1')],
      veth12ab34c: [v4('10.200.0.1')],
      virbr0: [v4('192.168.122.1')],
      tailscale0: [v4('100.101.102.103', NO_MAC), v6('fd7a:115c:a1e0::1', NO_MAC)],
      wt0: [v4('100.64.0.9', NO_MAC)],
      ztabcdef12: [v4('10.147.17.3'), v6('fd80:56c2::1')],
      wg0: [v4('10.8.0.2', NO_MAC)],
      enp3s0: [v4('10.0.0.5'), v4('203.0.113.7'), v6('fd00::5')],
      wwan0: [v4('10.44.1.2')],
    }
    expect(lanAddresses(interfaces)).toEqual([
      { host: '10.0.0.5', kind: 'lan' },
      { host: '100.101.102.103', kind: 'overlay', provider: 'tailscale' },
      { host: '100.64.0.9', kind: 'overlay', provider: 'netbird' },
      { host: '10.147.17.3', kind: 'overlay', provider: 'zerotier' },
      { host: '10.8.0.2', kind: 'overlay' },
      { host: 'fd7a:115c:a1e0::1', kind: 'overlay', provider: 'tailscale' },
      { host: 'fd80:56c2::1', kind: 'overlay', provider: 'zerotier' },
    ])
  })

  test('Windows: names with blanks and capitals; the virtual switches are left out', () => {
    const interfaces = {
      'Loopback Pseudo-Interface 1': loopback,
      'Wi-Fi': [v4('192.168.178.34'), v6('fe80::a')],
      Ethernet: [v4('172.31.4.4')],
      Tailscale: [v4('100.70.0.1', NO_MAC)],
      'ZeroTier One [8056c2e21c000001]': [v4('172.25.9.9')],
      'vEthernet (WSL (Hyper-V firewall))': [v4('172.20.48.1')],
      'VMware Network Adapter VMnet8': [v4('192.168.85.1')],
      'VirtualBox Host-Only Network': [v4('192.168.56.1')],
    }
    expect(lanAddresses(interfaces)).toEqual([
      { host: '192.168.178.34', kind: 'lan' },
      { host: '172.31.4.4', kind: 'lan' },
      { host: '100.70.0.1', kind: 'overlay', provider: 'tailscale' },
      { host: '172.25.9.9', kind: 'overlay', provider: 'zerotier' },
    ])
  })

  test('a tunnel of somebody else is not listened on: it has a private address and says no product', () => {
    const companies = { utun4: [v4('10.20.0.7', NO_MAC)], 'wg0-mullvad': [v4('10.66.1.2', NO_MAC)] }
    const unnamed = { 'Ethernet 5': [v4('10.20.0.8', NO_MAC)], tun0: [v4('172.16.9.9', NO_MAC)] }
    expect(hosts({ ...companies, ...unnamed, en0: [v4('10.20.0.9')] })).toEqual(['10.20.0.9'])
  })

  test.each([
    ['10.0.0.1', '9.255.255.255', '11.0.0.0'],
    ['172.16.0.1', '172.15.255.255', '172.32.0.1'],
    ['192.168.0.1', '192.167.0.1', '192.169.0.1'],
    ['100.64.0.1', '100.63.255.255', '100.128.0.1'],
    ['100.127.255.254', '101.64.0.1', '8.8.8.8'],
  ])('%s is private, its neighbours %s and %s are public', (inside, ...outside) => {
    expect(hosts({ eth0: [v4(inside), ...outside.map((address) => v4(address))] })).toEqual([inside])
  })

  test('there is a bound, and the own name is not what falls to it', () => {
    const many = lanAddresses({ eth0: Array.from({ length: 20 }, (_, at) => v4(`10.0.0.${at + 1}`)) })
    expect(many).toHaveLength(MAX_ROUTES)
    const routes = routesOf(many, 80, { name: 'a.local', addresses: ['10.0.0.1'] })
    expect(routes).toHaveLength(MAX_ROUTES)
    expect(routes.at(-1)).toEqual({ address: 'a.local:80', kind: 'hostname' })
  })

  test.each([
    ['vm', ['10.0.0.1']],
    ['vm.example.com', ['10.0.0.1']],
    ['vm.local', ['127.0.1.1']],
    ['vm.local', []],
    ['vm/x.local', ['10.0.0.1']],
  ])('the name %s that resolves to %j is not told', (name, addresses) => {
    const routes = routesOf([{ host: '10.0.0.1', kind: 'lan' }], 8787, { name, addresses })
    expect(routes).toEqual([{ address: '10.0.0.1:8787', kind: 'lan' }])
  })

  test('the user reads where devices find the router, and how to pair one', () => {
    const text = lanText(
      [
        { address: '192.168.1.20:8787', kind: 'lan' },
        { address: '100.92.13.44:8787', kind: 'overlay', provider: 'netbird' },
      ],
      'http://127.0.0.1:9000',
    )
    expect(text).toContain('  192.168.1.20:8787  local network\n')
    expect(text).toContain('  100.92.13.44:8787  overlay network (netbird)\n')
    expect(text).toMatch(/switchyard\.mjs pair --url http:\/\/127\.0\.0\.1:9000\n$/)
  })
})
