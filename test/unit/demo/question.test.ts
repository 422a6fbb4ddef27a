import { describe, expect, test } from 'vitest'
import { type Intent, readIntent } from '../../../src/host/demo/question.ts'

const lookup = (...keywords: string[]): Intent => ({ kind: 'lookup', keywords })

describe('questions are sorted by fixed rules', () => {
  test.each<[string, Intent]>([
    ['What does this project do?', { kind: 'overview' }],
    ['hi', { kind: 'greeting' }],
    ['', { kind: 'greeting' }],
    ['help me find the bug', lookup('help', 'bug')],
    ['Where are sessions stored?', lookup('session', 'stor')],
    ['Is `driver_epoch` checked anywhere?', lookup('driver_epoch')],
    ['how does OutboxPump retry?', lookup('OutboxPump')],
    ['Explain src/cli/policy.ts', { kind: 'file', paths: ['src/cli/policy.ts'], keywords: [] }],
    [
      'what does "depth" mean in list-files.ts?',
      { kind: 'file', paths: ['list-files.ts'], keywords: ['depth'] },
    ],
    ['see https://example.org/a/b.html', lookup('example', 'http', 'html')],
    ['replace foo with bar in a.txt', { kind: 'replace', path: 'a.txt', old: 'foo', new: 'bar' }],
    [
      'Please replace "the old text" by "the new text" in docs/notes.md.',
      { kind: 'replace', path: 'docs/notes.md', old: 'the old text', new: 'the new text' },
    ],
    ['in src/a.ts rename foo to bar', { kind: 'replace', path: 'src/a.ts', old: 'foo', new: 'bar' }],
    ['replace a with a in b.md', { kind: 'file', paths: ['b.md'], keywords: ['replace'] }],
    ['run `git status`', { kind: 'run', command: 'git status' }],
    ['run npm test', { kind: 'run', command: 'npm test' }],
    ['run the tests', lookup('test', 'run')],
    ["write 'hello' to greet.txt", { kind: 'write', path: 'greet.txt', content: 'hello\n' }],
  ])('%j', (question, intent) => {
    expect(readIntent(question)).toEqual(intent)
  })

  test('an act is taken from the last paragraph only', () => {
    expect(readIntent('run `rm x`\n\nwhere is the parser?')).toMatchObject({ kind: 'lookup' })
  })

  test('[D17] a question of many megabytes is sorted in time that does not grow with it', () => {
    const longText = `${'in a/a.a'.repeat(500_000)} where is the parser?`
    const startedMs = performance.now()
    readIntent(longText)
    expect(performance.now() - startedMs).toBeLessThan(500)
  })
})
