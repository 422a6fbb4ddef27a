import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { saveCredentials } from '../../../src/cli/credentials.ts'
import { requireByPrefix, shortestPrefix } from '../../../src/cli/devices/find-by-prefix.ts'
import { runCli } from '../../../src/cli/program.ts'
import { configHome } from '../../support/node/config-home.ts'
import { type ScriptedIo, scriptedIo } from '../../support/node/scripted-io.ts'
import {
  json,
  refusal,
  type ScriptedRouter,
  startScriptedRouter,
} from '../../support/node/scripted-router.ts'

const DEVICES = '/api/v1/devices'
const PHONE = '3f9c00aa11bb22cc'
const LAPTOP = '3f9d00aa11bb22cc'
const COPIED = 'a000000000000001'
const at = '2026-03-01T12:00:00.000Z'

const phone = {
  device_id: PHONE,
  device_name: 'Lars’s iPhone',
  device_kind: 'phone',
  platform: 'ios',
  paired_at: at,
  last_seen_at: '2026-03-02T08:30:00.000Z',
  online: false,
  expires_at: '2026-03-31T12:00:00.000Z',
}
const laptop = {
  device_id: LAPTOP,
  device_name: 'lap\u001b]0;top',
  device_kind: 'cli',
  paired_at: at,
  online: true,
}
const copied = {
  ...phone,
  device_id: COPIED,
  device_name: 'old one',
  last_seen_at: undefined,
  expires_at: undefined,
  revoked_reason: 'token_replayed',
}

let router: ScriptedRouter
let io: ScriptedIo
beforeEach(async () => {
  router = await startScriptedRouter()
  io = scriptedIo()
  configHome()
  vi.stubEnv('SWITCHYARD_URL', router.url)
  const token = { value: 't0', expires_at: '2099-01-01T00:00:00.000Z' }
  saveCredentials(router.url, { user_id: 'u1', api_key: 'sk-1', token })
  router.always('GET', '/api/v1/auth/me', json({ user_id: 'u1' }))
  router.always('GET', DEVICES, json({ devices: [phone, laptop, copied] }))
})
afterEach(async () => {
  expect(router.unexpected).toEqual([])
  await router.close()
})
const cli = (...argv: string[]) => runCli(argv, { makeIo: () => io })

describe('devices list', () => {
  test.each([[['devices']], [['devices', 'list']]])(
    '%j has one line for each, names of strangers made harmless, and a warning where a token was copied',
    async (argv) => {
      expect(await cli(...argv)).toBe(0)
      expect(io.stdout.split('\n')).toEqual([
        `${PHONE}  phone, ios  Lars’s iPhone  paired 2026-03-01 12:00  seen 2026-03-02 08:30  expires 2026-03-31 12:00`,
        `${LAPTOP}  cli  lap\\u{1b}]0;top  paired 2026-03-01 12:00  online`,
        `${COPIED}  phone, ios  old one  paired 2026-03-01 12:00  never seen`,
        expect.stringMatching(
          `^  warning: .*copied.*\`switchyard pair\`; \`switchyard devices revoke ${COPIED}\``,
        ),
        '',
      ])
      expect(io.stderr).toBe('')
    },
  )

  test('--json is the list as it is', async () => {
    expect(await cli('devices', '--json')).toBe(0)
    expect(JSON.parse(io.stdout)).toEqual(JSON.parse(JSON.stringify([phone, laptop, copied])))
  })

  test('without any it says how to pair one', async () => {
    router.script('GET', DEVICES, json({ devices: [] }))
    expect(await cli('devices')).toBe(0)
    expect(io.stdout).toBe('')
    expect(io.stderr).toContain('`switchyard pair`')
  })
})

describe('devices rename', () => {
  test('takes the words as one name and the beginning of an id, and tells the name as it was stored', async () => {
    const path = `${DEVICES}/${PHONE}`
    router.script('PUT', path, json({ device: { ...phone, device_name: 'kitchen phone' } }))
    expect(await cli('devices', 'rename', '3F9C', ' kitchen', 'phone')).toBe(0)
    expect(router.requests.at(-1)?.body).toEqual({ name: ' kitchen phone' })
    expect(io.stderr).toBe(`${PHONE} is “kitchen phone” now\n`)
  })

  test.each([['   '], ['x'.repeat(257)]])('refuses %j before anything is asked', async (name) => {
    expect(await cli('devices', 'rename', PHONE, name)).toBe(2)
    expect(router.requests).toEqual([])
  })
})

describe('devices revoke', () => {
  test('asks first, and without a terminal wants --yes', async () => {
    expect(await cli('devices', 'revoke', PHONE)).toBe(2)
    io = scriptedIo({ isTty: true })
    io.confirmations.push(false)
    expect(await cli('devices', 'revoke', PHONE)).toBe(1)
    expect(io.questions).toEqual([
      'Revoke “Lars’s iPhone”? It is cut off at once and has to be paired again.',
    ])
    expect(router.count('DELETE', `${DEVICES}/${PHONE}`)).toBe(0)
  })

  test('[U33] takes one whose pairing was ended off the list', async () => {
    io = scriptedIo({ isTty: true })
    io.confirmations.push(true)
    router.script('DELETE', `${DEVICES}/${COPIED}`, json({ revoked: true }))
    expect(await cli('devices', 'revoke', 'a000')).toBe(0)
    expect(io.questions).toEqual(['Take “old one”, whose pairing was ended, off the list?'])
    expect(io.stderr).toBe(`revoked ${COPIED}, “old one”\n`)
  })

  test('tells what the router says', async () => {
    router.script('DELETE', `${DEVICES}/${PHONE}`, refusal(404, 'invalid_request'))
    expect(await cli('devices', 'revoke', PHONE, '--yes')).toBe(1)
    expect(io.stderr).toContain('invalid_request')
  })

  test.each([
    ['3f9', 2, 'at least 4 characters'],
    ['3f9x', 1, 'there is no device "3f9x"'],
    ['3\u001bf9x', 1, 'there is no device "3\\u{1b}f9x"'],
  ])('%j means no device', async (typed, exitCode, message) => {
    expect(await cli('devices', 'revoke', typed, '--yes')).toBe(exitCode)
    expect(io.stderr).toContain(message)
  })
})

describe('the beginning of an id', () => {
  const ids = ['aaaa1111', 'aaaa1122', 'bbbb']
  const meant = (typed: string) => requireByPrefix(typed, ids, 'device', (id) => id)

  test('means the one that it begins, and an id in full means itself', () => {
    expect([meant('aaaa112'), meant('BBBB'), meant('aaaa1111')]).toEqual(['aaaa1122', 'bbbb', 'aaaa1111'])
  })

  test('of several is refused, and they are named', () => {
    expect(() => meant('aaaa')).toThrow('aaaa1111\n  aaaa1122')
  })

  test('as it is shown is long enough to be meant', () => {
    for (const id of ids) expect(meant(shortestPrefix(id, ids))).toBe(id)
    expect(shortestPrefix('bbbb', ids)).toBe('bbbb')
    expect(shortestPrefix('aaaa1111', ['aaaa1111', 'bbbb0000'])).toBe('aaaa')
    expect(shortestPrefix('aaaa1111', ids)).toBe('aaaa111')
  })
})
