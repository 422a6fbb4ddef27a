import { exports } from 'cloudflare:workers'
import { expect } from 'vitest'
import { SwitchyardClient } from '../../../src/client/client.ts'
import { driveRun, type RunOutcome } from '../../../src/client/drive.ts'
import { ExecuteRequest } from '../../../src/protocol/execution/execute.ts'
import { makeExecute } from './bodies.ts'
import { type Client, ORIGIN } from './router.ts'
import type { ScriptedModels } from './scripted-models.ts'
import { openOne, type SealedSession } from './sealed-client.ts'
import { crash } from './session-object.ts'

/** Our own client in an encrypted session, over a connection that breaks. */

/** What may happen to one request. */
export const FAULTS = [
  'is not sent',
  'loses its answer',
  'loses all but the beginning of its answer',
] as const
/** `at`: the number of the request, from 0. `dies`: the object of the session goes with the connection. */
export type Fault = { at: number; kind: (typeof FAULTS)[number]; dies: boolean }

/**
 * A connection to the router that fails at some of its requests.
 * @param endless answers may never end: one that is lost is not waited for
 */
export function faultyFetch(
  sessionId: string,
  faults: readonly Fault[],
  { endless = false }: { endless?: boolean } = {},
): { fetch: typeof fetch; count: () => number } {
  let count = 0
  const once: typeof fetch = async (input, init) => {
    const number = count++
    const fault = faults.find(({ at }) => at === number)
    const pass = () => exports.default.fetch(new Request(input, init))
    if (!fault) return pass()
    const die = async () => {
      if (fault.dies) await crash(sessionId)
    }
    const response = fault.kind === 'is not sent' ? null : await pass()
    if (response && fault.kind !== 'loses its answer') return new Response(cutShort(response, die), response)
    await (endless ? response?.body?.cancel() : response?.text())
    await die()
    throw new TypeError('the connection broke')
  }
  return { fetch: once, count: () => count }
}

/** The beginning of a body, its end never among it, and then a broken connection; all of it when it is asked for. */
function cutShort(response: Response, then: () => Promise<void>): ReadableStream<Uint8Array> {
  const reader = (response.body ?? new Response('').body)?.getReader()
  let begun = false
  const pull = async (controller: ReadableStreamDefaultController<Uint8Array>) => {
    const piece = begun ? undefined : (await reader?.read())?.value
    begun = true
    if (piece) {
      const holdsTheEnd = new TextDecoder().decode(piece).includes('turn_end')
      controller.enqueue(holdsTheEnd ? piece.subarray(0, piece.length / 2) : piece)
      return
    }
    await reader?.cancel().catch(() => undefined)
    await then()
    controller.error(new TypeError('the connection broke'))
  }
  return new ReadableStream({ pull }, { highWaterMark: 0 })
}

export type Told = {
  outcomes: (RunOutcome | undefined)[]
  ran: string[]
  requests: number
  history: unknown[]
}

/** Two prompts, of which the first needs a tool and the second the history, each carried to its end by our own client. */
export async function play(
  models: ScriptedModels,
  account: Client,
  session: SealedSession,
  faults: readonly Fault[],
): Promise<Told> {
  models.script((request) => {
    const last = request.messages.at(-1)
    if (last?.role === 'tool') return { text: ['it says ', last.content] }
    if (last?.content === 'read it')
      return {
        text: ['let me ', 'see'],
        calls: [{ id: 'p', name: 'read_file', arguments: { path: 'a.txt' } }],
      }
    return { text: [`${request.messages.filter(({ role }) => role !== 'system').length} `, 'messages'] }
  })
  const connection = faultyFetch(session.id, faults)
  const client = new SwitchyardClient({
    baseUrl: ORIGIN,
    token: account.token,
    fetch: connection.fetch,
    backoff: { firstMs: 1, maxMs: 1, attempts: 4, openAttempts: 4 },
  })
  const ran: string[] = []
  const outcomes: Told['outcomes'] = []
  for (const prompt of ['read it', 'and now']) {
    const run = driveRun({
      client,
      sessionId: session.id,
      request: ExecuteRequest.parse(makeExecute(prompt)),
      sealer: session.sealer,
      tools: {
        run: async ({ arguments: args }) => {
          ran.push(JSON.stringify(args))
          return { content: 'forty-two', isError: false }
        },
      },
      approver: {
        approveTool: async () => ({ decision: 'rejected' }),
        decideGate: async () => ({ decision: 'rejected' }),
      },
    })
    for await (const event of run) if (event.type === 'run_ended') outcomes.push(event.outcome)
  }
  const detail = await client.sessions.get(session.id)
  if (!detail.ok) throw new Error(JSON.stringify(detail.error))
  const history = detail.value.messages.map(({ role, content, id, interrupted }) => [
    role,
    'encrypted' in content ? openOne(session, `message:${id}`, content.encrypted) : content,
    ...(interrupted ? ['interrupted'] : []),
  ])
  return { outcomes, ran, requests: connection.count(), history }
}

const HISTORY = [
  ['user', 'read it'],
  ['assistant', 'let me see'],
  ['assistant', 'it says forty-two'],
  ['user', 'and now'],
  ['assistant', '5 messages'],
]

/** Both runs came to their ends, every message is kept once, and the tool ran once. */
export function expectWhole({ outcomes, history, ran }: Told): void {
  expect(outcomes).toEqual([
    { status: 'completed', turn: expect.anything() },
    { status: 'completed', turn: expect.anything() },
  ])
  expect(history).toEqual(HISTORY)
  expect(ran).toEqual(['{"path":"a.txt"}'])
}
