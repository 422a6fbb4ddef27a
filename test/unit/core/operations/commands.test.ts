import { describe, expect, test } from 'vitest'
import { boundedOutput, hardBreaks, plainWords } from '../../../../src/core/operations/command-output.ts'
import {
  contextText,
  helpText,
  modelText,
  perfText,
  statusText,
  tasksText,
  usageText,
} from '../../../../src/core/operations/command-texts.ts'
import { COMMANDS, readCommand } from '../../../../src/core/operations/commands.ts'
import { readTitle } from '../../../../src/core/operations/title.ts'
import { REMOTE_COMMANDS } from '../../../../src/core/remote/command-list.ts'

describe('a command', () => {
  test('[RF 21] is named by its first word in lower case; the rest is its argument, trimmed', () => {
    expect(readCommand('  /TITLE   My  words ')).toEqual({
      ok: true,
      value: { name: '/title', argument: 'My  words' },
    })
    expect(readCommand('/model\nopenai/any')).toEqual({
      ok: true,
      value: { name: '/model', argument: 'openai/any' },
    })
  })

  test.each([
    '/new',
    '/clear',
    '/compact',
    'status',
    '',
    '/',
    '/status now',
    '/help me',
    '/statusx',
    '/ſtatus',
  ])('"Unsupported commands or arguments return unsupported_operation": %j', (command) => {
    expect(readCommand(command)).toMatchObject({ ok: false, error: { code: 'unsupported_operation' } })
  })

  test('[RF 21] the thirteen names are those that snapshots offer', () => {
    expect(COMMANDS.map(({ name }) => name)).toEqual(REMOTE_COMMANDS.map(({ name }) => `/${name}`))
    expect(COMMANDS).toHaveLength(13)
  })

  test('/help names every command', () => {
    for (const { name } of COMMANDS) expect(helpText()).toContain(`\`${name}`)
  })
})

describe('the output of a command', () => {
  test('[RF 21] is cut at 32 KiB between characters, and says so', () => {
    const whole = 'é'.repeat(16 * 1024)
    expect(boundedOutput(whole)).toBe(whole)
    expect(boundedOutput(`a${whole}`)).toBe(`a${'é'.repeat(16 * 1024 - 1)}\n… output truncated`)
    expect(boundedOutput(`${'a'.repeat(32 * 1024 - 3)}😀`)).toBe(
      `${'a'.repeat(32 * 1024 - 3)}\n… output truncated`,
    )
  })

  test('[RF 21] has breaks that Markdown keeps', () => {
    expect(hardBreaks('a\nb')).toBe('a  \nb')
  })

  test('shows words that somebody typed as words', () => {
    expect(plainWords('# a\n\u0007b | `c` [d](e)', 100)).toBe('\\# a b \\| \\`c\\` \\[d\\]\\(e\\)')
    expect(plainWords('a'.repeat(1_000), 5)).toBe('aaaa…')
  })
})

describe('what commands show', () => {
  const status = {
    title: 'Fix it',
    activity: 'running',
    isServing: true,
    model: 'ollama/small',
    settings: null,
    queued: 2,
    runs: 3,
    keyId: null,
    failed: null,
  } as const

  test('[U08] /status says what is waited for', () => {
    expect(statusText(status)).toBe(
      'Session: Fix it\nState: running\nLast model: ollama/small\nPrompts that wait: 2\nRuns: 3',
    )
    expect(statusText({ ...status, failed: 'no model takes pictures' })).toContain(
      'The last one failed: no model takes pictures',
    )
    expect(statusText({ ...status, isServing: false })).toContain('State: waits for the computer')
    expect(statusText({ ...status, activity: 'awaiting_question' })).toContain('State: waits for an answer')
    expect(statusText({ ...status, title: ' ', keyId: 'kf2_k' })).toMatch(/without a title[\s\S]*kf2\\_k/)
  })

  test('[U43] /usage shows what is known, and says what is not', () => {
    const usage = { input_tokens: 10, estimated_cost: '0.5', currency: 'USD', unknown_count: 1 }
    const text = usageText({
      total: usage,
      by_model: [{ ...usage, provider: 'ollama', model: 'small', request_count: 2 }],
      by_task_type: [],
    })
    expect(text).toBe(
      'In all: 10 tokens in, 0.5 USD, 1 calls of unknown usage\n' +
        'ollama/small: 2 calls, 10 tokens in, 0.5 USD, 1 calls of unknown usage',
    )
    expect(usageText({ total: {}, by_model: [], by_task_type: [] })).toBe('No model was called yet.')
  })

  test('/perf shows how long turns took, the one that is served up to now', () => {
    const turn = { models: ['ollama/small'], status: 'done', startedAtMs: 0, endedAtMs: 1_500 }
    expect(perfText([{ ...turn, status: 'running', startedAtMs: 4_000, endedAtMs: null }, turn], 6_000)).toBe(
      '1970-01-01T00:00:04.000Z: 2.0 s, ollama/small, running\n' +
        '1970-01-01T00:00:00.000Z: 1.5 s, ollama/small, done',
    )
  })

  test('/context shows what was left out and why, and counts what is too much to list', () => {
    const files = Array.from({ length: 150 }, (_, i) => ({
      path: `f${i}.ts`,
      kind: 'file',
      included: true,
      reason: 'fits',
    }))
    const text = contextText([...files, { kind: 'git_diff', included: false, reason: 'too large' }])
    expect(text).toContain('Shown to the model: 150\n')
    expect(text).toContain('\n… and 50 more\nLeft out: 1\ngit\\_diff: too large')
  })

  test('/tasks shows the prompts that wait, in their order', () => {
    expect(tasksText(['one', 'two\nlines'])).toBe('1. one\n2. two lines')
    expect(tasksText([])).toContain('No prompt waits')
  })

  test('/model marks the one that is selected', () => {
    const models = ['auto', 'a/b'].map((id) => ({ id, model: 'm', reasoning_efforts: ['default'] }))
    expect(modelText({ models, selected_model: 'a/b', reasoning_effort: 'default', can_change: true })).toBe(
      '- auto: m\n- a/b: m (selected)',
    )
  })
})

describe('a title', () => {
  test('[RF 21] has 1 to 512 bytes and no control characters', () => {
    expect(readTitle('é'.repeat(256)).ok).toBe(true)
    for (const title of ['', `${'é'.repeat(256)}a`, 'a\nb', 'a\u0085b'])
      expect(readTitle(title)).toMatchObject({ ok: false, error: { code: 'invalid_request' } })
  })
})
