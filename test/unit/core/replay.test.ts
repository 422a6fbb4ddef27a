import { describe, expect, test } from 'vitest'
import { type ClassificationPayload, type RoutingPayload, replayTurn } from '../../../src/core/replay.ts'
import { decisionTraces, reportOf, routingTrace } from '../../../src/core/report.ts'
import { planTurn, prepareCall } from '../../../src/core/resolve.ts'
import { chooseModel } from '../../../src/core/select.ts'
import type { TurnView } from '../../../src/core/turn-view.ts'
import type { ModelDescriptor } from '../../../src/protocol/execution/models.ts'
import { Payload } from '../../../src/protocol/execution/trace.ts'
import {
  LOCAL,
  makeCatalogue,
  makeFile,
  makeModel,
  makeRequest,
  makeView,
  REMOTE,
  type RequestParts,
} from '../../support/core/builders.ts'
import { makeRandom } from '../../support/core/random.ts'
import { makeWeirdTurn } from '../../support/core/weird-turns.ts'

type Traced = { classification: ClassificationPayload; routing: RoutingPayload }

/** As a client gets it. */
const overTheWire = (payload: unknown): Payload => Payload.parse(JSON.parse(JSON.stringify(payload)))

/** Every decision that the turn comes to while one model after the other fails, as the trace tells of it. */
function decisions(view: TurnView, catalogue: ReturnType<typeof makeCatalogue>): Traced[] {
  const planned = planTurn(view)
  if (!planned.ok) return []
  const plan = planned.value
  const failed = new Set<string>()
  const traced: Traced[] = []
  for (;;) {
    const choice = chooseModel(plan.demands, catalogue, failed)
    if (choice.k !== 'use') return traced
    const call = prepareCall(plan, choice.model)
    const report = reportOf(plan, call, choice.model, choice.fallbackUsed)
    const scene = { catalogue, failed: new Set(failed), used: choice.reference, policyDigest: 'sha256:0' }
    const classification = overTheWire(decisionTraces(plan, call, report, scene)[0])
    const routing = overTheWire(routingTrace(plan, report, scene))
    if (classification.type !== 'classification' || routing.type !== 'routing_decision')
      throw new Error('a turn is told by its classification and its route')
    traced.push({ classification, routing })
    failed.add(choice.reference)
  }
}

const again = (view: TurnView, { classification, routing }: Traced) =>
  replayTurn({
    classification,
    routing,
    taskType: classification.intent,
    policy: view.runInput.policy,
  })

const SAME = { classification: { k: 'same' }, routing: { k: 'same' } }

/** The same turn where nothing is private, which more models may serve. */
function withoutSecrets(view: TurnView): TurnView {
  const { runInput } = view
  const rules = runInput.policy.routing.rules.map((rule) => ({ ...rule, local_only: false }))
  const routing = { ...runInput.policy.routing, rules }
  const privacy = { restricted_paths: [], remote: { mode: 'allow' as const, blocked_paths: [] } }
  const policy = { ...runInput.policy, routing, privacy }
  const local_preferences = { ...runInput.local_preferences, local_only: false, no_network: false }
  return { ...view, runInput: { ...runInput, policy, local_preferences } }
}

test('[EC 19] what was decided is decided alike from its trace, for 150 strange turns and each model of their routes', () => {
  const seen = { decisions: 0, fallbacks: 0, bound: 0, byRule: 0 }
  for (let seed = 1; seed <= 150; seed++) {
    const { view: strange, models, lookups, without } = makeWeirdTurn(makeRandom(seed))
    for (const view of [strange, withoutSecrets(strange)]) {
      for (const traced of decisions(view, makeCatalogue(models, { lookups, without }))) {
        expect(again(view, traced), `seed ${seed}`).toEqual(SAME)
        seen.decisions++
        if (traced.routing.fallback_used) seen.fallbacks++
        if (traced.routing.inputs?.local_because) seen.bound++
        if (traced.routing.matched_rule != null) seen.byRule++
      }
    }
  }
  expect(seen.decisions).toBeGreaterThan(80)
  expect(Math.min(seen.fallbacks, seen.bound, seen.byRule)).toBeGreaterThan(10)
}, 60_000)

/** A turn whose first decision is told, and the same to be altered. */
function turnOf(parts: RequestParts, models: ModelDescriptor[] = [makeModel(LOCAL), makeModel(REMOTE)]) {
  const view = makeView(makeRequest(parts))
  const [traced] = decisions(view, makeCatalogue(models))
  if (traced === undefined || traced.routing.inputs === undefined) throw new Error('nobody serves')
  expect(again(view, traced)).toEqual(SAME)
  return { view, ...traced, inputs: traced.routing.inputs }
}

describe('a trace that was altered is found out', () => {
  const review = {
    text: 'review this',
    classification: { rules: [{ intent: 'review' as const, keywords: ['review'] }] },
    rules: [{ name: 'reviews', intent: 'review' as const, model: REMOTE, fallbacks: [LOCAL] }],
  }

  test('in its intent', () => {
    const { view, classification, routing } = turnOf(review)
    const altered: ClassificationPayload = { ...classification, intent: 'edit' }
    expect(again(view, { classification: altered, routing })).toEqual({
      classification: {
        k: 'differs',
        was: { intent: 'edit', source: 'inferred', matched_rule: 0 },
        is: { intent: 'review', source: 'inferred', matched_rule: 0 },
      },
      routing: {
        k: 'differs',
        was: { model: REMOTE, matched_rule: 'reviews', fallback_used: false, override_used: false },
        is: { model: LOCAL, matched_rule: null, fallback_used: false, override_used: false },
      },
    })
  })

  test('in the keywords that it was classified by', () => {
    const { view, classification, routing } = turnOf(review)
    const altered = { ...classification, inputs: { context: [], keywords: [] } }
    expect(again(view, { classification: altered, routing }).classification).toMatchObject({
      k: 'differs',
      is: { intent: 'chat', matched_rule: null },
    })
  })

  test.each([
    ['the model', { provider: 'ollama', model: 'local-model' }],
    ['the rule', { matched_rule: 'another' }],
    ['the fallback', { fallback_used: true }],
    ['the override', { override_used: true }],
  ])('in %s that it names', (_, fields) => {
    const { view, classification, routing } = turnOf(review)
    const check = again(view, { classification, routing: { ...routing, ...fields } })
    expect(check.classification).toEqual({ k: 'same' })
    expect(check.routing).toMatchObject({
      k: 'differs',
      is: { model: REMOTE, matched_rule: 'reviews', fallback_used: false, override_used: false },
    })
  })

  test('in the paths that its rule was matched on', () => {
    const { view, classification, routing, inputs } = turnOf({
      rules: [{ name: 'payments', paths: ['payments/**'], model: REMOTE }],
      workspace: { active_file: 'payments/pay.ts' },
    })
    const altered = { ...routing, inputs: { ...inputs, paths: ['src/a.ts'] } }
    expect(again(view, { classification, routing: altered }).routing).toMatchObject({
      k: 'differs',
      is: { needs: LOCAL, matched_rule: null },
    })
  })

  const bound: [string, RequestParts][] = [
    ['a local-only rule', { rules: [{ name: 'home', local_only: true, model: REMOTE, fallbacks: [LOCAL] }] }],
    [
      'mode deny',
      {
        defaultRoute: { model: REMOTE, fallbacks: [LOCAL] },
        privacy: { remote: { mode: 'deny' } },
      },
    ],
  ]
  test.each(bound)(
    '[U37] where %s let only local models serve, and the trace says that a remote one did',
    (_, parts) => {
      const { view, classification, routing, inputs } = turnOf(parts)
      const { local_because: _because, ...rest } = inputs
      const [first, ...others] = inputs.models
      if (first === undefined) throw new Error('a route has models')
      const altered: RoutingPayload = {
        ...routing,
        provider: 'anthropic',
        model: 'remote-model',
        fallback_used: false,
        inputs: { ...rest, models: [{ ...first, verdict: 'used' }, ...others] },
      }
      expect(again(view, { classification, routing: altered }).routing).toMatchObject({
        k: 'differs',
        was: { model: REMOTE },
        is: { model: LOCAL },
      })
    },
  )

  test('where it leaves out what is known of a model that the route reaches', () => {
    const { view, classification, routing, inputs } = turnOf(review)
    const altered = { ...routing, inputs: { ...inputs, models: [] } }
    expect(again(view, { classification, routing: altered }).routing).toMatchObject({
      k: 'differs',
      is: { needs: REMOTE, matched_rule: 'reviews' },
    })
  })

  test('where no model of the route could have served', () => {
    const { view, classification, routing, inputs } = turnOf({ defaultRoute: { model: REMOTE } })
    const altered = { ...routing, inputs: { ...inputs, required_tokens: 1_000_000 } }
    expect(again(view, { classification, routing: altered }).routing).toMatchObject({
      k: 'differs',
      is: { failure: 'context_window_exceeded' },
    })
  })
})

describe('what cannot be decided again is said', () => {
  const told = () => turnOf({ attachments: { files: [makeFile('a.ts', 'x')] } })

  test('of an older trace, which has no inputs', () => {
    const { view, classification, routing } = told()
    const { inputs: _a, ...said } = classification
    const { inputs: _b, ...sent } = routing
    const unknown = { k: 'unknown', reason: 'the trace does not tell what it was decided from' }
    expect(again(view, { classification: said, routing: sent })).toEqual({
      classification: unknown,
      routing: unknown,
    })
  })

  test('without its policy', () => {
    const { classification, routing } = told()
    const unknown = { k: 'unknown', reason: 'the trace does not hold its policy' }
    expect(replayTurn({ classification, routing, taskType: 'chat', policy: null })).toEqual({
      classification: unknown,
      routing: unknown,
    })
  })

  test('without its classification, of which the route then is decided again alone', () => {
    const { view, routing } = told()
    expect(
      replayTurn({ classification: null, routing, taskType: 'chat', policy: view.runInput.policy }),
    ).toEqual({
      classification: { k: 'unknown', reason: 'the trace holds no classification of it' },
      routing: { k: 'same' },
    })
  })
})

test('[EC 8.5] a model of the route that was not reached may be unknown', () => {
  const view = makeView(makeRequest({ defaultRoute: { model: LOCAL, fallbacks: [REMOTE] } }))
  const catalogue = makeCatalogue([makeModel(LOCAL)], { lookups: { [REMOTE]: { k: 'unlisted' } } })
  const [traced] = decisions(view, catalogue)
  expect(traced?.routing.inputs?.models[1]).toEqual({ model: REMOTE, verdict: 'not_reached' })
  if (traced) expect(again(view, traced)).toEqual(SAME)
})

test('[U37] a remote provider that was not even asked stands in the trace as remote, and the turn is decided alike', () => {
  const view = makeView(
    makeRequest({
      defaultRoute: { model: REMOTE, fallbacks: [LOCAL] },
      preferences: { local_only: true },
    }),
  )
  const catalogue = makeCatalogue([makeModel(LOCAL)], {
    lookups: { [REMOTE]: { k: 'unlisted', remote: true } },
  })
  const [traced] = decisions(view, catalogue)
  expect(traced?.routing.inputs?.models).toMatchObject([
    { model: REMOTE, verdict: 'remote' },
    { model: LOCAL, verdict: 'used' },
  ])
  if (traced) expect(again(view, traced)).toEqual(SAME)
})

test('[EC 8.5] after the models that call tools have failed one without is taken, and the turn is decided alike', () => {
  const mute = makeModel(LOCAL, { capabilities: {} })
  const view = makeView(
    makeRequest({ defaultRoute: { model: LOCAL, fallbacks: [REMOTE, 'gemini/gone', 'ollama/small'] } }),
  )
  const small = makeModel('ollama/small', { capabilities: {}, max_context_tokens: 0 })
  const traced = decisions(view, makeCatalogue([mute, makeModel(REMOTE), small]))
  expect(traced.map(({ routing }) => routing.inputs?.models.map(({ verdict }) => verdict))).toEqual([
    ['capability', 'used', 'not_reached', 'not_reached'],
    ['used', 'failed', 'absent', 'window'],
  ])
  for (const one of traced) expect(again(view, one)).toEqual(SAME)
})
