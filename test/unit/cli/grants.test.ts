import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { saveCredentials } from '../../../src/cli/credentials.ts'
import { runCli } from '../../../src/cli/program.ts'
import { configHome } from '../../support/node/config-home.ts'
import { type ScriptedIo, scriptedIo } from '../../support/node/scripted-io.ts'
import { json, type ScriptedRouter, startScriptedRouter } from '../../support/node/scripted-router.ts'
import { SESSION } from '../../support/node/scripted-router-turns.ts'

let router: ScriptedRouter
let io: ScriptedIo

beforeEach(async () => {
  router = await startScriptedRouter()
  io = scriptedIo()
  configHome({})
  vi.stubEnv('SWITCHYARD_URL', router.url)
  saveCredentials(router.url, {
    user_id: 'u1',
    api_key: 'sk-stored',
    token: { value: 't0', expires_at: '2099-01-01T00:00:00.000Z' },
  })
  router.always('GET', '/api/v1/auth/me', json({ user_id: 'u1' }))
})
afterEach(async () => {
  expect(router.unexpected).toEqual([])
  await router.close()
})

const cli = (...argv: string[]) => runCli(argv, { makeIo: () => io })
const ID = '0197d0a2-6c1e-7c52-9a55-0c6a6f1d2b11'
const RUN = `/api/v1/sessions/${SESSION}/run`
const GRANT = `/api/v1/sessions/${SESSION}/grants/${ID}`
const grant = (paths: string[]) => ({
  id: ID,
  kind: 'remote_disclosure',
  provider: 'anthropic',
  model: 'm',
  paths,
})
const running = (grants?: unknown[]) =>
  json({
    status: 'running',
    data: { trace_id: 'trace:1' },
    allowed_continuations: ['inject', 'break'],
    ...(grants === undefined ? {} : { grants }),
  })

test.each([[['grants', SESSION]], [['grants', 'list', SESSION]]])(
  '[U23] %j lists each grant with every file of it, whatever is in a name',
  async (argv) => {
    router.script('GET', RUN, running([grant(['a.ts', 'b\n\u001b[2J']), grant([])]))
    expect(await cli(...argv)).toBe(0)
    expect(io.stdout).toBe(
      `${ID}  anthropic may see the prompt and:\n  a.ts\n  b \\u{1b}[2J\n` +
        `${ID}  anthropic may see the prompt and:\n  (no files)\n`,
    )
  },
)

test('[U23] a cost that was accepted is listed with its rule and its price, or that nobody knows it', async () => {
  const cost = { ...grant([]), kind: 'cost_limit', rule: 'cheap\u001b[2J' }
  router.script('GET', RUN, running([{ ...cost, up_to: '1.88' }, cost]))
  expect(await cli('grants', SESSION)).toBe(0)
  expect(io.stdout).toBe(
    `${ID}  anthropic/m may cost up to 1.88 USD a call, beyond the limit of rule cheap\\u{1b}[2J\n` +
      `${ID}  anthropic/m may cost what nobody knows a call, beyond the limit of rule cheap\\u{1b}[2J\n`,
  )
})

test('[U23] as JSON', async () => {
  router.script('GET', RUN, running([grant(['a.ts'])]))
  expect(await cli('grants', SESSION, '--json')).toBe(0)
  expect(JSON.parse(io.stdout)).toEqual([grant(['a.ts'])])
})

test('says so when nothing is granted', async () => {
  router.script('GET', RUN, json({ status: 'idle', data: { trace_id: 'trace:1' } }))
  expect(await cli('grants', SESSION)).toBe(0)
  expect([io.stdout, io.stderr]).toEqual(['', 'nothing is granted\n'])
})

test('[U23] revoke takes back the grant that is named', async () => {
  router.script('DELETE', GRANT, json({ revoked: true }))
  expect(await cli('grants', 'revoke', SESSION, ID)).toBe(0)
  expect(io.stderr).toBe(`revoked ${ID}\n`)
  expect(router.count('DELETE', GRANT)).toBe(1)
})

test('[U23] a grant that the run has not got is told', async () => {
  const error = { code: 'invalid_request', message: 'the current run has no such grant' }
  router.script('DELETE', GRANT, json({ error }, 404))
  expect(await cli('grants', 'revoke', SESSION, ID)).toBe(1)
  expect(io.stderr).toContain('the current run has no such grant')
})

test.each([
  [['grants', 'nonsense'], '"nonsense" is no id of a session'],
  [['grants', 'revoke', SESSION, 'nonsense'], '"nonsense" is no id of a grant'],
])('%j ends with a sentence before anything is asked', async (argv, told) => {
  expect(await cli(...argv)).toBe(2)
  expect(io.stderr).toContain(told)
  expect(router.requests).toEqual([])
})
