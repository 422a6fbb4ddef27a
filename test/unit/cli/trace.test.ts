import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { saveCredentials } from '../../../src/cli/credentials.ts'
import { runCli } from '../../../src/cli/program.ts'
import { configHome } from '../../support/node/config-home.ts'
import { type ScriptedIo, scriptedIo } from '../../support/node/scripted-io.ts'
import {
  json,
  refusal,
  type ScriptedRouter,
  startScriptedRouter,
} from '../../support/node/scripted-router.ts'
import { SESSION, sessionSummary } from '../../support/node/scripted-router-turns.ts'

let router: ScriptedRouter
let io: ScriptedIo

beforeEach(async () => {
  router = await startScriptedRouter()
  io = scriptedIo()
  configHome()
  vi.stubEnv('SWITCHYARD_URL', router.url)
  const token = { value: 't0', expires_at: '2099-01-01T00:00:00.000Z' }
  saveCredentials(router.url, { user_id: 'u1', api_key: 'sk-stored', token })
  router.always('GET', '/api/v1/auth/me', json({ user_id: 'u1' }))
})
afterEach(async () => {
  expect(router.unexpected).toEqual([])
  await router.close()
})

const cli = (...argv: string[]) => runCli(argv, { makeIo: () => io })

const at = (limit: number, offset: number) =>
  `/api/v1/sessions/${SESSION}/traces?limit=${limit}&offset=${offset}`
const windows = () => router.requests.map(({ path }) => path).filter((path) => path.includes('/traces'))
const event = (payload: { type: string; [field: string]: unknown }, payloadForm?: object) => ({
  event_type: payload.type,
  task_type: 'edit',
  provider: 'ollama',
  model: 'small',
  created_at: '2026-01-02T03:04:05.678Z',
  payload: payloadForm ?? { plaintext: payload },
})
const routed = (reason: string) =>
  event({
    type: 'routing_decision',
    provider: 'ollama',
    model: 'small',
    fallback_used: false,
    override_used: false,
    reason,
  })
const many = (count: number, from = 0) =>
  Array.from({ length: count }, (_, i) => routed(`number ${from + i}`))
/** The router's answer to one window. */
const gives = (limit: number, offset: number, events: object[]) =>
  router.script('GET', at(limit, offset), json({ trace: { session_id: SESSION, events } }))
/** A whole trace that ends after these events. */
const tells = (...events: object[]) => {
  gives(51, 0, events)
  gives(51 - events.length, events.length, [])
}
const linesOut = () => io.stdout.split('\n').slice(0, -1)

describe('a line', () => {
  const what = (payload: { type: string; [field: string]: unknown }) => {
    tells(event(payload))
    return cli('trace', SESSION)
  }

  test('[EC 19] has time, event, what and model', async () => {
    tells(
      event({ type: 'message', role: 'user', provider: 'ollama', model: 'small' }),
      routed('default route'),
    )
    expect(await cli('trace', SESSION)).toBe(0)
    expect(io.stdout).toBe(
      '2026-01-02 03:04:05  message            user  ollama/small\n' +
        '2026-01-02 03:04:05  routing_decision   default route  ollama/small\n',
    )
    expect(io.stderr).toBe('')
  })

  const call = { type: 'tool_call', tool_name: 'shell' }
  const verdict = { type: 'context_selection', kind: 'file', reason: 'too long' }
  const cost = { type: 'cost', provider: 'ollama', model: 'small' }
  test.each([
    [
      { type: 'classification', intent: 'edit', source: 'inferred', reason: 'keyword `fix`' },
      'edit: keyword `fix`',
    ],
    [
      {
        type: 'routing_decision',
        provider: 'ollama',
        model: 'small',
        fallback_used: true,
        override_used: false,
        reason: 'rule `edits` matched',
      },
      'rule `edits` matched, fallback',
    ],
    [
      {
        type: 'routing_decision',
        provider: 'ollama',
        model: 'small',
        fallback_used: true,
        override_used: false,
        reason: 'rule `edits` matched, an earlier choice was not usable, fallback, local models only',
      },
      'rule `edits` matched, an earlier choice was not usable, fallback, local models only',
    ],
    [
      {
        type: 'routing_decision',
        provider: 'ollama',
        model: 'small',
        fallback_used: false,
        override_used: false,
        reason: 'default route',
        failure: { code: 'no_route', message: 'none is usable' },
      },
      'default route; no_route: none is usable',
    ],
    [{ ...verdict, path: 'a.ts', included: true }, 'included a.ts (file): too long'],
    [{ ...verdict, kind: 'memory', path: null, included: false }, 'left out memory: too long'],
    [{ ...call, status: 'pending', arguments: '{"command":"8 characters"}' }, 'shell pending'],
    [{ ...call, status: 'failed', error: 'exit\n1' }, 'shell failed: exit 1'],
    [
      { type: 'approval', target_type: 'tool_call', target_id: 'c1', decision: 'approved' },
      'tool_call c1 approved',
    ],
    [
      { type: 'approval', target_type: 'plan', target_id: 'p1', decision: 'rejected', reason: 'no' },
      'plan p1 rejected: no',
    ],
    [
      { ...cost, input_tokens: 8, output_tokens: 2, cached_tokens: 3, cost: '0.01' },
      'in 8 · out 2 tokens · cached 3 · $0.01',
    ],
  ])('tells of %j', async (payload, expected) => {
    expect(await what(payload)).toBe(0)
    expect(linesOut()).toEqual([`2026-01-02 03:04:05  ${payload.type.padEnd(17)}  ${expected}  ollama/small`])
  })

  test('[U43] of a call whose counters and price were not told shows them as unknown, not as zero', async () => {
    await what({ ...cost, input_tokens: 0, output_tokens: 0, cost: null })
    expect(io.stdout).toContain('in ? · out ? tokens · cost unknown')
    // What has a price was counted.
    await what({ ...cost, input_tokens: 0, output_tokens: 2, cost: '0' })
    expect(io.stdout).toContain('in 0 · out 2 tokens · $0')
  })

  test('[U35] of a sealed event tells what is clear, and which key opens the rest', async () => {
    const sealed = { version: 1, algorithm: 'a', key_id: 'k', nonce: 'n', ciphertext: 'c' }
    const session = { ...sessionSummary, encrypted: true, key_id: 'k' }
    router.always('GET', '/api/v1/sessions', json({ sessions: [session] }))
    tells(event({ type: 'tool_call' }, { encrypted: sealed }))
    await cli('trace', SESSION)
    expect(linesOut()).toEqual([
      '2026-01-02 03:04:05  tool_call          locked: key k is needed  ollama/small',
    ])
  })

  test('stays one line, whatever is in it', async () => {
    tells(routed(`a\n\u001b[2J${'x'.repeat(500)}`))
    await cli('trace', SESSION)
    expect(linesOut()).toHaveLength(1)
    expect(io.stdout).toContain('a \\u{1b}[2Jxxx')
    expect(io.stdout).toContain('xxx…  ollama/small')
    expect(io.stdout.length).toBeLessThan(250)
  })

  test('as JSON is the event as it is', async () => {
    tells(...many(2))
    expect(await cli('trace', SESSION, '--json')).toBe(0)
    expect(linesOut().map((line) => JSON.parse(line))).toEqual(many(2))
  })
})

describe('how much', () => {
  test('[EC 2.14] the oldest 50, and a word when there are more', async () => {
    gives(51, 0, many(51))
    expect(await cli('trace', SESSION)).toBe(0)
    expect(linesOut()).toHaveLength(50)
    expect(io.stdout).toContain('number 49')
    expect(io.stderr).toBe('note: there are more events; --all shows them\n')
  })

  test('--limit shows so many, and no such word when that is all', async () => {
    gives(3, 0, many(2))
    gives(1, 2, [])
    expect(await cli('trace', SESSION, '--limit', '2')).toBe(0)
    expect(linesOut()).toHaveLength(2)
    expect(io.stderr).toBe('')
  })

  test('[U44] --all goes on to the empty page, and shows each page before it asks for the next', async () => {
    const shown: number[] = []
    gives(1000, 0, many(1000))
    gives(1000, 1000, many(300, 1000))
    router.script('GET', at(1000, 1300), (response, request) => {
      shown.push(linesOut().length)
      return json({ trace: { session_id: SESSION, events: [] } })(response, request)
    })
    expect(await cli('trace', SESSION, '--all')).toBe(0)
    expect(windows()).toEqual([at(1000, 0), at(1000, 1000), at(1000, 1300)])
    expect(shown).toEqual([1300])
    expect(linesOut().map((line) => / number (\d+) /.exec(line)?.[1])).toEqual(
      Array.from({ length: 1300 }, (_, i) => String(i)),
    )
    expect(io.stderr).toBe('')
  })

  test('a router that gives fewer than it was asked for hides nothing', async () => {
    gives(1000, 0, many(2))
    gives(1000, 2, many(1, 2))
    gives(1000, 3, [])
    expect(await cli('trace', SESSION, '--all')).toBe(0)
    expect(linesOut()).toHaveLength(3)
  })

  test('a failure on the way is told as such', async () => {
    gives(1000, 0, many(2))
    router.script('GET', at(1000, 2), refusal(500, 'internal_error'))
    expect(await cli('trace', SESSION, '--all')).toBe(1)
    expect(linesOut()).toHaveLength(2)
    expect(io.stderr).toBe('error: the trace is not whole: scripted internal_error (internal_error)\n')
  })

  test('a session without events says so, and as JSON says nothing', async () => {
    router.always('GET', at(51, 0), json({ trace: { session_id: SESSION, events: [] } }))
    expect(await cli('trace', SESSION)).toBe(0)
    expect(io.stderr).toBe('no events\n')
    io.stderr = ''
    expect(await cli('trace', SESSION, '--json')).toBe(0)
    expect(io.stdout + io.stderr).toBe('')
  })

  test('an unknown session is exit 1', async () => {
    router.script('GET', at(51, 0), refusal(404, 'session_not_found'))
    expect(await cli('trace', SESSION)).toBe(1)
    expect(io.stderr).toContain('error: scripted session_not_found (session_not_found)')
  })

  test.each([[['--limit', '0']], [['--limit', 'x']], [['--limit', '1e3']], [['--all', '--limit', '3']]])(
    '%j is wrong usage',
    async (options) => {
      expect(await cli('trace', SESSION, ...options)).toBe(2)
      expect(router.requests).toEqual([])
    },
  )
})
