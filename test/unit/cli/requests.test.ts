import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { timeOfDay } from '../../../src/cli/clock.ts'
import { saveCredentials } from '../../../src/cli/credentials.ts'
import { runCli } from '../../../src/cli/program.ts'
import { configHome } from '../../support/node/config-home.ts'
import { type ScriptedIo, scriptedIo } from '../../support/node/scripted-io.ts'
import {
  hangUp,
  json,
  refusal,
  type ScriptedRouter,
  startScriptedRouter,
} from '../../support/node/scripted-router.ts'
import { type TestClock, testClock } from '../../support/node/test-clock.ts'

const REQUESTS = '/api/v1/connect-requests'
const LISTEN = `${REQUESTS}/listen`
const DEVICES = '/api/v1/devices'
const ONE = '5be1c4a07d2e9f63'
const TWO = '6ce1c4a07d2e9f63'
const at = '2026-03-01T12:02:00.000Z'
const request = (id: string, name: string, platform = 'ios') => ({
  request_id: id,
  device_name: name,
  device_kind: 'phone',
  platform,
  expires_at: at,
})
const one = request(ONE, 'Lars’s iPhone')
const two = request(TWO, 'some\u001bbody', 'unknown')
const lineOfOne = `${ONE}  phone, ios  Lars’s iPhone  waits until ${timeOfDay(Date.parse(at))}\n`
const lineOfTwo = `${TWO}  phone  some\\u{1b}body  waits until ${timeOfDay(Date.parse(at))}\n`
const accept = (id: string) => `${REQUESTS}/${id}/accept`
const deny = (id: string) => `${REQUESTS}/${id}/deny`
const waiting = (...requests: object[]) => json({ requests })
const code = (digits: string) => json({ code: digits, expires_at: at })
const paired = (name: string) =>
  json({
    devices: [
      { device_id: 'a'.repeat(16), device_name: name, device_kind: 'phone', paired_at: at, online: true },
    ],
  })

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
  router.always('POST', LISTEN, json({ expires_at: at }))
  router.always('GET', DEVICES, json({ devices: [] }))
})
afterEach(async () => {
  expect(router.unexpected).toEqual([])
  await router.close()
})
const cli = (...argv: string[]) => runCli(argv, { makeIo: () => io, clock })

describe('list, accept and deny', () => {
  beforeEach(() => router.always('GET', REQUESTS, waiting(one, two)))

  test.each([[['requests']], [['requests', 'list']]])(
    '%j shows who waits, and opens nothing',
    async (argv) => {
      expect(await cli(...argv)).toBe(0)
      expect(io.stdout).toBe(lineOfOne + lineOfTwo)
      expect(router.count('POST', LISTEN)).toBe(0)
    },
  )

  test('--json is the list; an empty one says how devices can ask', async () => {
    expect(await cli('requests', '--json')).toBe(0)
    expect(JSON.parse(io.stdout)).toEqual([one, two])
    router.always('GET', REQUESTS, waiting())
    io.stdout = ''
    expect(await cli('requests')).toBe(0)
    expect(io.stdout).toBe('')
    expect(io.stderr).toContain('`switchyard requests --listen`')
  })

  test('accept prints the code alone, and beside it where to type it', async () => {
    router.script('POST', accept(ONE), code('4821-9034'))
    expect(await cli('requests', 'accept', '5be1')).toBe(0)
    expect(io.stdout).toBe('4821-9034\n')
    expect(io.stderr).toBe(`type this code on “Lars’s iPhone” until ${timeOfDay(clock.nowMs() + 120_000)}:\n`)
  })

  test('deny says whom it denied; an unknown id is a failure', async () => {
    router.script('POST', deny(TWO), json({ denied: true }))
    expect(await cli('requests', 'deny', TWO)).toBe(0)
    expect(io.stderr).toBe(`denied ${TWO}, “some\\u{1b}body”\n`)
    expect(await cli('requests', 'deny', 'ffff')).toBe(1)
    expect(await cli('requests', 'accept', ONE.slice(0, 3))).toBe(2)
  })
})

describe('[D41] --listen without a terminal', () => {
  test('opens the window and prints each request once, until it is over', async () => {
    router.script('GET', REQUESTS, waiting(), waiting(one), hangUp, waiting(one, two))
    router.always('GET', REQUESTS, waiting(two))
    expect(await cli('requests', '--listen')).toBe(0)
    expect(io.stdout).toBe(lineOfOne + lineOfTwo)
    expect(router.count('POST', LISTEN)).toBe(1)
    expect(clock.pauses.reduce((sum, ms) => sum + ms)).toBe(600_000)
    expect(new Set(clock.pauses)).toEqual(new Set([2_000]))
  })

  test('--json prints JSON lines, at a terminal as well, and asks nothing', async () => {
    io = scriptedIo({ isTty: true })
    router.always('GET', REQUESTS, waiting(one, two))
    expect(await cli('requests', '--listen', '--json')).toBe(0)
    expect(io.stdout).toBe(`${JSON.stringify(one)}\n${JSON.stringify(two)}\n`)
    expect(io.questions).toEqual([])
  })

  test('Ctrl-C ends it', async () => {
    clock = testClock((number) => {
      if (number === 2) process.emit('SIGINT')
    })
    router.always('GET', REQUESTS, waiting())
    expect(await cli('requests', '--listen')).toBe(130)
    expect(clock.pauses).toHaveLength(2)
  })

  test('a router that is gone for a while is waited for; one that is gone at the end is a failure', async () => {
    router.always('GET', REQUESTS, hangUp)
    expect(await cli('requests', '--listen')).toBe(3)
    expect(clock.pauses).toHaveLength(300)
    expect(io.stderr).toContain('no answer from')
  })

  test('a router that does not let devices ask ends it at once', async () => {
    router.script('POST', LISTEN, refusal(500, 'storage_error'))
    router.always('POST', LISTEN, refusal(500, 'storage_error'))
    expect(await cli('requests', '--listen')).toBe(1)
    expect(clock.pauses).toEqual([])
  })
})

describe('[D41] --listen at a terminal', () => {
  beforeEach(() => {
    io = scriptedIo({ isTty: true })
  })

  /** The rest of the window has nothing to show. */
  const stopInAWhile = () => {
    clock = testClock((number) => {
      if (number === 12) process.emit('SIGINT')
    })
  }

  test('asks about each request, denies one, prints the code for another, and tells who has paired', async () => {
    stopInAWhile()
    router.always('GET', REQUESTS, waiting(two, one))
    router.script('POST', deny(TWO), json({ denied: true }))
    router.script('POST', accept(ONE), (response, asked) => {
      router.always('GET', DEVICES, paired('Lars’s iPhone'))
      return code('4821-9034')(response, asked)
    })
    io.confirmations.push(false, true)
    expect(await cli('requests', '--listen')).toBe(130)
    expect(io.questions).toEqual([
      '“some\\u{1b}body” (phone) asks to be paired. Let it?',
      '“Lars’s iPhone” (phone, ios) asks to be paired. Let it?',
    ])
    expect(router.count('POST', deny(TWO))).toBe(1)
    expect(io.stdout).toBe('4821-9034\n')
    expect(io.stderr).toMatch(/type this code on “Lars’s iPhone” until [\d:]{8}:\n✓ paired “Lars’s iPhone”/)
    expect(io.stderr.match(/✓ paired/g)).toHaveLength(1)
  })

  test('says that another acceptance ends the code that is out', async () => {
    stopInAWhile()
    router.always('GET', REQUESTS, waiting(one, two))
    router.script('POST', accept(ONE), code('1111-1111'))
    router.script('POST', accept(TWO), code('2222-2222'))
    io.confirmations.push(true, true)
    expect(await cli('requests', '--listen')).toBe(130)
    expect(io.questions[1]).toContain('The code for “Lars’s iPhone” stops working then.')
    expect(io.stdout).toBe('1111-1111\n2222-2222\n')
  })

  test('takes a question away when its request has gone, and goes on', async () => {
    stopInAWhile()
    router.script('GET', REQUESTS, waiting(one), waiting(one), waiting())
    router.always('GET', REQUESTS, waiting())
    let shown = 0
    io.confirm = (_question, signal) =>
      new Promise((resolve) => {
        shown++
        signal?.addEventListener('abort', () => resolve({ kind: 'interrupted' }))
      })
    expect(await cli('requests', '--listen')).toBe(130)
    expect(shown).toBe(1)
    expect(io.stderr).toContain('the request of “Lars’s iPhone” has gone\n')
  })

  test('an answer that came too late for the router is no failure', async () => {
    stopInAWhile()
    router.always('GET', REQUESTS, waiting(one, two))
    router.script('POST', accept(ONE), refusal(404, 'invalid_request'))
    router.script('POST', deny(TWO), refusal(404, 'invalid_request'))
    io.confirmations.push(true, false)
    expect(await cli('requests', '--listen')).toBe(130)
    expect(io.stdout).toBe('')
    expect(io.stderr.match(/has gone/g)).toHaveLength(2)
  })

  test('Ctrl-C at a question ends it, and answers nothing', async () => {
    router.always('GET', REQUESTS, waiting(one))
    expect(await cli('requests', '--listen')).toBe(130)
    expect(io.questions).toHaveLength(1)
    expect(router.count('POST', accept(ONE)) + router.count('POST', deny(ONE))).toBe(0)
  })

  test('after the window it still tells who pairs with the last code', async () => {
    const WINDOW_LOOKS = 301
    router.script('GET', REQUESTS, ...Array.from({ length: WINDOW_LOOKS - 1 }, () => waiting()))
    router.always('GET', REQUESTS, waiting(one))
    router.script('POST', accept(ONE), code('4821-9034'))
    router.script('GET', DEVICES, json({ devices: [] }), json({ devices: [] }), paired('Lars’s iPhone'))
    io.confirmations.push(true)
    expect(await cli('requests', '--listen')).toBe(0)
    expect(io.stderr).toContain('✓ paired “Lars’s iPhone”')
  })
})
