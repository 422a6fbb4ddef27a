import { describe, expect, test } from 'vitest'
import {
  type ClassifyInput,
  classificationInputs,
  classify,
  classifyFrom,
  MAX_TOLD_KEYWORDS,
  tokenise,
} from '../../../src/core/classify.ts'
import { alignmentDistance, isWithinEdits } from '../../../src/core/edit-distance.ts'
import type { ClassificationRule } from '../../../src/protocol/execution/policy.ts'
import { ClassificationInputs } from '../../../src/protocol/execution/trace.ts'
import { makeClassificationRule as rule } from '../../support/core/builders.ts'
import { makeRandom } from '../../support/core/random.ts'

test('[EC 7] a text is split at everything that is neither letter nor digit', () => {
  expect(tokenise("Don't re-run API_v2, naïve—日本語 x²!")).toEqual([
    'don',
    't',
    're',
    'run',
    'api',
    'v2',
    'naïve',
    '日本語',
    'x²',
  ])
  expect(tokenise('İstanbul')).toHaveLength(1)
})

const asked = (
  text: string,
  rules: ClassificationRule[],
  fields: Partial<ClassifyInput> = {},
): ClassifyInput => ({
  text,
  command: null,
  contextKinds: new Set<string>(),
  config: { default_intent: 'chat', rules },
  ...fields,
})

describe('[EC 19] what a classification is decided from', () => {
  test('is the keywords of the policy that the text contains, in its order and each once, and no other word', () => {
    const rules = [
      rule({ intent: 'review', priority: 9, keywords: ['audit', 'review', 'run tests', 'Fix'] }),
      rule({ intent: 'edit', priority: 1, keywords: ['refactor', 'review', 'delete'] }),
    ]
    expect(classificationInputs(asked('please reviwe secret, run tests, fix, refactor it', rules))).toEqual({
      context: [],
      keywords: [
        { keyword: 'review', match: 'fuzzy' },
        { keyword: 'run tests', match: 'exact' },
        { keyword: 'Fix', match: 'exact' },
        { keyword: 'refactor', match: 'exact' },
      ],
    })
  })

  test('is the kinds of context, sorted, and the command', () => {
    const fields = { command: 'plan' as const, contextKinds: new Set(['tool_error', 'git_diff']) }
    expect(classificationInputs(asked('hello', [], fields))).toEqual({
      command: 'plan',
      context: ['git_diff', 'tool_error'],
      keywords: [],
    })
  })

  test('is a bounded number of keywords, the one that decides among them', () => {
    const many = (name: string, count: number) => Array.from({ length: count }, (_, i) => `${name}${i}`)
    const rules = [
      rule({ intent: 'review', keywords: many('first', 300), requires_any_context: ['git_diff'] }),
      rule({ intent: 'edit', keywords: many('second', 300) }),
      rule({ intent: 'plan', keywords: ['third'] }),
    ]
    const text = [...many('first', 300), 'second7', 'second9', 'third'].join(' ')
    const inputs = classificationInputs(asked(text, rules))
    expect(inputs.keywords).toHaveLength(MAX_TOLD_KEYWORDS)
    expect(inputs.keywords.at(-1)).toEqual({ keyword: 'second7', match: 'exact' })
    expect(classify(asked(text, rules))).toEqual({
      intent: 'edit',
      source: 'inferred',
      reason: 'keyword `second7` (rule 1)',
      matched_rule: 1,
      confidence: 'medium',
    })
  })

  test('decides alike after it went over the wire, for 2,000 random texts and policies', () => {
    const random = makeRandom(7)
    const letter = () => random.pick(['a', 'b', 'c'])
    const word = () => random.list(8, letter).join('')
    const kinds = ['git_diff', 'git_branch', 'tool_error']
    let decided = 0
    for (let i = 0; i < 2_000; i++) {
      const rules = random.list(4, () =>
        rule({
          intent: random.pick(['edit', 'review', 'plan'] as const),
          priority: random.int(3),
          keywords: random.list(3, () => (random.chance(0.2) ? `${word()} ${word()}` : word())),
          requires_any_context: random.list(1, () => random.pick(kinds)),
        }),
      )
      const present = new Set(kinds.filter(() => random.chance(0.5)))
      const input = asked(random.list(9, word).join(' '), rules, { contextKinds: present })
      const told = ClassificationInputs.parse(JSON.parse(JSON.stringify(classificationInputs(input))))
      expect(classifyFrom(told, input.config)).toEqual(classify(input))
      if (classify(input).matched_rule !== undefined) decided++
    }
    expect(decided).toBeGreaterThan(500)
  })
})

test('[EC 7] a few edits are found as the whole distance finds them, for 5,000 pairs of words', () => {
  const random = makeRandom(3)
  const word = () => random.list(9, () => random.pick(['a', 'b', 'c']))
  let near = 0
  for (let i = 0; i < 5_000; i++) {
    const [a, b] = [word(), word()]
    const distance = alignmentDistance(a, b)
    for (const edits of [0, 1, 2]) expect(isWithinEdits(a, b, edits), `${a} ${b}`).toBe(distance <= edits)
    if (distance <= 2) near++
  }
  expect(near).toBeGreaterThan(500)
})
