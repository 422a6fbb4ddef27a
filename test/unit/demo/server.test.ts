import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type DemoModelServer, startDemoModel } from '../../../src/host/demo/server.ts'
import { listOllamaModels } from '../../../src/providers/ollama-catalogue.ts'

const ROOT = path.join(import.meta.dirname, '../../..')

let demo: DemoModelServer
beforeAll(async () => {
  const started = await startDemoModel({ pieceDelayMs: 0 })
  if (!started.ok) throw new Error(started.error.message)
  demo = started.value
})
afterAll(() => demo.close())

const get = (at: string) => fetch(`${demo.url}${at}`)
const post = (at: string, body: unknown) =>
  fetch(`${demo.url}${at}`, { method: 'POST', body: typeof body === 'string' ? body : JSON.stringify(body) })

const tool = (name: string) => ({ type: 'function', function: { name, description: '', parameters: {} } })
const chat = (extra: object = {}) => ({
  model: 'switchyard-demo',
  messages: [{ role: 'user', content: 'What does this project do?' }],
  ...extra,
})
const ISO = expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/)
const COUNT = expect.any(Number)
const done = (reason: string) => ({
  model: 'switchyard-demo',
  created_at: ISO,
  done: true,
  done_reason: reason,
  total_duration: COUNT,
  load_duration: 0,
  prompt_eval_count: COUNT,
  prompt_eval_duration: 0,
  eval_count: COUNT,
  eval_duration: COUNT,
})

const linesOf = async (response: Response): Promise<{ message: { content: string }; done: boolean }[]> =>
  (await response.text())
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line))

describe("[D13] the demo model speaks Ollama's native API", () => {
  test('it listens on the loopback interface and says what it is', async () => {
    expect(demo.url).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/)
    expect(await (await get('/')).text()).toContain('demo model')
    expect(await (await get('/api/version')).json()).toEqual({
      version: expect.stringContaining('switchyard-demo'),
    })
  })

  test('tags list one model, and show tells its window and that it completes and calls tools', async () => {
    const tags = await (await get('/api/tags')).json()
    expect(tags).toMatchObject({ models: [{ name: 'switchyard-demo', model: 'switchyard-demo', size: 0 }] })
    expect(await (await post('/api/show', { model: 'switchyard-demo' })).json()).toMatchObject({
      capabilities: ['completion', 'tools'],
      model_info: { 'general.architecture': 'switchyard-demo', 'switchyard-demo.context_length': 32_768 },
      details: { family: 'switchyard-demo' },
    })
  })

  test("the router's own catalogue finds it, local, free and able to call tools", async () => {
    const context = { egress: () => fetch, signal: AbortSignal.timeout(5_000) }
    const config = { baseUrl: demo.url, local: true, maxContextTokens: 1_000_000 }
    expect(await listOllamaModels(config, context, undefined)).toMatchObject({
      ok: true,
      value: [
        {
          model: 'switchyard-demo',
          local: true,
          capabilities: { tools: true, streaming: true },
          max_context_tokens: 32_768,
          input_cost_per_million_tokens: '0',
        },
      ],
    })
  })

  test('a streamed call: one line with the calls, one line that ends it', async () => {
    const response = await post('/api/chat', chat({ tools: [tool('list_files')] }))
    expect(response.headers.get('content-type')).toBe('application/x-ndjson')
    expect(await linesOf(response)).toEqual([
      {
        model: 'switchyard-demo',
        created_at: ISO,
        message: {
          role: 'assistant',
          content: '',
          tool_calls: [
            { id: expect.any(String), function: { name: 'list_files', arguments: { path: '.' } } },
          ],
        },
        done: false,
      },
      { ...done('stop'), message: { role: 'assistant', content: '' } },
    ])
  })

  test('a streamed answer comes in small pieces that make up the buffered one', async () => {
    const lines = await linesOf(await post('/api/chat', chat()))
    const whole = await (await post('/api/chat', chat({ stream: false }))).json()
    const pieces = lines.slice(0, -1).map(({ message }) => message.content)
    expect(pieces.length).toBeGreaterThan(5)
    expect(Math.max(...pieces.map(({ length }) => length))).toBeLessThanOrEqual(25)
    expect(whole).toEqual({ ...done('stop'), message: { role: 'assistant', content: pieces.join('') } })
    expect(lines.map((line) => line.done)).toEqual([...pieces.map(() => false), true])
  })

  test('a buffered call carries the calls', async () => {
    const body = await (await post('/api/chat', chat({ stream: false, tools: [tool('list_files')] }))).json()
    expect(body).toMatchObject({
      done: true,
      message: { tool_calls: [{ function: { name: 'list_files' } }] },
    })
  })

  test('[U42] an answer cut by num_predict says so', async () => {
    const body = await (await post('/api/chat', chat({ stream: false, options: { num_predict: 5 } }))).json()
    const message = { content: expect.stringMatching(/^[\s\S]{20}$/) }
    expect(body).toMatchObject({ done_reason: 'length', eval_count: 5, message })
  })

  test('no messages: the model is only loaded', async () => {
    const body = await (await post('/api/chat', { model: 'switchyard-demo' })).json()
    expect(body).toMatchObject({ done: true, done_reason: 'load', message: { content: '' } })
  })

  test.each([
    ['another model', '/api/chat', { model: 'llama3', messages: [] }, 404, "model 'llama3' not found"],
    ['another model to show', '/api/show', { model: 'llama3' }, 404, "model 'llama3' not found"],
    ['no JSON', '/api/chat', 'nonsense', 400, expect.stringContaining('no JSON')],
    ['no model', '/api/chat', { messages: [] }, 400, expect.stringContaining('model')],
    [
      'an unknown role',
      '/api/chat',
      chat({ messages: [{ role: 'x' }] }),
      400,
      expect.stringContaining('messages.0.role'),
    ],
    ['an unknown path', '/api/pull', {}, 404, expect.stringContaining('/api/pull')],
  ])('%s is an error in the shape of Ollama', async (_what, at, body, status, error) => {
    const response = await post(at, body)
    expect([response.status, await response.json()]).toEqual([status, { error }])
  })

  test('a client that leaves in the middle of an answer harms nobody', async () => {
    const leaving = new AbortController()
    const slow = await startDemoModel({ pieceDelayMs: 5 })
    if (!slow.ok) throw new Error(slow.error.message)
    const body = JSON.stringify(chat())
    const response = await fetch(`${slow.value.url}/api/chat`, {
      method: 'POST',
      body,
      signal: leaving.signal,
    })
    const reader = response.body?.getReader()
    await reader?.read()
    leaving.abort()
    await expect(reader?.read()).rejects.toThrow()
    expect((await fetch(`${slow.value.url}/api/version`)).status).toBe(200)
    await slow.value.close()
  })
})

describe('starting it', () => {
  test('a port in use is data, not a crash', async () => {
    const other = createServer().listen(0, '127.0.0.1')
    await once(other, 'listening')
    const { port } = other.address() as AddressInfo
    const started = await startDemoModel({ port })
    expect(started).toEqual({ ok: false, error: { kind: 'port_busy', message: `Port ${port} is in use.` } })
    other.close()
  })

  test('alone it prints its address, and SIGTERM ends it with 0', async () => {
    const child = spawn(process.execPath, [path.join(ROOT, 'src/host/demo/main.ts'), '--port', '0'], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    const [first] = await once(child.stdout, 'data')
    const url = String(first).trim()
    expect((await fetch(`${url}/api/tags`)).status).toBe(200)
    child.kill('SIGTERM')
    expect(await once(child, 'exit')).toEqual([0, null])
  })

  test('a wrong port is told in one line, with 2', async () => {
    const child = spawn(process.execPath, [path.join(ROOT, 'src/host/demo/main.ts'), '--port', 'x'], {
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    const [said] = await once(child.stderr, 'data')
    expect(String(said)).toBe('--port x is no port number (0 to 65535).\n')
    expect(await once(child, 'exit')).toEqual([2, null])
  })
})
