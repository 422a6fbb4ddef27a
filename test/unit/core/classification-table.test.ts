import { describe, expect, test } from 'vitest'
import { classify } from '../../../src/core/classify.ts'
import type { ClassificationRule, TaskIntent } from '../../../src/protocol/execution/policy.ts'
import type { Classification } from '../../../src/protocol/execution/turn.ts'
import { makeClassificationRule } from '../../support/core/builders.ts'

/** What is asked, each part in the short form; the default intent is `chat`. */
type Asked = {
  text?: string
  command?: TaskIntent
  rules?: ClassificationRule[]
  /** The context kinds that are present. */
  present?: string[]
}
/** A sentence that states the rule, what is asked, what has to come of it. */
type Row = [says: string, asked: Asked, gives: Classification]

const ask = ({ text = '', command, rules = [], present = [] }: Asked): Classification =>
  classify({
    text,
    command: command ?? null,
    contextKinds: new Set(present),
    config: { default_intent: 'chat', rules },
  })

const rule = makeClassificationRule

const byDefault: Classification = {
  intent: 'chat',
  source: 'inferred',
  confidence: 'low',
  reason: 'no rule matched, default intent `chat`',
}

/** Decided by the rule at this place, for this cause. */
const byRule = (
  index: number,
  intent: TaskIntent,
  confidence: 'low' | 'medium' | 'high',
  cause: string,
): Classification => ({
  intent,
  source: 'inferred',
  matched_rule: index,
  confidence,
  reason: `${cause} (rule ${index})`,
})

const catchAll = (intent: TaskIntent, priority?: number) =>
  rule(priority === undefined ? { intent } : { intent, priority })
const onKeywords = (intent: TaskIntent, ...keywords: string[]) => rule({ intent, keywords })
const onKinds = (intent: TaskIntent, ...kinds: string[]) => rule({ intent, requires_any_context: kinds })
const onBoth = rule({
  intent: 'edit',
  keywords: ['fix', 'repair'],
  requires_any_context: ['git_diff', 'git_branch'],
})

const COMMANDS: Row[] = (['chat', 'plan', 'edit', 'review'] as const).map((command) => [
  `the command \`${command}\` is the intent, without rule and confidence`,
  { command, text: 'fix it', rules: [onKeywords('summarize', 'fix')] },
  { intent: command, source: 'explicit', reason: `command \`${command}\`` },
])

const ORDER: Row[] = [
  [
    'a command beats the rule of the lowest priority that always matches',
    { command: 'plan', rules: [catchAll('edit', 0)], present: ['git_diff'] },
    { intent: 'plan', source: 'explicit', reason: 'command `plan`' },
  ],
  ['without rules the default intent, of low confidence and no rule', { text: 'fix it' }, byDefault],
  [
    'without a rule that matches the default intent',
    { text: 'hello', rules: [onKeywords('edit', 'fix'), onKinds('review', 'git_diff')] },
    byDefault,
  ],
  [
    'the lower priority comes first, wherever it stands; a rule is named by its place in the policy',
    { rules: [catchAll('edit', 20), catchAll('review', 10)] },
    byRule(1, 'review', 'low', 'no condition'),
  ],
  [
    'a rule without a priority has the default one: after those below it',
    { rules: [catchAll('edit'), catchAll('review', 1)] },
    byRule(1, 'review', 'low', 'no condition'),
  ],
  [
    'of equal priorities the first in the list',
    { rules: [catchAll('edit', 10), catchAll('review', 10), catchAll('plan', 20)] },
    byRule(0, 'edit', 'low', 'no condition'),
  ],
  [
    'the first that matches wins over those before it that do not',
    { text: 'look here', rules: [onKeywords('edit', 'fix'), onKeywords('review', 'look')] },
    byRule(1, 'review', 'medium', 'keyword `look`'),
  ],
  [
    'more conditions are no advantage: order alone counts',
    { text: 'fix it', rules: [onKeywords('review', 'fix'), onBoth], present: ['git_diff'] },
    byRule(0, 'review', 'medium', 'keyword `fix`'),
  ],
  [
    'a close hit of an earlier rule wins over an exact hit of a later one',
    { text: 'debgu the parser', rules: [onKeywords('edit', 'debug'), onKeywords('review', 'parser')] },
    byRule(0, 'edit', 'medium', 'keyword `debug` (close match)'),
  ],
]

const CONDITIONS: Row[] = [
  ['no condition always matches', { rules: [catchAll('edit')] }, byRule(0, 'edit', 'low', 'no condition')],
  [
    'keyword and context hold together: high, and the reason names both',
    { text: 'fix it', rules: [onBoth], present: ['git_diff'] },
    byRule(0, 'edit', 'high', 'keyword `fix` and context `git_diff`'),
  ],
  [
    'any entry of each list will do',
    { text: 'repair it', rules: [onBoth], present: ['git_branch'] },
    byRule(0, 'edit', 'high', 'keyword `repair` and context `git_branch`'),
  ],
  [
    'the first entry that is there is named, in the order of the rule',
    { text: 'repair it, fix it', rules: [onBoth], present: ['git_branch', 'git_diff'] },
    byRule(0, 'edit', 'high', 'keyword `fix` and context `git_diff`'),
  ],
  [
    'context without the keyword is no match',
    { text: 'hi', rules: [onBoth], present: ['git_diff'] },
    byDefault,
  ],
  ['keyword without the context is no match', { text: 'fix', rules: [onBoth], present: [] }, byDefault],
  [
    'a keyword alone: medium',
    { text: 'fix it', rules: [onKeywords('edit', 'fix')] },
    byRule(0, 'edit', 'medium', 'keyword `fix`'),
  ],
  [
    'a context alone: medium',
    { rules: [onKinds('review', 'git_diff')], present: ['git_diff'] },
    byRule(0, 'review', 'medium', 'context `git_diff`'),
  ],
  [
    'a close keyword with context: medium, not high',
    {
      text: 'refactro it',
      rules: [rule({ intent: 'edit', keywords: ['refactor'], requires_any_context: ['git_diff'] })],
      present: ['git_diff'],
    },
    byRule(0, 'edit', 'medium', 'keyword `refactor` (close match) and context `git_diff`'),
  ],
  [
    'every keyword is tried exactly before any is tried for closeness',
    { text: 'debgu the parser', rules: [onKeywords('edit', 'debug', 'parser')] },
    byRule(0, 'edit', 'medium', 'keyword `parser`'),
  ],
  ...['Git_diff', 'pull_request', 'git', 'git_diff ', ''].map(
    (name): Row => [
      `the name of a context is exact and of the known ones: ${JSON.stringify(name)} is none`,
      { rules: [onKinds('edit', name)], present: ['git_diff', 'git_branch'] },
      byDefault,
    ],
  ),
]

/** A keyword rule alone: how the keyword is found in the text. */
const keyword = (says: string, word: string, text: string, hit: 'exact' | 'close' | 'none'): Row => [
  `${says}: ${JSON.stringify(word)} in ${JSON.stringify(text)}`,
  { text, rules: [onKeywords('edit', word)] },
  hit === 'none'
    ? byDefault
    : byRule(0, 'edit', 'medium', `keyword \`${word}\`${hit === 'close' ? ' (close match)' : ''}`),
]

const TOKENS: Row[] = [
  keyword('a token is found whatever stands around it', 'fix', 'Fix the parser.', 'exact'),
  keyword('in brackets too', 'fix', '(fix)', 'exact'),
  keyword('an underscore separates', 'fix', 'fix_it', 'exact'),
  keyword('case does not matter in the keyword', 'FIX', 'fix', 'exact'),
  keyword('nor in the text', 'fix', 'FIX', 'exact'),
  keyword('a part of a token is no hit at its end', 'fix', 'prefix', 'none'),
  keyword('nor at its start', 'fix', 'fixes', 'none'),
  keyword('letters of any script', 'größe', 'GRÖSSE Größe', 'exact'),
  keyword('digits are tokens', '7', 'version 7', 'exact'),
  keyword('an empty keyword finds nothing', '', 'anything', 'none'),
  keyword('nor does one of signs alone', '--', '-- x', 'none'),
  keyword(
    '[EC 26.9] a keyword of two words hits where they follow one another',
    'code review',
    'a code review',
    'exact',
  ),
  keyword('[EC 26.9] whatever separates them', 'code review', 'the code-review', 'exact'),
  keyword('[EC 26.9] not in another order', 'code review', 'review the code', 'none'),
  keyword('[EC 26.9] not with a word between them', 'code review', 'code for review', 'none'),
  keyword('[EC 26.9] a keyword with a hyphen', 'code-review', 'do a Code-Review', 'exact'),
  keyword('[EC 26.9] also where the text has a space', 'follow-up', 'follow up', 'exact'),
  keyword('[EC 26.9] or is written in one', 'code-review', 'a codereview', 'close'),
]

const CLOSENESS: Row[] = [
  keyword('up to four letters nothing is close: a swap', 'plan', 'paln', 'none'),
  keyword('nor another letter', 'plan', 'plxn', 'none'),
  keyword('from five letters one edit: a swap', 'debug', 'debgu', 'close'),
  keyword('a letter too few', 'debug', 'dbug', 'close'),
  keyword('a letter too many', 'debug', 'debxug', 'close'),
  keyword('another letter', 'debug', 'dexug', 'close'),
  keyword('but not two', 'debug', 'dexxg', 'none'),
  keyword('eight letters still one edit', 'refactor', 'refaktor', 'close'),
  keyword('and not two', 'refactor', 'refakter', 'none'),
  keyword('from nine letters two edits', 'summarize', 'sumarise', 'close'),
  keyword('two swaps', 'summarize', 'usmmraize', 'close'),
  keyword('and not three', 'summarize', 'umarise', 'none'),
  keyword('a swap counts once, its letters are not used again', 'xxxxxxxca', 'xxxxxxxabc', 'none'),
  keyword('what holds the keyword is not close', 'review', 'preview', 'none'),
  keyword('what the keyword holds is not close', 'preview', 'review', 'none'),
  keyword('a plural is not close', 'review', 'reviews', 'none'),
  keyword('nor a singular', 'reviews', 'review', 'none'),
  keyword('a slip of the finger is', 'review', 'reviwe', 'close'),
  keyword('case does not matter', 'Review', 'REVIWE', 'close'),
  keyword('letters count, not bytes', 'ämter', 'ömter', 'close'),
  keyword('four letters in eight units', '𝒶𝒷𝒸𝒹', '𝒶𝒷𝒸𝒾', 'none'),
  keyword('five letters in ten units', '𝒶𝒷𝒸𝒹𝒺', '𝒶𝒷𝒸𝒹𝒾', 'close'),
]

describe.each([
  ['[EC 7.1] a command', COMMANDS],
  ['[EC 7] what decides', ORDER],
  ['[EC 7] conditions, confidence and reason', CONDITIONS],
  ['[EC 7] keywords meet tokens, not substrings', TOKENS],
  ['[EC 7] close hits', CLOSENESS],
])('%s', (_, rows) => {
  test.each(rows)('%s', (_says, asked, gives) => {
    expect(ask(asked)).toEqual(gives)
  })
})
