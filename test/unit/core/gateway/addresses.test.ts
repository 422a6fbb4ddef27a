import { describe, expect, test } from 'vitest'
import {
  type AddressKind,
  addressKind,
  networkOf,
  plainAddress,
} from '../../../../src/core/gateway/addresses.ts'

const KINDS: Record<AddressKind, string[]> = {
  loopback: ['127.0.0.1', '127.255.255.254', '::1', '[::1]', '0:0:0:0:0:0:0:1', '::ffff:127.0.0.1'],
  private: [
    '10.0.0.0',
    '10.255.255.255',
    '172.16.0.1',
    '172.31.255.255',
    '192.168.1.20',
    '::ffff:192.168.1.20',
    '::ffff:c0a8:114',
    '0:0:0:0:0:ffff:10.1.2.3',
  ],
  overlay: ['100.64.0.0', '100.92.13.44', '100.127.255.255', 'fc00::1', 'fd7a:115c:a1e0::53', 'FDFF::'],
  link_local: ['169.254.1.1', 'fe80::1', 'fe80::1%eth0', '[fe80::1%25en0]', 'febf:ffff::1'],
  public: [
    '8.8.8.8',
    '9.255.255.255',
    '11.0.0.0',
    '100.63.255.255',
    '100.128.0.0',
    '172.15.255.255',
    '172.32.0.0',
    '192.167.255.255',
    '192.169.0.0',
    '169.253.0.1',
    '126.255.255.255',
    '128.0.0.1',
    '0.0.0.0',
    '255.255.255.255',
    '2001:db8::1',
    '2606:4700:4700::1111',
    'fbff::1',
    'fe00::1',
    'fec0::1',
    '::',
    '::2',
    '::ffff:8.8.8.8',
    // Only the mapped form is IPv4: this one is an IPv6 address of a global range.
    '::127.0.0.1',
    '1::127.0.0.1',
    '64:ff9b::10.0.0.1',
  ],
}

describe('the kind of a network address', () => {
  for (const [kind, addresses] of Object.entries(KINDS)) {
    test.each(addresses)(`[D42] %s is ${kind}`, (address) => {
      expect(addressKind(address)).toBe(kind)
    })
  }

  test.each([
    '',
    'localhost',
    'unknown',
    '10.0.0',
    '10.0.0.0.1',
    '10.0.0.256',
    '010.0.0.1',
    '10.0.0.1 ',
    '10.0.0.1:8787',
    '0x7f.0.0.1',
    '127.1',
    ':',
    ':::',
    '1:2:3:4:5:6:7',
    '1:2:3:4:5:6:7:8:9',
    '1::2::3',
    '1:2:3:4:5:6:7::8:9',
    '12345::1',
    'g::1',
    '10.0.0.1::',
    '::1:10.0.0.1:1',
    '::ffff:10.0.0.256',
    '[::1',
    '[127.0.0.1]',
    '127.0.0.1, 8.8.8.8',
  ])('[D42] %j is no address', (text) => {
    expect(addressKind(text)).toBeNull()
  })
})

describe('one spelling per address', () => {
  test.each([
    ['192.168.1.20', '192.168.1.20'],
    ['::ffff:192.168.1.20', '192.168.1.20'],
    ['::FFFF:c0a8:0114', '192.168.1.20'],
    ['2001:DB8::0001', '2001:db8:0:0:0:0:0:1'],
    ['[2001:0db8:0:0::1]', '2001:db8:0:0:0:0:0:1'],
    ['fe80::1%eth0', 'fe80:0:0:0:0:0:0:1'],
    ['::', '0:0:0:0:0:0:0:0'],
    ['unknown', 'unknown'],
  ])('[D41] %s is counted as %s', (address, plain) => {
    expect(plainAddress(address)).toBe(plain)
  })
})

describe('what limits per address count by', () => {
  test.each([
    ['198.51.100.7', '198.51.100.7'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
    ['2001:DB8:1:2::9', '2001:db8:1:2::/64'],
    ['fd00::1', 'fd00:0:0:0:0:0:0:1'],
    ['::ffff:8.8.8.8', '8.8.8.8'],
    ['::1', '0:0:0:0:0:0:0:1'],
    ['unknown', 'unknown'],
  ])('[D41] %s counts as %s: of public IPv6 everybody has a whole network', (address, network) => {
    expect(networkOf(address)).toBe(network)
  })
})
