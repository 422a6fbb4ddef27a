import http from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Duplex } from 'node:stream'

export type RecordedRequest = {
  method: string
  path: string
  headers: http.IncomingHttpHeaders
  body: unknown
}

/** Answers one request. */
export type Reply = (response: http.ServerResponse, request: RecordedRequest) => void | Promise<void>

export type ScriptedRouter = {
  url: string
  /** Every request in the order of arrival. */
  requests: RecordedRequest[]
  /** Adds replies for one method and path; each is used once, in order. */
  script(method: string, path: string, ...replies: Reply[]): void
  /** A reply for every further request of that method and path; a `*` as the path's last part stands for any. */
  always(method: string, path: string, reply: Reply): void
  /** Requests that nothing was scripted for; a test expects none. */
  unexpected: string[]
  /** Who serves upgrades; without that they are refused. */
  upgraded: ((request: http.IncomingMessage, socket: Duplex, head: Buffer) => void) | undefined
  /** How often a method and path was asked for. */
  count(method: string, path: string): number
  close(): Promise<void>
}

/** A router that says exactly what a test wrote down, over real HTTP on a free port. */
export async function startScriptedRouter(): Promise<ScriptedRouter> {
  const queues = new Map<string, Reply[]>()
  const standing = new Map<string, Reply>()
  const requests: RecordedRequest[] = []
  const unexpected: string[] = []
  const server = http.createServer(async (incoming, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of incoming) chunks.push(chunk)
    const text = Buffer.concat(chunks).toString('utf8')
    const path = incoming.url ?? ''
    const request: RecordedRequest = {
      method: incoming.method ?? '',
      path,
      headers: incoming.headers,
      body: text === '' ? undefined : JSON.parse(text),
    }
    requests.push(request)
    const key = `${request.method} ${path}`
    const reply = queues.get(key)?.shift() ?? standing.get(key) ?? standing.get(key.replace(/[^/]*$/, '*'))
    if (!reply) {
      unexpected.push(key)
      return json({ error: { code: 'not_scripted', message: key } }, 404)(response, request)
    }
    await reply(response, request)
  })
  server.on('upgrade', (request, socket, head) => {
    if (router.upgraded) router.upgraded(request, socket, head)
    else socket.end('HTTP/1.1 404 Not Found\r\nConnection: close\r\nContent-Length: 0\r\n\r\n')
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const router: ScriptedRouter = {
    url: `http://127.0.0.1:${port}`,
    requests,
    unexpected,
    upgraded: undefined,
    script: (method, path, ...replies) => {
      const key = `${method} ${path}`
      queues.set(key, [...(queues.get(key) ?? []), ...replies])
    },
    always: (method, path, reply) => standing.set(`${method} ${path}`, reply),
    count: (method, path) => requests.filter((one) => one.method === method && one.path === path).length,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
  return router
}

/** A JSON body. */
export const json =
  (body: unknown, status = 200, headers: Record<string, string> = {}): Reply =>
  (response) => {
    response.writeHead(status, { 'Content-Type': 'application/json', ...headers })
    response.end(JSON.stringify(body))
  }

/** The error envelope. */
export const refusal = (status: number, code: string, headers: Record<string, string> = {}): Reply =>
  json({ error: { code, message: `scripted ${code}` } }, status, headers)

/** An event with the id that a resumption names, or with none. */
export type ScriptedEvent = { id?: string; event: unknown }

/** Numbers events as one turn: `<turn>.<n>`. */
export const numbered = (turn: number, events: unknown[], from = 1): ScriptedEvent[] =>
  events.map((event, i) => ({ id: `${turn}.${from + i}`, event }))

export const encodeEvent = ({ id, event }: ScriptedEvent): string =>
  `${id === undefined ? '' : `id: ${id}\n`}data: ${JSON.stringify(event)}\n\n`

/** An event stream that ends after the events, or whose connection is cut there. */
export const stream =
  (events: ScriptedEvent[], end: 'end' | 'cut' = 'end'): Reply =>
  async (response) => {
    response.writeHead(200, { 'Content-Type': 'text/event-stream' })
    response.flushHeaders()
    for (const event of events) {
      // Written out before the cut, or the events would be lost with it.
      await new Promise<void>((resolve) => response.write(encodeEvent(event), () => resolve()))
    }
    if (end === 'end') response.end()
    else response.destroy()
  }

/** A stream that stays open after its events, until the test or the client ends it. */
export const openStream =
  (events: ScriptedEvent[], opened: (response: http.ServerResponse) => void = () => undefined): Reply =>
  (response) => {
    response.writeHead(200, { 'Content-Type': 'text/event-stream' })
    response.flushHeaders()
    for (const event of events) response.write(encodeEvent(event))
    opened(response)
  }

/** A connection that breaks before any answer. */
export const hangUp: Reply = (response) => {
  response.destroy()
}
