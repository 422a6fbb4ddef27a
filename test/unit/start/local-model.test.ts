import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, describe, expect, test } from 'vitest'
import { chooseModel } from '../../../src/cli/start/local-model.ts'
import { findOllama, ollamaOrigin, preferredModel } from '../../../src/cli/start/ollama.ts'
import { freePort } from '../../support/node/free-port.ts'

type Listed = { name: string; capabilities: string[]; remote_host?: string; size?: string }

const closers: (() => void | Promise<void>)[] = []
afterEach(async () => {
  for (const close of closers.splice(0)) await close()
})

/** An Ollama daemon with these models, as far as `npm start` looks at one. */
async function daemon(models: readonly Listed[]): Promise<string> {
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk)
    const tags = models.map(({ name, remote_host, size }) => ({
      name,
      ...(remote_host === undefined ? {} : { remote_host }),
      details: { parameter_size: size ?? '8B' },
    }))
    const body = Buffer.concat(chunks).toString()
    const shown = models.find(({ name }) => body !== '' && name === JSON.parse(body).model)
    response.end(
      JSON.stringify(request.url === '/api/tags' ? { models: tags } : { capabilities: shown?.capabilities }),
    )
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  closers.push(() => void server.close())
  return `127.0.0.1:${(server.address() as AddressInfo).port}`
}

const TOOLS = ['completion', 'tools']

describe('where Ollama listens', () => {
  test.each([
    [undefined, 'http://127.0.0.1:11434'],
    ['', 'http://127.0.0.1:11434'],
    ['0.0.0.0', 'http://127.0.0.1:11434'],
    ['0.0.0.0:9999', 'http://127.0.0.1:9999'],
    [':9999', 'http://127.0.0.1:9999'],
    ['box.local', 'http://box.local:11434'],
    ['http://box.local', 'http://box.local:80'],
    ['https://box.local/', 'https://box.local:443'],
    ['http://box.local:1234/path', 'http://box.local:1234'],
    ['[::1]:1234', 'http://[::1]:1234'],
    ['"127.0.0.1:5"', 'http://127.0.0.1:5'],
  ])('OLLAMA_HOST=%j is %s', (setting, origin) => expect(ollamaOrigin(setting)).toBe(origin))
})

describe('which model', () => {
  test('only local ones that call tools count', async () => {
    const host = await daemon([
      { name: 'plain:1', capabilities: ['completion'] },
      { name: 'far:1', capabilities: TOOLS, remote_host: 'https://ollama.com' },
      { name: 'big:120b-cloud', capabilities: TOOLS },
      { name: 'near:1', capabilities: TOOLS, size: '494M' },
    ])
    expect(await findOllama(`http://${host}`)).toEqual({
      origin: `http://${host}`,
      models: [{ name: 'near:1', billions: 0.494 }],
    })
  })

  test.each([
    [['mystery:7b', 'qwen3:8b', 'qwen2.5-coder:7b'], 'qwen2.5-coder:7b'],
    [['mystery:7b', 'qwen3:8b'], 'qwen3:8b'],
    [['new:7b', 'old:7b'], 'new:7b'],
    [[], undefined],
  ])('of %j it is %j', (names, expected) => {
    expect(preferredModel(names.map((name) => ({ name })))?.name).toBe(expected)
  })

  test('a very small one comes last, whatever its family', () => {
    const models = [
      { name: 'qwen3:0.6b', billions: 0.6 },
      { name: 'mystery:7b', billions: 7 },
    ]
    expect(preferredModel(models)?.name).toBe('mystery:7b')
  })

  test('a running Ollama is used', async () => {
    const host = await daemon([{ name: 'qwen3:8b', capabilities: TOOLS }])
    expect(await chooseModel(undefined, { OLLAMA_HOST: host })).toEqual({
      ok: true,
      value: {
        reference: 'ollama/qwen3:8b',
        ollamaUrl: `http://${host}`,
        note: `from Ollama at http://${host}`,
      },
    })
  })

  test('without one the demo model is started, and the user is told what it is and how to get a real one', async () => {
    const chosen = await chooseModel(undefined, { OLLAMA_HOST: `127.0.0.1:${await freePort()}` })
    if (!chosen.ok) throw new Error(chosen.error)
    closers.push(() => chosen.value.demo?.close())
    expect(chosen.value).toMatchObject({
      reference: 'ollama/switchyard-demo',
      ollamaUrl: chosen.value.demo?.url,
    })
    expect(chosen.value.note).toMatch(/demo model.*no language model.*ollama pull/)
    expect((await fetch(`${chosen.value.ollamaUrl}/api/tags`)).status).toBe(200)
  })

  test('a name without its tag, and without its provider, is found', async () => {
    const host = await daemon([{ name: 'mine:latest', capabilities: TOOLS }])
    for (const wanted of ['mine', 'ollama/mine', 'ollama/mine:latest']) {
      expect(await chooseModel(wanted, { OLLAMA_HOST: host })).toMatchObject({
        ok: true,
        value: { reference: 'ollama/mine:latest', ollamaUrl: `http://${host}` },
      })
    }
  })

  test('a model that Ollama does not have is an error that lists those it has', async () => {
    const host = await daemon([{ name: 'mine:latest', capabilities: TOOLS }])
    expect(await chooseModel('ollama/other', { OLLAMA_HOST: host })).toEqual({
      ok: false,
      error: `Ollama at http://${host} has no model other that can call tools. It has: mine:latest.`,
    })
  })

  test('a model of Ollama without an Ollama is an error, not the demo model in its place', async () => {
    const host = `127.0.0.1:${await freePort()}`
    expect(await chooseModel('ollama/other', { OLLAMA_HOST: host })).toEqual({
      ok: false,
      error: `No Ollama answers at http://${host}, so ollama/other cannot be used. Is it running?`,
    })
  })
})
