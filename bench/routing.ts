import { planRoute } from '../src/core/route.ts'
import { RoutingPolicy } from '../src/protocol/execution/policy.ts'
import { type Bench, figure, ms } from './lib/bench.ts'
import { median } from './lib/statistics.ts'

const SMALL = { rules: 100, paths: 500 }
const LARGE = { rules: 1_000, paths: 10_000 }
const ROUNDS = 15

type Pattern = (n: number) => string

/** As people write them, in turn: one folder, one kind of file, one word anywhere, one word in some folder. */
const USUAL: readonly Pattern[] = [
  (n) => `services/none-${n}/**`,
  (n) => `**/*.none${n}.ts`,
  (n) => `**/none-${n}*/**`,
  (n) => `src/**/none${n}*`,
]

/** Every word of the pattern is in every path: only the whole of the matching can refuse it. */
const NEAR_MISS: readonly Pattern[] = [() => 'src/**/area-*/parts/[A-Z]*.ts']

const policyOf = (rules: number, patterns: readonly Pattern[]): RoutingPolicy =>
  RoutingPolicy.parse({
    rules: Array.from({ length: rules }, (_, n) => ({
      name: `rule ${n}`,
      paths: [patterns[n % patterns.length]?.(n)],
      model: 'ollama/scripted',
    })),
    default: { model: 'ollama/scripted' },
  })

/** Paths of a larger repository. */
const pathsOf = (count: number): string[] =>
  Array.from({ length: count }, (_, n) => `src/features/area-${n % 40}/parts/component-${n}.test.ts`)

/** Times one decision in which no rule matches: every rule has to be held against every path. */
function decide(size: { rules: number; paths: number }, rounds: number, patterns = USUAL): number {
  const { rules, paths } = size
  const routing = policyOf(rules, patterns)
  const candidatePaths = pathsOf(paths)
  const measured = Array.from({ length: rounds }, () => {
    const startedAt = performance.now()
    const planned = planRoute({ intent: 'edit', candidatePaths, explicitModel: null, routing })
    const elapsedMs = performance.now() - startedAt
    if (!planned.ok || planned.value.rule !== null) throw new Error('a rule matched that should not')
    return elapsedMs
  })
  return median(measured)
}

export const routing: Bench = {
  name: 'routing',
  what: 'one routing decision with nothing matching, and how it grows',
  run: async (print) => {
    decide(SMALL, ROUNDS)
    const sizes: { rules: number; paths: number; budget?: string; rounds: number }[] = [
      { ...SMALL, budget: '10 ms', rounds: ROUNDS },
      { rules: LARGE.rules, paths: SMALL.paths, rounds: ROUNDS },
      { rules: SMALL.rules, paths: LARGE.paths, rounds: ROUNDS },
      { ...LARGE, rounds: 3 },
    ]
    let smallPerPair = 0
    for (const { rules, paths, budget, rounds } of sizes) {
      const elapsed = decide({ rules, paths }, rounds)
      const perPairNs = (elapsed * 1e6) / (rules * paths)
      smallPerPair ||= perPairNs
      print(figure(`${rules} rules × ${paths} paths`, ms(elapsed), budget))
      print(
        `    ${perPairNs.toFixed(0)} ns per rule and path, ${(perPairNs / smallPerPair).toFixed(2)} × that of the smallest (1 = linear)`,
      )
    }
    const nearMisses = decide(SMALL, ROUNDS, NEAR_MISS)
    print(figure(`${SMALL.rules} rules × ${SMALL.paths} paths, all of them near misses`, ms(nearMisses)))
  },
}
