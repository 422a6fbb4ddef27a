import { expect, test } from 'vitest'
import { checkGlobs, checkRouting } from '../../support/core/naive-comparison.ts'

/** Everything that may come of a request, apart from a failure of the router. */
const OUTCOMES = [
  'intent explicit',
  'intent inferred low',
  'intent inferred medium',
  'intent inferred high',
  'rule',
  'default route',
  'override',
  'fallback',
  'local',
  'remote',
  'refused no_route',
  'refused fallback_exhausted',
  'refused override_not_allowed',
  'refused permission_expansion',
  'refused model_not_found',
  'refused provider_unavailable',
  'refused missing_provider_credentials',
  'refused missing_capability',
  'refused routing_unsupported_capability',
  'refused context_window_exceeded',
  'left out file',
  'left out private diff',
  'left out message',
  'left out memory',
  'left out skill',
]

test('[EC 7][EC 8][EC 9][EC 10] 10,000 random requests are routed as the contract says when it is read a second time', () => {
  const met = checkRouting(10_000, 21)
  const rare = OUTCOMES.filter((what) => (met[what] ?? 0) < 10)
  expect(rare).toEqual([])
}, 300_000)

test('[EC 8.2] 50,000 random patterns match what a regular expression made of them matches', () => {
  const { matches, invalid } = checkGlobs(50_000, 22)
  expect(matches).toBeGreaterThan(10_000)
  expect(invalid).toBeGreaterThan(2_500)
}, 300_000)
