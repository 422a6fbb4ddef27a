import { expect, test } from 'vitest'
import { MAX_QR_BYTES, makePairingQr } from '../../../../src/core/gateway/pairing-qr.ts'
import { PairingQr } from '../../../../src/protocol/remote/pairing-qr.ts'
import { utf8Bytes } from '../../../../src/protocol/remote/utf8.ts'

const GATEWAY = '5f1c2a9e7a414c1b9d550b6c1f2a3e44'
const CREDENTIAL = 'c'.repeat(43)
const base = { gatewayId: GATEWAY, credential: CREDENTIAL, hostName: null }
const urlOf = (host: string) => `wss://${host}/g/${GATEWAY}`

test('[D42] the best address comes first and at most four others follow', () => {
  const qr = makePairingQr({
    ...base,
    addresses: ['100.92.13.44:8787', 'a:1', 'b:2', 'c:3', 'd:4', 'e:5'],
    url: `ws://100.92.13.44:8787/g/${GATEWAY}`,
    hostName: 'studio',
  })
  expect(qr).toEqual({
    protocol_version: 1,
    address: '100.92.13.44:8787',
    gateway_id: GATEWAY,
    credential: CREDENTIAL,
    host_name: 'studio',
    alternates: ['a:1', 'b:2', 'c:3', 'd:4'],
    url: `ws://100.92.13.44:8787/g/${GATEWAY}`,
  })
})

test('[D42] what there is not is left out', () => {
  const qr = makePairingQr({
    ...base,
    addresses: ['r.example:443'],
    url: urlOf('r.example'),
    hostName: ' \n ',
  })
  expect(qr).toEqual({
    protocol_version: 1,
    address: 'r.example:443',
    gateway_id: GATEWAY,
    credential: CREDENTIAL,
    url: urlOf('r.example'),
  })
})

test.each([
  ['a long name is cut', 'n'.repeat(60), 'n'.repeat(24)],
  ['no character is cut in two, however characters are counted', '🚂'.repeat(30), '🚂'.repeat(12)],
  ['control characters are dropped', 'stu\u0000dio\n', 'studio'],
])('[D42] %s', (_what, hostName, shown) => {
  expect(makePairingQr({ ...base, addresses: ['h:1'], url: urlOf('h'), hostName }).host_name).toBe(shown)
})

/** Longer than any DNS name, since hosts of routes come from configuration. */
const HOSTS = ['h', 'h'.repeat(63), 'h'.repeat(150), 'h'.repeat(200), 'h'.repeat(253)]
const NAMES = [null, 'studio', '"'.repeat(24), '駅'.repeat(24), '🚂'.repeat(24)]
const OTHERS = [[], ['[2001:db8:aaaa:bbbb:cccc:dddd:eeee:ffff]:65535'], ['o'.repeat(259)]]

test.each(HOSTS.map((host) => [host.length, host] as const))(
  '[D42] with a host of %i characters it is one line of at most 700 bytes that a device can read',
  (_length, host) => {
    for (const hostName of NAMES) {
      for (const other of OTHERS) {
        for (const times of [1, 2, 4, 9]) {
          const others = Array<string[]>(times).fill(other).flat()
          const addresses: [string, ...string[]] = [`${host}:65535`, ...others]
          const qr = makePairingQr({ ...base, addresses, url: urlOf(`${host}:65535`), hostName })
          const json = JSON.stringify(qr)
          expect(utf8Bytes(json)).toBeLessThanOrEqual(MAX_QR_BYTES)
          expect(json).not.toMatch(/[\r\n]/)
          expect(PairingQr.parse(JSON.parse(json))).toEqual(qr)
          expect(qr.address).toBe(`${host}:65535`)
          // What a deployment cannot be reached without stays as long as there is room for it at all.
          if (host.length <= 200) expect(qr.url).toBe(urlOf(`${host}:65535`))
        }
      }
    }
  },
)

test('[D42] the worst alternates go first, then the name', () => {
  const long = (letter: string) => `${letter.repeat(100)}:8787`
  const qr = makePairingQr({
    ...base,
    addresses: [long('a'), long('b'), long('c'), long('d')],
    url: `ws://${long('a')}/g/${GATEWAY}`,
    hostName: 'studio',
  })
  expect(qr).toMatchObject({ host_name: 'studio', alternates: [long('b'), long('c')] })
  const tight = makePairingQr({
    ...base,
    addresses: [`${'a'.repeat(220)}:8787`, long('b')],
    url: urlOf(`${'a'.repeat(220)}:8787`),
    hostName: '駅'.repeat(24),
  })
  expect(Object.keys(tight)).toEqual(['protocol_version', 'address', 'gateway_id', 'credential', 'url'])
})
