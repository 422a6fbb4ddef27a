import { type Bench, figure, ms, times } from './lib/bench.ts'
import { type BenchRouter, makeRouter, type Timing } from './lib/router.ts'
import { withRuntime } from './lib/runtime.ts'
import { median } from './lib/statistics.ts'
import { type Speech, startUpstream, type Upstream } from './lib/upstream.ts'

const PAIRS = 100
/** Turns per session: enough to share the price of making one, too few to grow a history. */
const TURNS_PER_SESSION = 10
/** Before a figure counts, both sides have been compiled and have their connections. */
const WARM_UP = 20
/** A hosted model's silence before it speaks is at least so long. */
const THINKING_MS = 50
const MANY_DELTAS = 1_000
const LONG_PAIRS = 10
/** As a fast hosted model: 500 tokens a second. */
const PACE_MS = 2
const QUICK: Speech = { firstTokenMs: 0, tokens: 5, gapMs: 0 }

/** Gives the session of the n-th pair. */
type Sessions = (n: number) => Promise<string>

/** Sessions whose object is up and knows its model, as at the second prompt of a conversation and later. */
function warmSessions(router: BenchRouter, upstream: Upstream): Sessions {
  let session = ''
  return async (n) => {
    if (n % TURNS_PER_SESSION > 0) return session
    session = await router.newSession()
    const { speech } = upstream
    upstream.speech = QUICK
    await router.execute(session)
    upstream.speech = speech
    return session
  }
}

type Pair = { routed: Timing; bare: Timing }

/** Measures both ways in turn, the order changing each time, so that what disturbs one disturbs the other. */
async function measurePairs(router: BenchRouter, count: number, sessions: Sessions): Promise<Pair[]> {
  const pairs: Pair[] = []
  for (let n = 0; n < count; n++) {
    const id = await sessions(n)
    if (n % 2 === 0) {
      const routed = await router.execute(id)
      pairs.push({ routed, bare: await router.bare() })
    } else {
      const bare = await router.bare()
      pairs.push({ routed: await router.execute(id), bare })
    }
  }
  return pairs
}

function compare(pairs: readonly Pair[], of: (timing: Timing) => number) {
  const routed = median(pairs.map((pair) => of(pair.routed)))
  const bare = median(pairs.map((pair) => of(pair.bare)))
  return { routed, bare, ratio: routed / bare }
}

const firstTokenOf = ({ firstTokenMs }: Timing) => firstTokenMs
const totalOf = ({ totalMs }: Timing) => totalMs

export const firstToken: Bench = {
  name: 'first-token',
  what: 'time to the first token and to the end of a stream, against a bare Worker',
  run: async (print) => {
    const upstream = await startUpstream()
    try {
      await withRuntime({ OLLAMA_BASE_URL: upstream.url, UPSTREAM: upstream.url }, async ({ url }) => {
        await measure(await makeRouter(url), upstream, print)
      })
    } finally {
      await upstream.close()
    }
  },
}

async function measure(
  router: BenchRouter,
  upstream: Upstream,
  print: (line: string) => void,
): Promise<void> {
  const tell = (label: string, pairs: readonly Pair[], of: (timing: Timing) => number, budget?: string) => {
    const { routed, bare, ratio } = compare(pairs, of)
    print(figure(label, times(ratio), budget))
    print(
      `    routed ${ms(routed)}, bare ${ms(bare)}, added ${ms(routed - bare)} (medians of ${pairs.length})`,
    )
  }
  const warm = warmSessions(router, upstream)
  upstream.speech = QUICK
  await measurePairs(router, WARM_UP, warm)

  upstream.speech = { ...QUICK, firstTokenMs: THINKING_MS }
  const thinking = `first token, upstream silent for ${THINKING_MS} ms`
  tell(thinking, await measurePairs(router, PAIRS, warm), firstTokenOf, '1.25 ×')
  const firstTurns = await measurePairs(router, PAIRS, () => router.newSession())
  tell('    the same at the first turn of a session', firstTurns, firstTokenOf)
  upstream.speech = QUICK
  tell('first token, upstream without delay', await measurePairs(router, PAIRS, warm), firstTokenOf)

  upstream.speech = { ...QUICK, tokens: MANY_DELTAS }
  const unpaced = await measurePairs(router, LONG_PAIRS, warm)
  tell(`end of ${MANY_DELTAS} deltas, sent at once`, unpaced, totalOf)
  upstream.speech = { ...QUICK, tokens: MANY_DELTAS, gapMs: PACE_MS }
  const paced = await measurePairs(router, LONG_PAIRS, warm)
  tell(`end of ${MANY_DELTAS} deltas, one each ${PACE_MS} ms`, paced, totalOf)
}
