import { encode } from 'uqr'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { timeOfDay } from '../../../src/cli/clock.ts'
import { saveCredentials } from '../../../src/cli/credentials.ts'
import { isLoopback } from '../../../src/cli/devices/pairing-view.ts'
import { runCli } from '../../../src/cli/program.ts'
import { configHome } from '../../support/node/config-home.ts'
import { drawnModules } from '../../support/node/drawn-qr.ts'
import { type ScriptedIo, scriptedIo } from '../../support/node/scripted-io.ts'
import {
  hangUp,
  json,
  refusal,
  type ScriptedRouter,
  startScriptedRouter,
} from '../../support/node/scripted-router.ts'
import { type TestClock, testClock } from '../../support/node/test-clock.ts'

const PAIRING = '/api/v1/pairing'
const DEVICES = '/api/v1/devices'
const at = '2026-03-01T12:00:00.000Z'
const qr = {
  protocol_version: 1,
  address: '192.168.1.20:8787',
  gateway_id: '0'.repeat(32),
  credential: 'c'.repeat(43),
  host_name: 'studio',
  url: `ws://192.168.1.20:8787/g/${'0'.repeat(32)}`,
}
const opened = (address = qr.address) => ({
  code: '4821-9034',
  credential: qr.credential,
  gateway_id: qr.gateway_id,
  qr: { ...qr, address },
  expires_at: at,
})
const device = (id: string, name = 'a phone') => ({
  device_id: id.repeat(16),
  device_name: name,
  device_kind: 'phone',
  platform: 'ios',
  paired_at: at,
  online: true,
})
const listed = (...devices: object[]) => json({ devices })

let router: ScriptedRouter
let io: ScriptedIo
let clock: TestClock
beforeEach(async () => {
  router = await startScriptedRouter()
  io = scriptedIo()
  clock = testClock()
  configHome()
  vi.stubEnv('SWITCHYARD_URL', router.url)
  const token = { value: 't0', expires_at: '2099-01-01T00:00:00.000Z' }
  saveCredentials(router.url, { user_id: 'u1', api_key: 'sk-1', token })
  router.always('GET', '/api/v1/auth/me', json({ user_id: 'u1' }))
  router.always('POST', PAIRING, json(opened(), 201))
})
afterEach(async () => {
  expect(router.unexpected).toEqual([])
  await router.close()
})
const cli = (...argv: string[]) => runCli(argv, { makeIo: () => io, clock })
const payloadIn = (text: string) => /^payload {2}(.*)$/m.exec(text)?.[1] ?? ''

describe('what is shown', () => {
  test('the digits, a QR code of the payload, the payload on one line, and until when they hold', async () => {
    expect(await cli('pair')).toBe(0)
    const payload = payloadIn(io.stdout)
    expect(JSON.parse(payload)).toEqual(qr)
    const code = encode(payload, { border: 2, ecc: 'L' })
    const drawn = drawnModules(/\n\n([\s\S]*)\n\npayload/.exec(io.stdout)?.[1] ?? '')
    expect(drawn.slice(0, code.size)).toEqual(code.data)
    expect(io.stdout.split('\n')[0]).toBe('code     4821-9034')
    expect(io.stdout).toContain(`\nuntil    ${timeOfDay(clock.nowMs() + 120_000)}, for one device\n`)
    expect(io.stderr).toBe('')
  })

  test('without a terminal it ends at once, and asks for no devices', async () => {
    expect(await cli('pair')).toBe(0)
    expect(router.count('GET', DEVICES)).toBe(0)
    expect(clock.pauses).toEqual([])
  })

  test('--no-qr leaves the code out, and nothing else', async () => {
    expect(await cli('pair', '--no-qr')).toBe(0)
    expect(io.stdout).toBe(
      `code     4821-9034\npayload  ${JSON.stringify(qr)}\nuntil    ${timeOfDay(clock.nowMs() + 120_000)}, for one device\n`,
    )
  })

  test('--json is the answer of the router', async () => {
    io = scriptedIo({ isTty: true })
    expect(await cli('pair', '--json')).toBe(0)
    expect(JSON.parse(io.stdout)).toEqual(opened())
    expect(clock.pauses).toEqual([])
  })

  test.each([
    [60, '(no QR code: it needs a terminal of 61 columns, and this one has 60)'],
    [61, '▀'],
  ])('on a terminal of %d columns a code that would be wrapped is not drawn', async (columns, shown) => {
    io = scriptedIo({ outIsTty: true, columns })
    expect(await cli('pair')).toBe(0)
    expect(io.stdout).toContain(shown)
    expect(io.stdout.includes('▀')).toBe(shown === '▀')
  })

  test('colours of its own on a terminal only, and not when they are off', async () => {
    io = scriptedIo({ outIsTty: true })
    expect(await cli('pair')).toBe(0)
    expect(io.stdout).toContain('\u001b[97;40m')
    io.stdout = ''
    expect(await cli('pair', '--no-color')).toBe(0)
    expect(io.stdout).not.toContain('\u001b')
  })

  test('a name of the host in which something hides is the same JSON with escapes', async () => {
    const hidden = { ...qr, host_name: 'stu\u202edio\u{e0041}' }
    router.script('POST', PAIRING, json({ ...opened(), qr: hidden }, 201))
    expect(await cli('pair', '--no-qr')).toBe(0)
    const payload = payloadIn(io.stdout)
    expect(payload).toContain('stu\\u202edio\\udb40\\udc41')
    expect(JSON.parse(payload)).toEqual(hidden)
  })

  test('a router that refuses is a failure, and nothing is shown', async () => {
    router.script('POST', PAIRING, refusal(500, 'storage_error'))
    expect(await cli('pair')).toBe(1)
    expect(io.stdout).toBe('')
    expect(io.stderr).toContain('storage_error')
  })
})

test('[D42] an account that is not the first says which apps can use its code', async () => {
  router.script('POST', PAIRING, json({ ...opened(), only_by_url: true }, 201))
  expect(await cli('pair')).toBe(0)
  expect(io.stderr).toContain('not the first account')
  expect(io.stderr).toContain(opened().qr.url ?? '')
})

describe('[D42] a router that only its own machine reaches', () => {
  test('has no QR code, says why and what to do, and shows the digits for a client on this machine', async () => {
    router.script('POST', PAIRING, json(opened('127.0.0.1:8787'), 201))
    expect(await cli('pair')).toBe(0)
    expect(io.stdout).not.toContain('▀')
    expect(io.stdout).toContain('4821-9034')
    expect(io.stderr).toContain('no phone can reach 127.0.0.1:8787')
    expect(io.stderr).toContain('`npm start -- --lan`')
  })

  test('says so beside JSON, too', async () => {
    router.script('POST', PAIRING, json(opened('localhost:8787'), 201))
    expect(await cli('pair', '--json')).toBe(0)
    expect(JSON.parse(io.stdout)).toMatchObject({ code: '4821-9034' })
    expect(io.stderr).toContain('no phone can reach localhost:8787')
  })

  test.each([
    ['127.0.0.1:8787', true],
    ['127.8.0.1:80', true],
    ['localhost:8787', true],
    ['LOCALHOST:1', true],
    ['a.localhost:1', true],
    ['[::1]:8787', true],
    ['[::ffff:127.0.0.1]:8787', true],
    ['192.168.1.20:8787', false],
    ['100.64.0.1:8787', false],
    ['[fd00::1]:8787', false],
    ['router.example:443', false],
    ['notlocalhost:443', false],
    ['127.0.0.1.example:443', false],
  ])('%s: %s', (address, expected) => {
    expect(isLoopback(address)).toBe(expected)
  })
})

describe('waiting for the device', () => {
  beforeEach(() => {
    io = scriptedIo({ isTty: true })
  })

  test('at a terminal it looks every two seconds and says which device has paired', async () => {
    const before = listed(device('a'))
    router.script('GET', DEVICES, before, before, before, listed(device('b', 'La\u202ers'), device('a')))
    expect(await cli('pair')).toBe(0)
    expect(clock.pauses).toEqual([2_000, 2_000])
    expect(io.stderr).toContain(`✓ paired “La\\u{202e}rs” (phone, ios), ${'b'.repeat(16)}\n`)
  })

  test('a device that was there before, or whose pairing has ended meanwhile, is none', async () => {
    const ended = { ...device('c'), revoked_reason: 'token_replayed' }
    router.script('GET', DEVICES, listed(device('a')))
    router.always('GET', DEVICES, listed(device('a'), ended))
    expect(await cli('pair')).toBe(1)
  })

  test('[U31] when the code has run out without a device, it looks once more and fails', async () => {
    router.always('GET', DEVICES, listed())
    expect(await cli('pair')).toBe(1)
    expect(clock.pauses.reduce((sum, ms) => sum + ms)).toBe(120_000)
    expect(router.count('GET', DEVICES)).toBe(62)
    expect(io.stderr).toContain('the code holds no longer')
  })

  test('a router that is gone for a while is waited for', async () => {
    router.script('GET', DEVICES, listed(), hangUp, refusal(503, 'busy'), listed(device('a')))
    expect(await cli('pair')).toBe(0)
    expect(io.stderr).toContain('✓ paired')
  })

  test('a router that is gone at the end cannot say whether a device has paired', async () => {
    router.script('GET', DEVICES, listed())
    router.always('GET', DEVICES, hangUp)
    expect(await cli('pair')).toBe(3)
    expect(io.stderr).not.toContain('no device has paired')
  })

  test('a router that does not know us any more is not asked again', async () => {
    router.script('GET', DEVICES, listed(), refusal(401, 'token_revoked'))
    expect(await cli('pair')).toBe(3)
    expect(clock.pauses).toEqual([])
  })

  test('Ctrl-C stops waiting', async () => {
    clock = testClock((number) => {
      if (number === 3) process.emit('SIGINT')
    })
    router.always('GET', DEVICES, listed())
    expect(await cli('pair')).toBe(130)
    expect(clock.pauses).toHaveLength(3)
  })

  test('--wait waits without a terminal, and with --json prints the device after the answer', async () => {
    io = scriptedIo()
    router.script('GET', DEVICES, listed(), listed(device('a')))
    expect(await cli('pair', '--wait', '--json')).toBe(0)
    expect(io.stdout).toBe(`${JSON.stringify(opened(), null, 2)}\n${JSON.stringify(device('a'), null, 2)}\n`)
  })
})
