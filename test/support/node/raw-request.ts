import { type ClientRequest, request as httpRequest, type IncomingHttpHeaders } from 'node:http'
import { TurnEvent } from '../../../src/protocol/execution/stream.ts'

/** The bytes of an answer as they come, with nothing of a client library in between. */
export type RawAnswer = {
  status: number
  headers: IncomingHttpHeaders
  /** What has come so far. */
  readonly text: string
  /** Waits until what has come so far satisfies the condition; rejects when the answer ends without it. */
  until(condition: (text: string) => boolean): Promise<string>
  /** The whole of it, once it has ended; rejects when the connection breaks before. */
  whole(): Promise<string>
  /** Drops the connection, as a client that vanished. */
  cut(): void
}

export type RawOptions = {
  method?: string
  headers?: Record<string, string>
  body?: unknown
}

/** A request on a connection of its own; `cut` drops it before anything is answered. */
export type RawRequest = { answered: Promise<RawAnswer>; cut(): void }

export function sendRaw(url: string, { method = 'GET', headers = {}, body }: RawOptions = {}): RawRequest {
  const content = body === undefined ? undefined : JSON.stringify(body)
  const outgoing = httpRequest(url, {
    method,
    agent: false,
    headers: { ...(content === undefined ? {} : { 'Content-Type': 'application/json' }), ...headers },
  })
  const answered = readAnswer(outgoing)
  outgoing.end(content)
  return { answered, cut: () => outgoing.destroy() }
}

/** Sends and waits for the head of the answer. */
export const openRaw = (url: string, options: RawOptions = {}): Promise<RawAnswer> =>
  sendRaw(url, options).answered

function readAnswer(outgoing: ClientRequest): Promise<RawAnswer> {
  const answered = new Promise<RawAnswer>((resolve, reject) => {
    outgoing.once('error', reject)
    outgoing.once('response', (response) => {
      let text = ''
      let ending: { ok: boolean } | null = null
      const watchers = new Set<() => void>()
      const changed = () => {
        for (const watcher of [...watchers]) watcher()
      }
      const until = (done: () => boolean) =>
        new Promise<string>((resolveText, rejectText) => {
          const look = () => {
            if (done()) resolveText(text)
            else if (ending)
              rejectText(new Error(`the answer ended before its time: ${JSON.stringify(text)}`))
            else return
            watchers.delete(look)
          }
          watchers.add(look)
          look()
        })
      response.setEncoding('utf8')
      response.on('data', (piece: string) => {
        text += piece
        changed()
      })
      response.on('error', () => {})
      response.on('close', () => {
        ending = { ok: response.complete }
        changed()
      })
      resolve({
        status: response.statusCode ?? 0,
        headers: response.headers,
        get text() {
          return text
        },
        until: (condition) => until(() => condition(text)),
        whole: () => until(() => ending?.ok === true),
        cut: () => response.destroy(),
      })
    })
  })
  // A request that is cut before its answer rejects; whoever cut it does not wait for it.
  answered.catch(() => {})
  return answered
}

export type Frame = { id: string; event: TurnEvent }

const FRAME = /id: ([^\n]+)\ndata: (\{[^\n]*\})\n\n|: [^\n]*\n\n/y

/**
 * The events in the bytes of a stream. Every byte must belong to an event (`id:` line, `data:` line, empty line) or to a
 * comment; an event that has not come whole is left out.
 */
export function framesOf(text: string): Frame[] {
  const frames: Frame[] = []
  FRAME.lastIndex = 0
  while (FRAME.lastIndex < text.length) {
    const from = FRAME.lastIndex
    const match = FRAME.exec(text)
    if (!match) {
      const rest = text.slice(from)
      if (rest.includes('\n\n')) throw new Error(`this is no server-sent event: ${JSON.stringify(rest)}`)
      return frames
    }
    const [, id, data] = match
    if (id !== undefined && data !== undefined) frames.push({ id, event: TurnEvent.parse(JSON.parse(data)) })
  }
  return frames
}

/** Whether the stream has told so many events. */
export const hasFrames =
  (count: number) =>
  (text: string): boolean =>
    framesOf(text).length >= count
