import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
import { z } from 'zod'
import { err, ok, type Result } from '../../protocol/result.ts'
import { doneBody, isDemoModel, loadBody, notFound, pieceBody, showBody, tagsBody, VERSION } from './api.ts'
import { ChatRequest } from './chat-request.ts'
import { type Completion, complete } from './model.ts'

export type DemoModelOptions = {
  /** 0 or absent: any free one. */
  port?: number
  /** Between two pieces of a streamed answer; slow enough to be seen as a stream, quick enough not to annoy. */
  pieceDelayMs?: number
}

export type DemoModelServer = {
  /** `http://127.0.0.1:PORT`, without a path. */
  url: string
  /** Ends open answers, too. */
  close(): Promise<void>
}

export type DemoModelFailure = { kind: 'port_busy' | 'port_forbidden'; message: string }

const DEFAULT_PIECE_DELAY_MS = 8

/** Twice what the router takes as a request, since a conversation grows by its tool results. */
const MAX_BODY_BYTES = 32 * 1024 * 1024

/** Serves the demo model in Ollama's wire format, on this machine only. */
export async function startDemoModel(
  options: DemoModelOptions = {},
): Promise<Result<DemoModelServer, DemoModelFailure>> {
  const { port = 0, pieceDelayMs = DEFAULT_PIECE_DELAY_MS } = options
  const server = createServer((request, response) => {
    handle(request, response, pieceDelayMs).catch((error: unknown) => {
      const message = error instanceof Error ? error.message : 'unknown failure'
      if (response.headersSent) response.destroy()
      else sendJson(response, 500, { error: message })
    })
  })
  const failure = await new Promise<NodeJS.ErrnoException | undefined>((resolve) => {
    server.once('error', resolve)
    server.listen(port, '127.0.0.1', () => resolve(undefined))
  })
  if (failure?.code === 'EADDRINUSE') return err({ kind: 'port_busy', message: `Port ${port} is in use.` })
  if (failure?.code === 'EACCES')
    return err({ kind: 'port_forbidden', message: `Port ${port} needs special rights.` })
  if (failure !== undefined) throw failure
  const { port: actual } = server.address() as AddressInfo
  return ok({
    url: `http://127.0.0.1:${actual}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  })
}

async function handle(
  request: IncomingMessage,
  response: ServerResponse,
  pieceDelayMs: number,
): Promise<void> {
  const path = new URL(request.url ?? '/', 'http://localhost').pathname
  const method = request.method === 'HEAD' ? 'GET' : request.method
  switch (`${method} ${path}`) {
    case 'GET /':
      response.setHeader('content-type', 'text/plain')
      response.end("Switchyard's demo model is running (Ollama's API)")
      return
    case 'GET /api/version':
      return sendJson(response, 200, { version: VERSION })
    case 'GET /api/tags':
      return sendJson(response, 200, tagsBody())
    case 'POST /api/show':
      return show(request, response)
    case 'POST /api/chat':
      return chat(request, response, pieceDelayMs)
    default:
      return sendJson(response, 404, { error: `${method} ${path} is not served by the demo model` })
  }
}

/** Older clients name the model by `name`. */
const ShowRequest = z.object({ model: z.string().optional(), name: z.string().optional() })

async function show(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const body = await readBody(request, ShowRequest)
  if (!body.ok) return sendJson(response, body.error.status, { error: body.error.message })
  const name = body.value.model ?? body.value.name ?? ''
  return isDemoModel(name) ? sendJson(response, 200, showBody()) : sendJson(response, 404, notFound(name))
}

async function chat(request: IncomingMessage, response: ServerResponse, pieceDelayMs: number): Promise<void> {
  const startedAtMs = Date.now()
  const body = await readBody(request, ChatRequest)
  if (!body.ok) return sendJson(response, body.error.status, { error: body.error.message })
  const { model, messages, stream } = body.value
  if (!isDemoModel(model)) return sendJson(response, 404, notFound(model))
  if (messages.length === 0) return sendJson(response, 200, loadBody(model, startedAtMs))
  const completion = complete(body.value)
  if (stream) return streamAnswer(response, model, completion, startedAtMs, pieceDelayMs)
  const timing = { startedAtMs, endedAtMs: Date.now() }
  const { pieces, toolCalls } = completion
  return sendJson(response, 200, doneBody(model, completion, timing, pieces.join(''), toolCalls))
}

/** One JSON object per line; it ends early when the client is gone. */
async function streamAnswer(
  response: ServerResponse,
  model: string,
  completion: Completion,
  startedAtMs: number,
  pieceDelayMs: number,
): Promise<void> {
  response.writeHead(200, { 'content-type': 'application/x-ndjson' })
  const send = (line: object) => response.write(`${JSON.stringify(line)}\n`)
  if (completion.toolCalls.length > 0) send(pieceBody(model, Date.now(), '', completion.toolCalls))
  for (const piece of completion.pieces) {
    if (response.destroyed) return
    send(pieceBody(model, Date.now(), piece))
    if (pieceDelayMs > 0) await wait(pieceDelayMs)
  }
  response.end(`${JSON.stringify(doneBody(model, completion, { startedAtMs, endedAtMs: Date.now() }))}\n`)
}

type BadRequest = { status: 400 | 413; message: string }

async function readBody<S extends z.ZodType>(
  request: IncomingMessage,
  schema: S,
): Promise<Result<z.infer<S>, BadRequest>> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of request) {
    bytes += chunk.length
    if (bytes > MAX_BODY_BYTES) return err({ status: 413, message: 'the request is too large' })
    chunks.push(chunk)
  }
  const parsed = schema.safeParse(parseJson(Buffer.concat(chunks).toString('utf8')))
  if (parsed.success) return ok(parsed.data)
  const [problem] = parsed.error.issues
  const where = problem?.path.join('.') ?? ''
  return err({
    status: 400,
    message: where === '' ? 'the body is no JSON object' : `${where}: ${problem?.message}`,
  })
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function sendJson(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { 'content-type': 'application/json; charset=utf-8' })
  response.end(JSON.stringify(body))
}
