/** Has the router and the naive routing decide on one request, and says where they part. */

import fc from 'fast-check'
import { expect } from 'vitest'
import { planTurn, prepareCall } from '../../../src/core/resolve.ts'
import { chooseModel, type Lookup } from '../../../src/core/select.ts'
import { failure } from '../../../src/protocol/execution/errors.ts'
import { compileGlob } from '../../../src/protocol/glob.ts'
import { makeCatalogue } from './builders.ts'
import { makeRoutingCase, type RoutingCase } from './naive-cases.ts'
import { makeGlobCase, naiveGlob } from './naive-glob.ts'
import { decideNaively, type NaiveAttempt, type NaiveDecision } from './naive-routing.ts'
import { madeAtRandom } from './random.ts'

/** How often each thing happened: what never happens is not compared. */
export type Met = Record<string, number>

/** What the router decides, in the words of the naive one. */
function decide({ view, models, down, without }: RoutingCase): NaiveDecision | { failed: string } {
  const planned = planTurn(view)
  if (!planned.ok) return { failed: planned.error.code }
  const { classification, route, demands } = planned.value
  const lookups = Object.fromEntries(
    demands.references
      .filter((reference) => down.some((provider) => reference.startsWith(`${provider}/`)))
      .map((reference): [string, Lookup] => [
        reference,
        { k: 'unavailable', failure: failure('provider_unavailable', 'down') },
      ]),
  )
  const attempts: NaiveAttempt[] = []
  const failed = new Set<string>()
  for (;;) {
    const choice = chooseModel(demands, makeCatalogue(models, { lookups, without }), failed)
    if (choice.k === 'list') throw new Error('nothing is left to list')
    if (choice.k === 'none') {
      attempts.push({ refused: choice.failure.code })
      break
    }
    const { verdicts } = prepareCall(planned.value, choice.model)
    const labels = (wanted: boolean) =>
      verdicts
        .filter(({ included }) => included === wanted)
        .map(({ candidate: { key, label } }) => labelOf(key, label))
    attempts.push({
      model: choice.reference,
      fallbackUsed: choice.fallbackUsed,
      included: labels(true),
      excluded: labels(false),
    })
    failed.add(choice.reference)
  }
  const { intent, source, matched_rule, confidence } = classification
  return {
    classification: {
      intent,
      source,
      ...(matched_rule == null ? {} : { matched_rule }),
      ...(confidence == null ? {} : { confidence }),
    },
    rule: route.rule?.name ?? null,
    overrideUsed: route.overrideUsed,
    attempts,
  }
}

const labelOf = (key: string, label: string): string =>
  key.startsWith('message:')
    ? `message ${key.slice('message:'.length)}`
    : key === 'git_diff'
      ? 'diff'
      : key === 'git_diff:private'
        ? 'private diff'
        : label

/** Both decisions on a request, to be compared; `met` learns what happened. */
export function decideTwice(given: RoutingCase, met: Met): { router: unknown; naive: unknown } {
  const planned = planTurn(given.view)
  const tools = planned.ok ? planned.value.tools : []
  const naive = decideNaively({ ...given, tools })
  const router = decide(given)
  count(met, naive)
  if ('failed' in router) return { router: router.failed, naive: 'refused' in naive ? naive.refused : naive }
  return { router: comparable(router), naive: comparable(naive) }
}

/** Once a model has failed its failure is what is told; a refusal counts only where nothing was tried. */
function comparable(decision: NaiveDecision): unknown {
  if ('refused' in decision) return decision
  const { attempts } = decision
  return {
    ...decision,
    attempts: attempts
      .filter((attempt, index) => index === 0 || !('refused' in attempt))
      .map((attempt) =>
        'refused' in attempt
          ? attempt
          : { ...attempt, included: attempt.included.toSorted(), excluded: attempt.excluded.toSorted() },
      ),
  }
}

function count(met: Met, decision: NaiveDecision): void {
  const add = (what: string) => {
    met[what] = (met[what] ?? 0) + 1
  }
  const { source, confidence } = decision.classification
  add(`intent ${source} ${confidence ?? ''}`.trim())
  if ('refused' in decision) {
    add(`refused ${decision.refused}`)
    return
  }
  add(decision.overrideUsed ? 'override' : decision.rule === null ? 'default route' : 'rule')
  for (const [index, attempt] of decision.attempts.entries()) {
    if ('refused' in attempt) {
      if (index === 0) add(`refused ${attempt.refused}`)
      continue
    }
    add(attempt.model.startsWith('ollama') || attempt.model.startsWith('openai-compat') ? 'local' : 'remote')
    if (index === 0 && attempt.fallbackUsed) add('fallback')
    for (const label of attempt.excluded)
      add(`left out ${/^(?:diff|private diff|message|memory|skill)/.exec(label)?.[0] ?? 'file'}`)
  }
}

/** Routes `count` requests twice; throws, with what repeats the case, where the decisions differ. */
export function checkRouting(count: number, seed: number): Met {
  const met: Met = {}
  const alike = fc.property(madeAtRandom(makeRoutingCase), (given) => {
    const { router, naive } = decideTwice(given, met)
    expect(router).toEqual(naive)
  })
  fc.assert(alike, { numRuns: count, seed })
  return met
}

/** Matches `count` patterns twice; gives how often something matched, and how many patterns were invalid. */
export function checkGlobs(count: number, seed: number): { matches: number; invalid: number } {
  const met = { matches: 0, invalid: 0 }
  const alike = fc.property(madeAtRandom(makeGlobCase), ({ pattern, paths }) => {
    const compiled = compileGlob(pattern)
    const naive = naiveGlob(pattern)
    const matched = 'invalid' in compiled ? null : paths.filter((path) => compiled.glob.matches(path))
    expect(matched).toEqual(naive === null ? null : paths.filter((path) => naive.test(path)))
    if (matched === null) met.invalid++
    else met.matches += matched.length
  })
  fc.assert(alike, { numRuns: count, seed })
  return met
}
