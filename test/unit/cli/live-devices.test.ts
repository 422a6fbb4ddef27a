import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { runInteractive } from '../../../src/cli/interactive.ts'
import { SwitchyardClient } from '../../../src/client/client.ts'
import { configHome } from '../../support/node/config-home.ts'
import { smallPolicy } from '../../support/node/run-request.ts'
import { type ScriptedIo, scriptedIo } from '../../support/node/scripted-io.ts'
import {
  hangUp,
  json,
  refusal,
  type ScriptedRouter,
  startScriptedRouter,
  stream,
} from '../../support/node/scripted-router.ts'
import { completed, paths, sessionSummary } from '../../support/node/scripted-router-turns.ts'
import { type TestClock, testClock } from '../../support/node/test-clock.ts'

const REQUESTS = '/api/v1/connect-requests'
const LISTEN = `${REQUESTS}/listen`
const DEVICES = '/api/v1/devices'
const PAIRING = '/api/v1/pairing'
const ONE = '5be1c4a07d2e9f63'
const TWO = '5be2c4a07d2e9f63'
const at = '2026-03-01T12:02:00.000Z'
const request = (id: string, name: string) => ({
  request_id: id,
  device_name: name,
  device_kind: 'phone',
  platform: 'ios',
  expires_at: at,
})
const waiting = (...requests: object[]) => json({ requests })
const devices = (...names: string[]) =>
  json({
    devices: names.map((name, i) => ({
      device_id: String(i).repeat(16),
      device_name: name,
      device_kind: 'phone',
      paired_at: at,
      online: true,
    })),
  })
const qr = {
  protocol_version: 1,
  address: '192.168.1.20:8787',
  gateway_id: '0'.repeat(32),
  credential: 'c'.repeat(43),
}
const opened = {
  code: '4821-9034',
  credential: qr.credential,
  gateway_id: qr.gateway_id,
  qr,
  expires_at: at,
}

let router: ScriptedRouter
let io: ScriptedIo
let clock: TestClock
beforeEach(async () => {
  router = await startScriptedRouter()
  io = scriptedIo({ isTty: true })
  clock = testClock()
  router.always('POST', LISTEN, json({ expires_at: at }))
  router.always('GET', DEVICES, devices())
  router.always('POST', PAIRING, json(opened, 201))
})
afterEach(async () => {
  expect(router.unexpected).toEqual([])
  await router.close()
})

/** A line, and what is on the screen when it is typed; then it is typed at once. */
type Step = [line: string, when?: RegExp]

/** A conversation in which each line is typed as soon as its moment has come. */
async function talk(...steps: Step[]): Promise<number> {
  const { cwd } = configHome()
  let look: () => void = () => undefined
  for (const way of ['err', 'above'] as const) {
    const write = io[way]
    io[way] = (text) => {
      write(text)
      look()
    }
  }
  io.readLine = () =>
    new Promise((resolve) => {
      const [text, when = /^/] = steps.shift() ?? ['/quit']
      look = () => {
        if (!when.test(io.stderr)) return
        look = () => undefined
        resolve({ kind: 'line', text })
      }
      look()
    })
  const client = new SwitchyardClient({ baseUrl: router.url, token: 'tok' })
  return runInteractive({ client, cwd, policy: smallPolicy(), io, clock })
}

/** A few turns of everything that goes on by itself. */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve))
}

describe('[D41] requests in the interactive session', () => {
  test('are shown once above the prompt, answered by the beginning of an id, and the pairing is told', async () => {
    router.script('GET', REQUESTS, waiting(), waiting(request(ONE, 'a\u001bb')))
    router.always('GET', REQUESTS, waiting(request(ONE, 'a\u001bb'), request(TWO, 'two')))
    router.script('POST', `${REQUESTS}/${TWO}/deny`, json({ denied: true }))
    router.script('POST', `${REQUESTS}/${ONE}/accept`, (response, asked) => {
      router.always('GET', DEVICES, devices('a\u001bb'))
      return json({ code: '4821-9034', expires_at: at })(response, asked)
    })
    const code = await talk(
      ['/requests'],
      ['/deny 5be2', /“two”.*\/deny/],
      ['/accept 5BE1', /denied “two”/],
      ['/quit', /✓ paired/],
    )
    expect(code).toBe(0)
    expect(io.stderr).toContain(
      '“a\\u{1b}b” (phone, ios) asks to be paired: /accept 5be1 or /deny 5be1\n“two” (phone, ios) asks to be paired: /accept 5be2 or /deny 5be2\n',
    )
    expect(io.stderr.match(/asks to be paired/g)).toHaveLength(2)
    expect(io.stderr).toMatch(
      /type this code on “a\\u{1b}b” until [\d:]{8}:\n4821-9034\n✓ paired “a\\u{1b}b”/,
    )
  })

  test('are not asked for without the window, and not any more when it is over', async () => {
    router.always('GET', REQUESTS, waiting())
    let before = -1
    const { above } = io
    io.above = (lines) => {
      above(lines)
      before = router.count('GET', REQUESTS)
    }
    // Nothing is to be seen at the first two prompts, however long they wait.
    const running = talk(['/help', /<later>/], ['/requests', /<much later>/], ['/help', /can ask no longer/])
    for (const moment of ['<later>', '<much later>']) {
      await settle()
      expect(router.requests).toEqual([])
      io.err(moment)
    }
    expect(await running).toBe(0)
    await settle()
    expect(before).toBe(301)
    expect(router.count('GET', REQUESTS)).toBe(before)
    expect(clock.pauses.reduce((sum, ms) => sum + ms)).toBe(600_000)
  })

  test('are not asked for while a run goes on', async () => {
    router.always('GET', REQUESTS, waiting(request(ONE, 'one')))
    router.always('POST', '/api/v1/sessions', json({ session: sessionSummary }, 201))
    let counts: number[] = []
    router.script('POST', paths.execute, async (response, asked) => {
      const began = router.count('GET', REQUESTS)
      await settle()
      counts = [began, router.count('GET', REQUESTS)]
      return stream([{ event: completed('ok') }])(response, asked)
    })
    expect(await talk(['/requests'], ['do it', /“one”/], ['/quit', /tokens/])).toBe(0)
    expect(counts[0]).toBeGreaterThan(0)
    expect(counts[1]).toBe(counts[0])
  })

  test('a line that is typed does not wait for the router, whose late answer is not shown', async () => {
    let asked: () => void = () => undefined
    let answer: () => void = () => undefined
    const isAsked = new Promise<void>((resolve) => {
      asked = resolve
    })
    router.script('GET', REQUESTS, (response, got) => {
      asked()
      return new Promise((resolve) => {
        answer = () => resolve(waiting(request(ONE, 'late'))(response, got))
      })
    })
    router.always('GET', REQUESTS, waiting())
    const ended = talk(['/requests'], ['/quit', /<enter>/])
    await isAsked
    io.err('<enter>')
    expect(await ended).toBe(0)
    answer()
    await settle()
    expect(io.stderr).not.toContain('late')
  })

  test('a router that is away for a while is asked again; one that refuses is not', async () => {
    router.script('GET', REQUESTS, hangUp, refusal(503, 'busy'), waiting(request(ONE, 'one')))
    router.always('GET', REQUESTS, refusal(401, 'token_revoked'))
    expect(await talk(['/requests'], ['/help', /token_revoked/])).toBe(0)
    await settle()
    expect(io.stderr).toContain('“one”')
    expect(router.count('GET', REQUESTS)).toBe(4)
    expect(io.stderr.match(/error: .*token_revoked/g)).toHaveLength(1)
  })

  test('a router that is away until the window is over is told of, once', async () => {
    router.always('GET', REQUESTS, hangUp)
    expect(await talk(['/requests'], ['/help', /no answer from/])).toBe(0)
    expect(io.stderr.match(/error: no answer from/g)).toHaveLength(1)
    expect(clock.pauses.reduce((sum, ms) => sum + ms)).toBe(600_000)
  })

  test('/requests once more shows again who still waits', async () => {
    router.always('GET', REQUESTS, waiting(request(ONE, 'one')))
    await talk(['/requests'], ['/requests', /“one”/], ['/quit', /“one”[\s\S]*“one”/])
    expect(router.count('POST', LISTEN)).toBe(2)
  })

  test('a command that fails says why, and the conversation goes on', async () => {
    router.script('POST', LISTEN, refusal(500, 'storage_error'))
    router.always('GET', REQUESTS, waiting(request(ONE, 'one')))
    expect(await talk(['/requests'], ['/accept'], ['/deny ffff'], ['/accept 5be'])).toBe(0)
    expect(io.stderr).toContain('storage_error')
    expect(io.stderr).toContain('say which request: /accept ID, /deny ID')
    expect(io.stderr).toContain('there is no request "ffff"')
    expect(io.stderr).toContain('at least 4 characters')
    expect(clock.pauses).toEqual([])
  })
})

describe('/pair in the interactive session', () => {
  test('shows the codes, and above the prompt who has paired; then nothing is asked any more', async () => {
    router.script('GET', DEVICES, devices('old'), devices('old'), devices('old', 'new'))
    router.always('GET', DEVICES, devices('old', 'new'))
    await talk(['/pair'], ['/quit', /✓ paired “new”/])
    await settle()
    expect(io.stderr).toContain('code     4821-9034\n')
    expect(io.stderr).toContain('▀')
    expect(io.stderr).toContain(JSON.stringify(qr))
    expect(io.stdout).toBe('')
    expect(router.count('GET', DEVICES)).toBe(3)
    expect(router.count('GET', REQUESTS)).toBe(0)
  })

  test('says when the code has run out', async () => {
    await talk(['/pair'], ['/quit', /the code holds no longer/])
    expect(clock.pauses.reduce((sum, ms) => sum + ms)).toBe(120_000)
  })

  test('[D42] of a router on loopback has no QR code and says why', async () => {
    const local = { ...opened, qr: { ...qr, address: '127.0.0.1:8787' } }
    router.script('POST', PAIRING, json(local, 201))
    await talk(['/pair'])
    expect(io.stderr).not.toContain('▀')
    expect(io.stderr).toContain('no phone can reach 127.0.0.1:8787')
  })

  test('an acceptance ends its code, and says so', async () => {
    router.always('GET', REQUESTS, waiting(request(ONE, 'one')))
    router.script('POST', `${REQUESTS}/${ONE}/accept`, json({ code: '1111-1111', expires_at: at }))
    await talk(['/pair'], ['/accept 5be1'])
    expect(io.stderr).toContain('the code before it holds no longer\n')
  })

  test('/help tells of all four', async () => {
    await talk(['/help'])
    for (const name of ['/pair', '/requests', '/accept ID', '/deny ID']) expect(io.stderr).toContain(name)
  })
})
