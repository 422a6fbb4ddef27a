import { setTimeout as pause } from 'node:timers/promises'
import type { ContinueRequest } from '../src/protocol/execution/continue.ts'
import { type Bench, figure } from './lib/bench.ts'
import { makeRouter, must } from './lib/router.ts'
import { withRuntime } from './lib/runtime.ts'
import { type Speech, startUpstream } from './lib/upstream.ts'

/** What `/bench/stored` tells. */
type Stored = {
  object: number
  gateway: number
  setAlarm: number
  deleteAlarm: number
  d1: number
  d1Trips: number
}

const PLAIN: Speech = { firstTokenMs: 5, tokens: 20, gapMs: 0 }
/** 2,000 tokens over about five seconds, as a hosted model speaks. */
const LONG: Speech = { firstTokenMs: 5, tokens: 2_000, gapMs: 2 }
const WITH_CALL: Speech = { ...PLAIN, call: { name: 'read_file', arguments: { path: 'a.ts' } } }
/**
 * What is written after the answer has left is written within this: an alarm is taken back, a row of the live list may
 * leave a second later, and the gateway stores one two seconds after that.
 */
const SETTLED_MS = 3_500

export const rows: Bench = {
  name: 'rows',
  what: 'durable rows written and D1 round trips per turn',
  run: async (print) => {
    const upstream = await startUpstream()
    try {
      await withRuntime(
        { OLLAMA_BASE_URL: upstream.url, UPSTREAM: upstream.url, COUNT_ROWS: '1' },
        async ({ url }) => {
          const router = await makeRouter(url)
          const stored = async (work: () => Promise<unknown>): Promise<Stored> => {
            await fetch(`${url}/bench/stored`)
            await work()
            await pause(SETTLED_MS)
            return (await (await fetch(`${url}/bench/stored`)).json()) as Stored
          }
          const tell = (label: string, told: Stored, budget?: string) => {
            const { object, gateway, setAlarm, deleteAlarm, d1, d1Trips } = told
            print(figure(label, `${object + gateway + setAlarm + deleteAlarm + d1} rows`, budget))
            print(
              `    object ${object}, gateway ${gateway}, alarm set ${setAlarm} and cleared ${deleteAlarm}, D1 ${d1}`,
            )
            print(figure('    D1 round trips', String(d1Trips), '2'))
          }
          const session = await router.newSession()
          upstream.speech = PLAIN
          tell('first plain turn of a session', await stored(() => router.execute(session)))
          tell('a plain turn', await stored(() => router.execute(session)), '25 rows')
          upstream.speech = WITH_CALL
          tell('a turn that ends in a tool call', await stored(() => router.execute(session)))
          const results = await resultsFor(router, session)
          tell(
            'a turn that begins with tool results',
            await stored(() => router.continueRun(session, results)),
          )
          upstream.speech = LONG
          tell('a turn of 2,000 tokens', await stored(() => router.execute(session)), '60 rows')
        },
      )
    } finally {
      await upstream.close()
    }
  },
}

async function resultsFor(
  { client }: Awaited<ReturnType<typeof makeRouter>>,
  session: string,
): Promise<ContinueRequest> {
  const run = must(await client.currentRun(session))
  if (run.status !== 'awaiting_tool') throw new Error(`the run does not wait for a tool: ${run.status}`)
  const results = run.data.tool_requests.map(({ call_id }) => ({ call_id, content: 'x', is_error: false }))
  return { type: 'tool_results', data: { results } }
}
