import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'

/** How the upstream speaks; changed between measurements. */
export type Speech = {
  /** Silence before the first token. */
  firstTokenMs: number
  tokens: number
  /** Silence between tokens; without one they leave together. */
  gapMs: number
  /** Ends with this call instead of an answer, unless it was just given a result. */
  call?: { name: string; arguments: object }
}

export type Upstream = { url: string; speech: Speech; close(): Promise<void> }

export const MODEL = 'bench'
const QUIET: Speech = { firstTokenMs: 0, tokens: 1, gapMs: 0 }

/** An Ollama on loopback that says words without meaning, at a pace that is set. */
export async function startUpstream(): Promise<Upstream> {
  const upstream: Upstream = { url: '', speech: QUIET, close: async () => {} }
  const server = createServer(async (request, response) => {
    let body = ''
    for await (const chunk of request) body += chunk
    if (request.url === '/api/chat') await speak(response, upstream.speech, body)
    else if (request.url === '/api/tags')
      response.end(JSON.stringify({ models: [{ name: MODEL, model: MODEL }] }))
    else if (request.url === '/api/show') response.end(JSON.stringify(DESCRIPTION))
    else response.writeHead(404).end()
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  upstream.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  upstream.close = () =>
    new Promise((resolve) => {
      server.closeAllConnections()
      server.close(() => resolve())
    })
  return upstream
}

const DESCRIPTION = {
  capabilities: ['completion', 'tools'],
  model_info: { 'general.architecture': 'bench', 'bench.context_length': 32_768 },
  details: {},
}

async function speak(response: ServerResponse, speech: Speech, body: string): Promise<void> {
  response.writeHead(200, { 'content-type': 'application/x-ndjson' })
  response.flushHeaders()
  if (speech.firstTokenMs > 0) await pause(speech.firstTokenMs)
  const say = (message: object, rest: object = { done: false }) =>
    response.write(
      `${JSON.stringify({ model: MODEL, message: { role: 'assistant', content: '', ...message }, ...rest })}\n`,
    )
  for (let n = 0; n < speech.tokens; n++) {
    say({ content: ' word' })
    if (speech.gapMs > 0) await pause(speech.gapMs)
  }
  if (speech.call && !endsWithResult(body)) say({ tool_calls: [{ function: speech.call }] })
  say({}, { done: true, done_reason: 'stop', prompt_eval_count: 100, eval_count: speech.tokens })
  response.end()
}

function endsWithResult(body: string): boolean {
  const { messages }: { messages: { role: string }[] } = JSON.parse(body)
  return messages.at(-1)?.role === 'tool'
}
