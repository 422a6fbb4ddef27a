import { afterEach, beforeEach, expect, test, vi } from 'vitest'
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
import { SESSION } from '../../support/node/scripted-router-turns.ts'

const USAGE = `/api/v1/sessions/${SESSION}/usage`

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

const paid = {
  input_tokens: 812,
  output_tokens: 44,
  cached_tokens: 500,
  estimated_cost: '0.003096000000000001',
  currency: 'USD',
}
const free = { input_tokens: 1000, output_tokens: 9, estimated_cost: '0', currency: 'USD' }
const sum = {
  input_tokens: 1812,
  output_tokens: 53,
  cached_tokens: 500,
  estimated_cost: '0.003096000000000001',
  currency: 'USD',
}

test('[EC 20.2] what a session used, in all, by model and by task, with the money as the router tells it', async () => {
  router.script(
    'GET',
    USAGE,
    json({
      total: sum,
      by_model: [
        { ...paid, provider: 'anthropic', model: 'large', request_count: 1 },
        { ...free, provider: 'ollama', model: 'q', request_count: 12 },
      ],
      by_task_type: [{ ...sum, task_type: 'edit', request_count: 13 }],
    }),
  )
  expect(await cli('usage', SESSION)).toBe(0)
  expect(io.stdout).toBe(
    [
      'total  13 calls  in 1812 · out 53 tokens · cached 500 · $0.003096000000000001',
      '',
      'by model',
      '  anthropic/large    1 call  in 812 · out 44 tokens · cached 500 · $0.003096000000000001',
      '  ollama/q         12 calls  in 1000 · out 9 tokens · $0',
      '',
      'by task',
      '  edit  13 calls  in 1812 · out 53 tokens · cached 500 · $0.003096000000000001',
      '',
    ].join('\n'),
  )
  expect(io.stderr).toBe('')
})

test.each([
  ['a price', { ...paid, estimated_cost: undefined, currency: undefined }, 'cost unknown'],
  [
    'a counter',
    { ...paid, output_tokens: undefined, estimated_cost: undefined, currency: undefined },
    'out ? tokens',
  ],
  ['what some calls used', { ...paid, cached_tokens: undefined, unknown_count: 1 }, 'in 812'],
])('[U43] %s that is unknown is not zero, and the sums are said to lack it', async (_, usage, shown) => {
  router.script(
    'GET',
    USAGE,
    json({
      total: sum,
      by_model: [
        { ...usage, provider: 'openai', model: 'new', request_count: 1 },
        { ...free, provider: 'ollama', model: 'q', request_count: 1 },
      ],
      by_task_type: [{ ...sum, task_type: 'chat', request_count: 2 }],
    }),
  )
  expect(await cli('usage', SESSION)).toBe(0)
  expect(io.stdout.split('\n').find((line) => line.includes('openai/new'))).toContain(shown)
  expect(io.stderr).toBe('note: not everything is known; the sums hold only what is\n')
})

test('[EC 20.1] a counter that is left out beside a price was zero, and nothing is unknown', async () => {
  const { output_tokens: _, ...silent } = paid
  const model = { ...silent, provider: 'openai', model: 'm', request_count: 1 }
  router.script('GET', USAGE, json({ total: silent, by_model: [model], by_task_type: [] }))
  expect(await cli('usage', SESSION)).toBe(0)
  expect(io.stdout).toContain('in 812 · out 0 tokens · cached 500 · $0.003096000000000001\n')
  expect(io.stderr).toBe('')
})

test('[EC 20.2] of a session whose amounts are sealed only the calls are counted', async () => {
  router.script(
    'GET',
    USAGE,
    json({
      total: {},
      by_model: [{ provider: 'ollama', model: 'a\n\u001b[2Jb', request_count: 2 }],
      by_task_type: [],
    }),
  )
  expect(await cli('usage', SESSION)).toBe(0)
  const unknown = 'in ? · out ? tokens · cost unknown'
  expect(io.stdout).toBe(
    `total  2 calls  ${unknown}\n\nby model\n  ollama/a \\u{1b}[2Jb  2 calls  ${unknown}\n`,
  )
})

test('another currency is named, whatever it is called', async () => {
  const usage = { ...paid, currency: 'E\u001b[2JUR' }
  router.script(
    'GET',
    USAGE,
    json({
      total: usage,
      by_model: [{ ...usage, provider: 'openai', model: 'm', request_count: 1 }],
      by_task_type: [],
    }),
  )
  await cli('usage', SESSION)
  expect(io.stdout).toContain('0.003096000000000001 E\\u{1b}[2JUR\n')
  expect(io.stdout).not.toContain('$')
})

test('a session in which no model was called has nothing to show', async () => {
  router.script('GET', USAGE, json({ total: {}, by_model: [], by_task_type: [] }))
  expect(await cli('usage', SESSION)).toBe(0)
  expect(io.stdout).toBe('')
  expect(io.stderr).toBe('no model was called yet\n')
})

test('as JSON it is what the router told', async () => {
  const told = { total: {}, by_model: [], by_task_type: [] }
  router.script('GET', USAGE, json(told))
  expect(await cli('usage', SESSION, '--json')).toBe(0)
  expect(JSON.parse(io.stdout)).toEqual(told)
  expect(io.stderr).toBe('')
})

test('an unknown session is exit 1 with a remedy', async () => {
  router.script('GET', USAGE, refusal(404, 'session_not_found'))
  expect(await cli('usage', SESSION)).toBe(1)
  expect(io.stderr).toContain('(session_not_found)\n  `switchyard sessions list`')
})
