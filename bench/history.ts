import { type Bench, figure, ms, times } from './lib/bench.ts'
import { type BenchRouter, makeRouter } from './lib/router.ts'
import { withRuntime } from './lib/runtime.ts'
import { median } from './lib/statistics.ts'
import { startUpstream, type Upstream } from './lib/upstream.ts'

const SHORT_MESSAGES = 10
const LONG_MESSAGES = 10_000
const ROUNDS = 40
const WARM_UP = 5
/** A hosted model's silence before it speaks is at least so long. */
const THINKING_MS = 50
/** A line of talk: the window of the model holds a good part of the newest thousand. */
const TEXT = 'a message of the past, about as long as people write when they talk to a model in between'

export const history: Bench = {
  name: 'history',
  what: `a turn in a session of ${LONG_MESSAGES} messages against one of ${SHORT_MESSAGES}`,
  run: async (print) => {
    const upstream = await startUpstream()
    try {
      await withRuntime({ OLLAMA_BASE_URL: upstream.url, UPSTREAM: upstream.url }, async ({ url }) => {
        const router = await makeRouter(url)
        const short = await filledSession(router, url, SHORT_MESSAGES)
        const long = await filledSession(router, url, LONG_MESSAGES)
        await compare(router, upstream, { short, long, firstTokenMs: 0, rounds: WARM_UP })
        for (const firstTokenMs of [THINKING_MS, 0]) {
          const measured = await compare(router, upstream, { short, long, firstTokenMs, rounds: ROUNDS })
          const budget = firstTokenMs > 0 ? '1.2 ×' : undefined
          print(
            figure(
              `a turn, upstream silent for ${firstTokenMs} ms`,
              times(measured.long / measured.short),
              budget,
            ),
          )
          print(`    long ${ms(measured.long)}, short ${ms(measured.short)} (medians of ${ROUNDS})`)
        }
      })
    } finally {
      await upstream.close()
    }
  },
}

/** A session that has had one turn and so many messages before its next. */
async function filledSession(router: BenchRouter, url: string, messages: number): Promise<string> {
  const session = await router.newSession()
  await router.execute(session)
  const past = new URLSearchParams({ session, messages: String(messages) })
  await fetch(`${url}/bench/fill?${past}`, { method: 'POST', body: TEXT })
  return session
}

type Comparison = { short: string; long: string; firstTokenMs: number; rounds: number }

/** Medians of the time from the request to the end of the answer, measured in turn. */
async function compare(
  router: BenchRouter,
  upstream: Upstream,
  { short, long, firstTokenMs, rounds }: Comparison,
): Promise<{ short: number; long: number }> {
  upstream.speech = { firstTokenMs, tokens: 5, gapMs: 0 }
  const measured: { short: number[]; long: number[] } = { short: [], long: [] }
  for (let round = 0; round < rounds; round++) {
    measured.short.push((await router.execute(short)).totalMs)
    measured.long.push((await router.execute(long)).totalMs)
  }
  return { short: median(measured.short), long: median(measured.long) }
}
