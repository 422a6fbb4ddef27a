import { afterEach, vi } from 'vitest'
import {
  ndjson,
  ollamaBuffered,
  ollamaLines,
  openAiBuffered,
  openAiChunks,
  type ScriptedCompletion,
  sse,
} from '../node/scripted-upstream-dialects.ts'
import { OLLAMA_BASE_URL } from './deployment.ts'

/** A completion request as it left the router, whatever the dialect. */
export type ChatRequest = {
  origin: string
  model: string
  /** Every text of the conversation, in order, with its role. */
  messages: { role: string; content: string }[]
  /** Pictures beside the texts in base64, in order, as an Ollama is given them. */
  images: string[]
  /** Names of the tools that were offered. */
  tools: string[]
  headers: Record<string, string>
}

/** What a model says to one request. */
export type Reply = Omit<ScriptedCompletion, 'usage'> & {
  /** Null: the provider does not tell. */
  usage?: ScriptedCompletion['usage'] | null
  /** The answer stops behind its first pieces of text until this resolves. */
  hold?: () => Promise<void>
  /** Text behind the hold. */
  after?: string[]
  /** How the answer ends: whole, with a broken connection, or never. */
  ending?: 'break' | 'hang'
  /** An answer that is no completion. */
  status?: number
  error?: string
  headers?: Record<string, string>
  /** The connection cannot be made. */
  unreachable?: boolean
}

export type Script = (request: ChatRequest) => Reply | Promise<Reply>

export type ScriptedModels = {
  /** What the models say from now on: a function, or one reply per request, the last one again and again. */
  script(first: Script | Reply, ...next: (Script | Reply)[]): void
  /** Runs before a listing of models is answered. */
  onListing: (() => Promise<void>) | null
  /** The Ollama has a model that takes images as well; for all tests of a file. */
  hasSeeing: boolean
  /** Completion requests, in order. */
  chats: ChatRequest[]
  /** URLs of the requests for a catalogue, in order. */
  listings: string[]
  /** Completion requests that the router gave up before their end. */
  aborted: number
  reset(): void
}

export const OLLAMA_MODELS = ['small', 'other', 'tiny']
const SEEING_MODEL = 'seeing'
const CONTEXT_TOKENS: Record<string, number> = { tiny: 600 }
const DEFAULT_USAGE = { input: 100, output: 20 }

/**
 * Every model provider of the test's configuration, behind the global `fetch`: an Ollama, and OpenAI-compatible
 * endpoints at any other address. Nothing else is answered. After each test every mock of the file is taken back, the
 * clock is real again, and the models have nothing to say.
 */
export function scriptModels(): ScriptedModels {
  let lines: (Script | Reply)[] = []
  const models: ScriptedModels = {
    script: (...all) => {
      lines = all
    },
    onListing: null,
    hasSeeing: false,
    chats: [],
    listings: [],
    aborted: 0,
    reset: () => {
      lines = []
      models.onListing = null
      models.chats = []
      models.listings = []
      models.aborted = 0
    },
  }
  const listed = () => [...OLLAMA_MODELS, ...(models.hasSeeing ? [SEEING_MODEL] : [])]
  const serve: typeof fetch = async (input, init) => {
    const request = new Request(input, init)
    const url = new URL(request.url)
    if (url.pathname.endsWith('/chat') || url.pathname.endsWith('/chat/completions')) {
      const body: ChatBody = await request.json()
      const chat = toChat(url.origin, body, request.headers)
      models.chats.push(chat)
      const line = lines.length > 1 ? lines.shift() : lines[0]
      if (line === undefined) throw new Error('nothing is scripted')
      const reply = typeof line === 'function' ? await line(chat) : line
      const ollama = url.origin === OLLAMA_BASE_URL
      // What an absent `stream` means differs between the dialects.
      const stream = ollama ? body.stream !== false : body.stream === true
      return answer(reply, { ollama, stream, signal: init?.signal }, () => {
        models.aborted++
      })
    }
    models.listings.push(request.url)
    await models.onListing?.()
    if (url.href === `${OLLAMA_BASE_URL}/api/tags`)
      return Response.json({ models: listed().map((name) => ({ name, model: name })) })
    if (url.href === `${OLLAMA_BASE_URL}/api/show`) {
      const { model }: { model: string } = await request.json()
      return Response.json({
        capabilities: ['completion', 'tools', ...(model === SEEING_MODEL ? ['vision'] : [])],
        model_info: { 'scripted.context_length': CONTEXT_TOKENS[model] ?? 32_768 },
        details: {},
      })
    }
    return new Response(`nothing is at ${request.url}`, { status: 599 })
  }
  const install = () => {
    vi.spyOn(globalThis, 'fetch').mockImplementation(serve)
  }
  install()
  afterEach(() => {
    vi.useRealTimers()
    vi.restoreAllMocks()
    install()
    models.reset()
  })
  return models
}

type ChatBody = {
  model: string
  stream?: boolean
  messages: { role: string; content?: string | null | { text?: string }[]; images?: string[] }[]
  tools?: { function: { name: string } }[]
}

const toChat = (origin: string, body: ChatBody, headers: Headers): ChatRequest => ({
  origin,
  model: body.model,
  messages: body.messages.map(({ role, content }) => ({
    role,
    content: Array.isArray(content) ? content.map(({ text }) => text ?? '').join('') : (content ?? ''),
  })),
  images: body.messages.flatMap(({ images = [] }) => images),
  tools: (body.tools ?? []).map((tool) => tool.function.name),
  headers: Object.fromEntries(headers),
})

function answer(
  reply: Reply,
  how: { ollama: boolean; stream: boolean; signal: AbortSignal | null | undefined },
  onAbort: () => void,
): Response {
  if (reply.unreachable) throw new TypeError('connection refused')
  if (reply.status !== undefined) {
    const { status, error = 'refused', headers = {} } = reply
    return Response.json(how.ollama ? { error } : { error: { message: error } }, { status, headers })
  }
  const { usage = DEFAULT_USAGE, ...said } = reply
  const completion: ScriptedCompletion = { ...said, ...(usage === null ? {} : { usage }) }
  if (!how.stream) {
    const whole = { ...completion, text: [...(reply.text ?? []), ...(reply.after ?? [])] }
    const { body, headers } = (how.ollama ? ollamaBuffered : openAiBuffered)(whole)
    return new Response(body as string, { headers: headers ?? {} })
  }
  const tell = (said: ScriptedCompletion): string[] =>
    how.ollama
      ? ollamaLines(said).map((line) => ndjson([line]))
      : openAiChunks(said).map((chunk) => sse([chunk], { done: false }))
  // What stands before the hold has no end: the last line of the dialect is left to the part behind it.
  const before = reply.text ?? []
  const spoken = tell({ text: before })
  const count = how.ollama ? before.length : before.length + 1
  const { reasoning: _, ...unreasoned } = completion
  const first = reply.reasoning
    ? tell({ reasoning: reply.reasoning }).slice(
        0,
        how.ollama ? reply.reasoning.length : reply.reasoning.length + 1,
      )
    : []
  const rest = tell({ ...unreasoned, text: reply.after ?? [] })
  if (!how.ollama) rest.push('data: [DONE]\n\n')
  return new Response(stream([...first, ...spoken.slice(0, count)], reply, rest, how.signal, onAbort), {
    headers: { 'content-type': how.ollama ? 'application/x-ndjson' : 'text/event-stream' },
  })
}

/** The pieces, the hold, the rest; an abort errors the stream at once. */
function stream(
  pieces: string[],
  { hold, ending }: Reply,
  rest: string[],
  signal: AbortSignal | null | undefined,
  onAbort: () => void,
): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder()
  const todo: (string | (() => Promise<void>))[] = [...pieces]
  if (hold) todo.push(hold)
  if (ending === undefined) todo.push(...rest)
  return new ReadableStream<Uint8Array>(
    {
      start: (controller) => {
        signal?.addEventListener('abort', () => {
          if (todo.length === 0 && ending === undefined) return
          onAbort()
          controller.error(signal.reason)
        })
      },
      pull: async (controller) => {
        for (;;) {
          const next = todo.shift()
          if (typeof next === 'function') {
            await next()
            if (signal?.aborted) return
          } else if (next !== undefined) return controller.enqueue(encoder.encode(next))
          else if (ending === 'hang') return new Promise<void>(() => {})
          else if (ending === 'break') return controller.error(new TypeError('terminated'))
          else return controller.close()
        }
      },
    },
    { highWaterMark: 0 },
  )
}
