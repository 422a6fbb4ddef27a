import { describe, expect, test } from 'vitest'
import { classify, tokenise } from '../../../src/core/classify.ts'
import type { ClassificationRule } from '../../../src/protocol/execution/policy.ts'
import { makeClassificationRule } from '../../support/core/builders.ts'

type Asked = { rules?: ClassificationRule[]; kinds?: string[]; command?: 'plan' | null }

const ask = (text: string, { rules = [], kinds = [], command = null }: Asked = {}) =>
  classify({
    text,
    command,
    contextKinds: new Set(kinds),
    config: { default_intent: 'chat', rules },
  })

const rule = makeClassificationRule

/** Whether a keyword is found in a text, and how. */
const hit = (keyword: string, text: string): 'exact' | 'close' | 'none' => {
  const { matched_rule, reason } = ask(text, { rules: [rule({ intent: 'edit', keywords: [keyword] })] })
  return matched_rule === undefined ? 'none' : reason.includes('close match') ? 'close' : 'exact'
}

describe('[EC 7] what decides the intent', () => {
  test('a command beats every rule, and says neither rule nor confidence', () => {
    const rules = [rule({ intent: 'edit', priority: 0 })]
    expect(ask('edit it', { rules, command: 'plan' })).toEqual({
      intent: 'plan',
      source: 'explicit',
      reason: 'command `plan`',
    })
  })

  test('without a match the default intent, of low confidence and no rule', () => {
    expect(ask('hello', { rules: [rule({ intent: 'edit', keywords: ['fix'] })] })).toEqual({
      intent: 'chat',
      source: 'inferred',
      reason: 'no rule matched, default intent `chat`',
      confidence: 'low',
    })
  })

  test('the lowest priority comes first, then the position; the rule is named by its place in the policy', () => {
    const rules = [
      rule({ intent: 'edit', keywords: ['it'] }),
      rule({ intent: 'review', keywords: ['it'], priority: 20 }),
      rule({ intent: 'plan', keywords: ['it'], priority: 10 }),
      rule({ intent: 'summarize', keywords: ['it'], priority: 10 }),
    ]
    expect(ask('do it', { rules })).toMatchObject({ intent: 'plan', matched_rule: 2 })
    expect(ask('do it', { rules: rules.slice(0, 2) })).toMatchObject({ intent: 'review', matched_rule: 1 })
  })

  test('the first rule that matches wins over earlier ones that do not', () => {
    const rules = [
      rule({ intent: 'edit', keywords: ['fix'], priority: 1 }),
      rule({ intent: 'review', keywords: ['look'], priority: 2 }),
    ]
    expect(ask('look here', { rules })).toMatchObject({ intent: 'review', matched_rule: 1 })
  })
})

describe('[EC 7] when a rule matches', () => {
  const both = rule({
    intent: 'edit',
    keywords: ['fix', 'repair'],
    requires_any_context: ['git_diff', 'git_branch'],
  })

  test.each([
    ['both kinds of conditions hold', 'fix it', ['git_diff'], true],
    ['any keyword and any context will do', 'repair it', ['git_branch'], true],
    ['the keyword is missing', 'hello', ['git_diff'], false],
    ['the context is missing', 'fix it', ['active_file'], false],
  ])('%s', (_, text, kinds, expected) => {
    expect(ask(text, { rules: [both], kinds }).matched_rule === 0).toBe(expected)
  })

  test('a rule without conditions always does', () => {
    expect(ask('', { rules: [rule({ intent: 'edit' })] })).toMatchObject({ intent: 'edit', matched_rule: 0 })
  })

  test.each(['Git_diff', 'pull_request', 'git', ''])('the name of a context is exact: %j', (name) => {
    const rules = [rule({ intent: 'edit', requires_any_context: [name] })]
    expect(ask('', { rules, kinds: ['git_diff'] }).intent).toBe('chat')
  })
})

describe('[EC 7] confidence', () => {
  const keywords = ['refactor']
  const requires_any_context = ['git_diff']
  test.each([
    ['keyword and context', { keywords, requires_any_context }, 'refactor it', 'high'],
    ['a close keyword and context', { keywords, requires_any_context }, 'refactro it', 'medium'],
    ['a keyword alone', { keywords }, 'refactor it', 'medium'],
    ['a close keyword alone', { keywords }, 'refactro it', 'medium'],
    ['context alone', { requires_any_context }, 'hello', 'medium'],
    ['no condition', {}, 'hello', 'low'],
  ] as const)('%s', (_, conditions, text, confidence) => {
    const made = rule({
      intent: 'edit',
      keywords: [...('keywords' in conditions ? conditions.keywords : [])],
      requires_any_context: [
        ...('requires_any_context' in conditions ? conditions.requires_any_context : []),
      ],
    })
    expect(ask(text, { rules: [made], kinds: ['git_diff'] }).confidence).toBe(confidence)
  })

  test('the reason names keyword, context and rule', () => {
    const made = rule({ intent: 'edit', keywords, requires_any_context })
    expect(
      ask('please refactor', {
        rules: [rule({ intent: 'chat', keywords: ['x'] }), made],
        kinds: ['git_diff'],
      }).reason,
    ).toBe('keyword `refactor` and context `git_diff` (rule 1)')
  })
})

describe('[EC 7] keywords meet tokens, not substrings', () => {
  test.each([
    // keyword, text, hit
    ['fix', 'Fix the parser.', 'exact'],
    ['FIX', 'fix', 'exact'],
    ['fix', 'prefix', 'none'],
    ['fix', 'fixes', 'none'],
    ['fix', '(fix)', 'exact'],
    ['fix', 'fix_it', 'exact'],
    ['größe', 'GRÖSSE Größe', 'exact'],
    ['7', 'version 7', 'exact'],
    ['', 'anything', 'none'],
    ['--', '-- x', 'none'],
    ['code review', 'a code review, please', 'exact'],
    ['code review', 'review the code', 'none'],
    ['code-review', 'do a code-review', 'exact'],
    ['follow-up', 'follow up', 'exact'],
  ])('%j in %j: %s', (keyword, text, expected) => {
    expect(hit(keyword, text)).toBe(expected)
  })

  test('a text is split at everything that is neither letter nor digit', () => {
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
})

describe('[EC 7] close hits', () => {
  test.each([
    // up to four characters: none
    ['plan', 'paln', 'none'],
    ['plan', 'plxn', 'none'],
    // five to eight: one edit
    ['debug', 'debgu', 'close'],
    ['debug', 'dbug', 'close'],
    ['debug', 'dexug', 'close'],
    ['debug', 'dexxg', 'none'],
    ['refactor', 'refaktor', 'close'],
    ['refactor', 'refakter', 'none'],
    // nine and more: two edits
    ['summarize', 'sumarise', 'close'],
    ['summarize', 'umarise', 'none'],
    ['summarize', 'usmmraize', 'close'],
    // one inside the other is never close
    ['review', 'preview', 'none'],
    ['preview', 'review', 'none'],
    ['review', 'reviews', 'none'],
    ['reviews', 'review', 'none'],
    ['review', 'reviwe', 'close'],
  ])('%j in %j: %s', (keyword, text, expected) => {
    expect(hit(keyword, text)).toBe(expected)
  })

  test('letters count, not bytes or halves of them', () => {
    expect(hit('ämter', 'ömter')).toBe('close')
    // Four letters, in eight UTF-16 units.
    expect(hit('𝒶𝒷𝒸𝒹', '𝒶𝒷𝒸𝒾')).toBe('none')
    expect(hit('𝒶𝒷𝒸𝒹𝒺', '𝒶𝒷𝒸𝒹𝒾')).toBe('close')
  })

  test('a swap counts once and its letters are not used again', () => {
    // Optimal string alignment: `ca` to `abc` is three edits, not two.
    expect(hit('xxxxxxxca', 'xxxxxxxabc')).toBe('none')
  })

  test('every keyword is tried exactly before any is tried for closeness', () => {
    const rules = [rule({ intent: 'edit', keywords: ['debug', 'parser'] })]
    expect(ask('debgu the parser', { rules }).reason).toContain('keyword `parser` (rule 0)')
    expect(ask('debgu the lexer', { rules }).reason).toContain('keyword `debug` (close match)')
  })
})
