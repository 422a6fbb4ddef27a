import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import { setTimeout as delay } from 'node:timers/promises'
import { piecesOf, type Script, type ScriptedAnswer, type SeenRequest } from './scripted-upstream.ts'

export type ScriptedUpstreamOptions = {
  /** Says what the real provider would reject in a request; one with faults is answered with 400 and them. */
  check?: (request: SeenRequest) => string[]
}

/** A provider on a real port of the loopback interface, for what only sockets show. */
export async function startScriptedUpstream(
  script: Script | ScriptedAnswer,
  { check = () => [] }: ScriptedUpstreamOptions = {},
) {
  const requests: SeenRequest[] = []
  const faults: string[] = []
  const answerTo: Script = typeof script === 'function' ? script : () => script
  let noteCallerLeft = () => {}
  const callerLeft = new Promise<void>((resolve) => {
    noteCallerLeft = resolve
  })

  const server = createServer(async (incoming, outgoing) => {
    let broken = false
    // `close` before the answer has ended: the caller went away.
    outgoing.on('close', () => {
      if (!outgoing.writableFinished && !broken) noteCallerLeft()
    })
    const parts: Buffer[] = []
    for await (const part of incoming) parts.push(part)
    const text = Buffer.concat(parts).toString('utf8')
    const path = incoming.url ?? '/'
    const seen: SeenRequest = {
      method: incoming.method ?? 'GET',
      url: `${url}${path}`,
      path,
      headers: Object.fromEntries(
        Object.entries(incoming.headers).map(([name, value]) => [name, String(value)]),
      ),
      body: text === '' ? undefined : JSON.parse(text),
    }
    requests.push(seen)
    const found = check(seen)
    faults.push(...found)
    const answer = found.length === 0 ? await answerTo(seen) : refused(found)
    outgoing.writeHead(answer.status ?? 200, answer.headers)
    outgoing.flushHeaders()
    for (const piece of piecesOf(answer)) {
      if (!outgoing.write(piece)) await once(outgoing, 'drain')
    }
    if (answer.repeat !== undefined) await repeatUntilLeft(outgoing, answer.repeat)
    else if (answer.ending === 'break') {
      broken = true
      // What was written still arrives.
      if (incoming.socket.writable) incoming.socket.destroySoon()
    } else if (answer.ending !== 'hang') outgoing.end()
  })

  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('no port')
  const url = `http://127.0.0.1:${address.port}`

  return {
    url,
    requests,
    /** What the check found, over all requests. */
    faults,
    /** Settles when a caller has closed a connection whose answer was not finished. */
    callerLeft,
    async close(): Promise<void> {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}

async function repeatUntilLeft(
  outgoing: ServerResponse,
  { piece, everyMs }: NonNullable<ScriptedAnswer['repeat']>,
): Promise<void> {
  const left = once(outgoing, 'close')
  while (!outgoing.destroyed) {
    if (!outgoing.write(piece)) await Promise.race([once(outgoing, 'drain'), left])
    // Also what leaves at once lets the other end have its turn.
    await delay(everyMs ?? 0)
  }
}

const refused = (faults: readonly string[]): ScriptedAnswer => ({
  status: 400,
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify({ error: { type: 'invalid_request_error', message: faults.join('; ') } }),
})
