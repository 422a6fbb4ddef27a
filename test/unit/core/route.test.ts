import { describe, expect, test } from 'vitest'
import { planRoute, type RouteInput } from '../../../src/core/route.ts'
import type { RoutingRule } from '../../../src/protocol/execution/policy.ts'
import { LOCAL, makeRule, must, REMOTE } from '../../support/core/builders.ts'

const plan = (rules: RoutingRule[], fields: Partial<RouteInput> = {}) =>
  planRoute({
    intent: 'edit',
    candidatePaths: ['src/a.ts'],
    explicitModel: null,
    routing: { rules, default: { model: REMOTE, fallbacks: [LOCAL] } },
    ...fields,
  })

const winner = (rules: RoutingRule[], fields: Partial<RouteInput> = {}): string | null =>
  must(plan(rules, fields)).rule?.name ?? null

const none = makeRule({ name: 'none' })
const intent = makeRule({ name: 'intent', intent: 'edit' })
const path = makeRule({ name: 'path', paths: ['src/**'] })
const both = makeRule({ name: 'both', intent: 'edit', paths: ['src/**'] })

describe('[EC 8.3] which rule matches', () => {
  test.each([
    ['no condition', none, 'none'],
    ['its intent', intent, 'intent'],
    ['another intent', makeRule({ name: 'x', intent: 'chat' }), null],
    ['one glob of several', makeRule({ name: 'x', paths: ['docs/**', '*.ts'] }), 'x'],
    ['no glob', makeRule({ name: 'x', paths: ['docs/**'] }), null],
    ['intent, but not path', makeRule({ name: 'x', intent: 'edit', paths: ['docs/**'] }), null],
    ['path, but not intent', makeRule({ name: 'x', intent: 'chat', paths: ['src/**'] }), null],
    [
      '[EC 8.2] an invalid glob voids all of the rule',
      makeRule({ name: 'x', paths: ['src/**', '[a'] }),
      null,
    ],
  ])('%s', (_, rule, expected) => {
    expect(winner([rule])).toBe(expected)
  })

  test('any of the candidate paths will do; without any, path rules never match', () => {
    expect(winner([path], { candidatePaths: ['README.md', 'src/b.ts'] })).toBe('path')
    expect(winner([path], { candidatePaths: [] })).toBe(null)
  })
})

describe('[EC 8.3] which of several wins', () => {
  test('the more specific: path and intent, then path, then intent, then none, wherever they stand', () => {
    expect(winner([none, intent, path, both])).toBe('both')
    expect(winner([none, intent, path])).toBe('path')
    expect(winner([none, intent])).toBe('intent')
    expect(winner([both, path, intent, none])).toBe('both')
  })

  test('the lower priority, before specificity', () => {
    expect(winner([both, makeRule({ name: 'early', priority: 5 })])).toBe('early')
    expect(
      winner([makeRule({ name: 'early', priority: 5 }), makeRule({ name: 'first', priority: 0 }), both]),
    ).toBe('first')
  })

  test('the first in the list where all else is equal, also under one name', () => {
    const twins = [makeRule({ name: 'twin', model: LOCAL }), makeRule({ name: 'twin', model: REMOTE })]
    expect(must(plan(twins)).references).toEqual([LOCAL])
  })

  test('a better rule that does not match does not stand in the way', () => {
    expect(winner([makeRule({ name: 'x', priority: 0, intent: 'plan' }), none])).toBe('none')
  })
})

describe('[EC 8.3] what comes of it', () => {
  test('a rule: its models in order, its effort, and why it matched', () => {
    const rule = makeRule({
      name: 'edits',
      intent: 'edit',
      paths: ['src/**'],
      effort: 'high',
      model: REMOTE,
      fallbacks: [LOCAL, 'openai/x'],
    })
    const route = must(plan([rule]))
    expect(route).toMatchObject({
      references: [REMOTE, LOCAL, 'openai/x'],
      rule,
      overrideUsed: false,
      effort: 'high',
      reason: 'rule `edits` matched on path `src/a.ts` and intent `edit`',
    })
    expect(['src/b.ts', 'docs/a.md'].map(route.inFocus)).toEqual([true, false])
  })

  test('[EC 8.7] the reason of a rule without conditions is that it catches all', () => {
    expect(must(plan([none])).reason).toBe('rule `none` matched as a catch-all')
  })

  test('no rule: the default route with its fallbacks', () => {
    expect(must(plan([]))).toMatchObject({
      references: [REMOTE, LOCAL],
      rule: null,
      overrideUsed: false,
      effort: 'medium',
      reason: 'no rule matched, default route',
    })
  })

  test('no rule and no default: `no_route`, with the intent', () => {
    for (const missing of [null, undefined])
      expect(plan([], { routing: { rules: [], default: missing } })).toEqual({
        ok: false,
        error: {
          code: 'no_route',
          message: 'no routing rule matches intent `edit` and the policy has no default route',
          details: { reason: 'no_rule', intent: 'edit' },
        },
      })
  })

  test('an explicit model bypasses all rules: no rule, no fallback, nothing in focus', () => {
    const route = must(plan([both], { explicitModel: 'openai/o' }))
    expect(route).toMatchObject({ references: ['openai/o'], rule: null, overrideUsed: true })
    expect(route.inFocus('src/a.ts')).toBe(false)
    expect(must(plan([], { explicitModel: 'openai/o', routing: { rules: [] } })).references).toEqual([
      'openai/o',
    ])
  })
})
