/** What the scripted provider answers to one request. */
export type ScriptedAnswer = {
  status?: number
  headers?: Record<string, string>
  /** Text is sent as UTF-8. */
  body?: string | Uint8Array
  /** How many bytes of the body travel together; all of them without it. */
  chunkBytes?: number
  /** What follows the body again and again, without an end; by itself, or once in so many milliseconds. */
  repeat?: { piece: string; everyMs?: number }
  /** After the body: a clean end, a broken connection, or silence until the caller gives up. */
  ending?: 'close' | 'break' | 'hang'
}

/** A request as the scripted provider saw it. */
export type SeenRequest = {
  method: string
  url: string
  path: string
  headers: Record<string, string>
  /** The JSON body; undefined for a request without one. */
  body: unknown
}

export type Script = (request: SeenRequest) => ScriptedAnswer | Promise<ScriptedAnswer>

/** The body of an answer in the pieces in which it travels. */
export function piecesOf({ body = '', chunkBytes }: ScriptedAnswer): Uint8Array[] {
  const bytes = typeof body === 'string' ? new TextEncoder().encode(body) : body
  if (chunkBytes === undefined) return bytes.length === 0 ? [] : [bytes]
  const pieces: Uint8Array[] = []
  for (let at = 0; at < bytes.length; at += chunkBytes) pieces.push(bytes.subarray(at, at + chunkBytes))
  return pieces
}

/** A provider inside the process: a `fetch` that answers from a script and notes what it was asked. */
export function scriptedFetch(script: Script | ScriptedAnswer) {
  const requests: SeenRequest[] = []
  const inits: RequestInit[] = []
  let aborted = 0
  const answerTo: Script = typeof script === 'function' ? script : () => script

  const scripted: typeof fetch = async (input, init = {}) => {
    const request = new Request(input, init)
    const text = await request.text()
    const seen: SeenRequest = {
      method: request.method,
      url: request.url,
      path: new URL(request.url).pathname,
      headers: Object.fromEntries(request.headers),
      body: text === '' ? undefined : JSON.parse(text),
    }
    requests.push(seen)
    inits.push(init)
    init.signal?.addEventListener('abort', () => {
      aborted += 1
    })
    const answer = await answerTo(seen)
    const { status = 200, headers = {}, ending = 'close', repeat } = answer
    const pieces = piecesOf(answer)
    const repeated = new TextEncoder().encode(repeat?.piece)
    const body = new ReadableStream<Uint8Array>({
      start: (controller) => {
        init.signal?.addEventListener('abort', () => controller.error(init.signal?.reason))
      },
      pull: async (controller) => {
        const piece = pieces.shift()
        if (piece === undefined && repeat?.everyMs !== undefined) {
          await new Promise<void>((resolve) => {
            const timer = setTimeout(resolve, repeat.everyMs)
            init.signal?.addEventListener('abort', () => clearTimeout(timer))
          })
        }
        if (piece !== undefined) controller.enqueue(piece)
        else if (repeat !== undefined) controller.enqueue(repeated)
        else if (ending === 'close') controller.close()
        else if (ending === 'break') {
          // What was sent has been read by then.
          await new Promise((resolve) => setImmediate(resolve))
          controller.error(new TypeError('terminated'))
        } else await new Promise<void>(() => {})
      },
    })
    return new Response(status === 204 || status === 304 ? null : body, { status, headers })
  }

  return {
    fetch: scripted,
    requests,
    inits,
    /** How many of the requests had their signal aborted, also after their end. */
    abortedCount: () => aborted,
  }
}
