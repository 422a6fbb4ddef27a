import { Agent, request as httpRequest } from 'node:http'
import { SwitchyardClient } from '../../src/client/client.ts'
import type { ContinueRequest } from '../../src/protocol/execution/continue.ts'
import type { ExecuteRequest } from '../../src/protocol/execution/execute.ts'
import { ExecutePolicy } from '../../src/protocol/execution/policy.ts'
import type { Result } from '../../src/protocol/result.ts'
import { MODEL } from './upstream.ts'

/** When the pieces of one streamed answer came, in milliseconds after the request was sent. */
export type Timing = { firstTokenMs: number; totalMs: number; text: string }

/** A signed-in client of the measured router. */
export type BenchRouter = {
  client: SwitchyardClient
  userId: string
  newSession(): Promise<string>
  /** One streamed turn. */
  execute(session: string): Promise<Timing>
  continueRun(session: string, message: ContinueRequest): Promise<Timing>
  /** The same bytes to the same upstream through a bare Worker. */
  bare(): Promise<Timing>
}

export async function makeRouter(url: string): Promise<BenchRouter> {
  const client = new SwitchyardClient({ baseUrl: url })
  const { api_key, user_id: userId } = must(await client.bootstrap())
  const { token } = must(await client.signIn(api_key))
  const headers = { Authorization: `Bearer ${token}`, Accept: 'text/event-stream' }
  const turn = (session: string, verb: string, body: unknown) =>
    timed(`${url}/api/v1/sessions/${session}/${verb}`, headers, body, '"text_delta"')
  return {
    client,
    userId,
    newSession: async () => must(await client.sessions.create({ title: 'bench' })).id,
    execute: (session) => turn(session, 'execute', TASK),
    continueRun: (session, message) => turn(session, 'continue', message),
    bare: () => timed(`${url}/bench/bare`, {}, BARE_REQUEST, '" word"'),
  }
}

export const TASK: ExecuteRequest = {
  input: { text: 'say something' },
  workspace: { root: '/project', referenced_paths: [] },
  policy: ExecutePolicy.parse({
    version: 1,
    source: 'merged',
    classification: {},
    routing: { default: { model: `ollama/${MODEL}` } },
    tools: { permissions: { read_file: 'allow' } },
    privacy: {},
  }),
  local_preferences: { auto_apply: false, local_only: false, no_network: false },
  attachments: { files: [], instructions: [], invoked_skills: [], available_skills: [] },
}

const BARE_REQUEST = { model: MODEL, messages: [{ role: 'user', content: 'say something' }], stream: true }

/** One connection for everything, as a client keeps it: no measurement pays for a handshake. */
const agent = new Agent({ keepAlive: true, maxSockets: 1 })

/** Sends and notes when `mark` was first seen in the answer, and when the answer ended. */
function timed(url: string, headers: Record<string, string>, body: unknown, mark: string): Promise<Timing> {
  return new Promise((resolve, reject) => {
    const content = JSON.stringify(body)
    const outgoing = httpRequest(url, {
      method: 'POST',
      agent,
      headers: {
        ...headers,
        'Content-Type': 'application/json',
        'Content-Length': Buffer.byteLength(content),
      },
    })
    let firstTokenMs = Number.NaN
    let text = ''
    outgoing.on('error', reject)
    outgoing.on('response', (response) => {
      response.setEncoding('utf8')
      response.on('data', (piece: string) => {
        text += piece
        if (Number.isNaN(firstTokenMs) && text.includes(mark)) firstTokenMs = performance.now() - sentAt
      })
      response.on('error', reject)
      response.on('end', () => {
        if (response.statusCode !== 200) reject(new Error(`HTTP ${response.statusCode}: ${text}`))
        else resolve({ firstTokenMs, totalMs: performance.now() - sentAt, text })
      })
    })
    const sentAt = performance.now()
    outgoing.end(content)
  })
}

export function must<T>(result: Result<T, unknown>): T {
  if (!result.ok) throw new Error(`the router refused: ${JSON.stringify(result.error)}`)
  return result.value
}
