import { expect, test } from 'vitest'
import { alignmentDistance } from '../../../src/core/edit-distance.ts'
import { instanceReference, misspelt, nearest, suggestReference } from '../../../src/core/suggest.ts'
import { ModelReference } from '../../../src/protocol/execution/ids.ts'
import { Effort, PermissionMode, TaskIntent } from '../../../src/protocol/execution/policy.ts'

const INTENTS = TaskIntent.options
const EFFORTS = Effort.options

test.each<[a: string, b: string, edits: number]>([
  ['', '', 0],
  ['', 'abc', 3],
  ['plan', 'plan', 0],
  ['plan', 'paln', 1],
  ['review', 'reveiw', 1],
  ['edit', 'edits', 1],
  ['kitten', 'sitting', 3],
  // Restricted: a swapped pair is not edited again, so this is three and not two.
  ['ca', 'abc', 3],
])('[EC 7] from "%s" to "%s" it takes %i edits, a swap of neighbours being one', (a, b, edits) => {
  expect(alignmentDistance(Array.from(a), Array.from(b))).toBe(edits)
  expect(alignmentDistance(Array.from(b), Array.from(a))).toBe(edits)
})

test.each<[word: string, names: readonly string[], meant: string | undefined]>([
  ['Edit', INTENTS, 'edit'],
  ['reveiw', INTENTS, 'review'],
  ['sumarise', INTENTS, 'summarize'],
  ['editing', INTENTS, 'edit'],
  ['hihg', EFFORTS, 'high'],
  ['x-high', EFFORTS, 'xhigh'],
  ['med', EFFORTS, 'medium'],
  ['alow', PermissionMode.options, 'allow'],
  [' ask ', PermissionMode.options, 'ask'],
  ['sing', INTENTS, undefined],
  ['extreme', EFFORTS, undefined],
  ['', EFFORTS, undefined],
  ['a', ['b', 'c'], undefined],
  ['abc', ['abcd', 'abce'], 'abcd'],
  ['abcdef', ['abcdefghijk', 'abcdefzyxwv'], undefined],
  ['h'.repeat(10_000), EFFORTS, undefined],
])('[EC 24.2] by "%s" of %j is meant: %s', (word, names, meant) => {
  expect(nearest(word, names)).toBe(meant)
})

test.each<[word: string, meant: string | undefined]>([
  ['shel', 'shell'],
  ['Shell', 'shell'],
  ['write-file', 'write_file'],
  ['wirte_flie', 'write_file'],
  ['create_file', undefined],
  ['shell_exec', undefined],
  ['read', undefined],
  ['h'.repeat(10_000), undefined],
])(
  '[EC 12.2] a name that may be right is only held for another that is nearly the same: %s',
  (word, meant) => {
    expect(misspelt(word, ['read_file', 'write_file', 'edit_file', 'shell', 'git'])).toBe(meant)
  },
)

test.each<[text: string, meant: string | undefined]>([
  ['home/small', 'openai-compat:home/small'],
  [' Home/org/small', 'openai-compat:home/org/small'],
  ['my lab/small', undefined],
  ['openai-compat:home/small', undefined],
  ['small', undefined],
  ['/small', undefined],
])('[EC 4] what stands for a server of the user, without the word that says so: %s', (text, meant) => {
  expect(instanceReference(text)).toBe(meant)
})

test.each<[text: string, meant: string | undefined]>([
  ['antropic/claude-x', 'anthropic/claude-x'],
  ['opnai/gpt-x', 'openai/gpt-x'],
  ['Olama/qwen3:8b', 'ollama/qwen3:8b'],
  ['google/gemini-x', 'gemini/gemini-x'],
  ['ollama:qwen3:8b', 'ollama/qwen3:8b'],
  ['openai gpt-x', 'openai/gpt-x'],
  [' openai/gpt-x', 'openai/gpt-x'],
  ['openai-compat/lab/large', 'openai-compat:lab/large'],
  ['openai-compat:My Lab/org/large', 'openai-compat:my-lab/org/large'],
  ['mistral/large', undefined],
  ['gpt-x', undefined],
  ['openai/', undefined],
  ['/x', undefined],
  ['', undefined],
  [`opnai/${'x'.repeat(1000)}`, undefined],
])('[EC 4] by the model reference "%s" is meant: %s', (text, meant) => {
  expect(suggestReference(text)).toBe(meant)
  if (meant !== undefined) expect(ModelReference.parse(meant)).toBe(meant)
})
