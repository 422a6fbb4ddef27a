import { createServer, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'

/** A chat request as the router sends it, as far as scripts look at it. */
export type ChatRequest = {
  model: string
  messages: {
    role: string
    content: string
    tool_calls?: { function: { name: string; arguments: object } }[]
  }[]
  tools?: { function: { name: string } }[]
}

/** What the model says: pieces of text, a pause that lasts until it is released, calls. */
export type Reply = {
  pieces?: string[]
  /** Silence behind each of the pieces. */
  gapMs?: number
  /** Called after the pieces; the answer goes on when it resolves. */
  hold?: () => Promise<void>
  /** Pieces after the pause. */
  after?: string[]
  calls?: { name: string; arguments: object }[]
  /** The connection breaks instead of the answer's end. */
  breaks?: boolean
  status?: number
  error?: string
}

/** A model of this name takes images. */
const SEEING_MODEL = 'seeing'

export type ScriptedOllama = {
  url: string
  /** Every chat request, in order of arrival. */
  requests: ChatRequest[]
  /** Upstream connections that were closed by the router before the answer was complete. */
  aborted: number
  onAbort: (listener: () => void) => void
  close(): Promise<void>
}

/** An Ollama on loopback whose answers are decided by `reply`; its wire format is the real one. */
export async function startScriptedOllama(
  reply: (request: ChatRequest) => Reply,
  { models = ['scripted'], contextTokens = 32_768 }: { models?: string[]; contextTokens?: number } = {},
): Promise<ScriptedOllama> {
  const listeners = new Set<() => void>()
  const state: ScriptedOllama = {
    url: '',
    requests: [],
    aborted: 0,
    onAbort: (listener) => listeners.add(listener),
    close: async () => {},
  }
  const server: Server = createServer(async (request, response) => {
    let body = ''
    for await (const chunk of request) body += chunk
    if (request.url === '/api/tags')
      return json(response, { models: models.map((name) => ({ name, model: name })) })
    if (request.url === '/api/show') {
      const { model }: { model?: string } = JSON.parse(body)
      return json(response, {
        capabilities: ['completion', 'tools', ...(model === SEEING_MODEL ? ['vision'] : [])],
        model_info: { 'general.architecture': 'scripted', 'scripted.context_length': contextTokens },
        details: {},
      })
    }
    if (request.url !== '/api/chat') return json(response, { error: 'not found' }, 404)
    const chat: ChatRequest = JSON.parse(body)
    state.requests.push(chat)
    const said = reply(chat)
    if (said.error !== undefined) return json(response, { error: said.error }, said.status ?? 500)
    let done = false
    response.on('close', () => {
      if (done) return
      state.aborted++
      for (const listener of listeners) listener()
    })
    response.writeHead(200, { 'content-type': 'application/x-ndjson' })
    const send = (message: object, last = false) =>
      response.write(
        `${JSON.stringify({
          model: chat.model,
          created_at: new Date(0).toISOString(),
          message: { role: 'assistant', content: '', ...message },
          done: last,
          ...(last ? { done_reason: 'stop', prompt_eval_count: 100, eval_count: 20 } : {}),
        })}\n`,
      )
    for (const content of said.pieces ?? []) {
      if (response.destroyed) return
      send({ content })
      if (said.gapMs !== undefined) await pause(said.gapMs)
    }
    if (said.hold) await said.hold()
    if (response.destroyed) return
    for (const content of said.after ?? []) send({ content })
    if (said.breaks) {
      done = true
      return response.destroy()
    }
    if (said.calls) send({ tool_calls: said.calls.map((call) => ({ function: call })) })
    send({}, true)
    done = true
    response.end()
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  state.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  state.close = () =>
    new Promise((resolve) => {
      server.closeAllConnections()
      server.close(() => resolve())
    })
  return state
}

function json(response: ServerResponse, body: object, status = 200): void {
  response.writeHead(status, { 'content-type': 'application/json' })
  response.end(JSON.stringify(body))
}

/** The last message of a role. */
export const lastOf = (request: ChatRequest, role: string): string =>
  request.messages.findLast((message) => message.role === role)?.content ?? ''
