import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  leftOut,
  resultTokens,
  sparableTokens,
  withFittingResults,
} from '../../../src/core/context-results.ts'
import type { ModelRequest } from '../../../src/core/prompt.ts'
import { planTurn, prepareCall } from '../../../src/core/resolve.ts'
import { chooseModel, promptBudget } from '../../../src/core/select.ts'
import { estimateTokens } from '../../../src/core/tokens.ts'
import type { TurnView } from '../../../src/core/turn-view.ts'
import {
  LOCAL,
  makeCall,
  makeCatalogue,
  makeModel,
  makeRequest,
  makeView,
  modelSays,
  must,
  type RequestParts,
  userSays,
} from '../../support/core/builders.ts'

const MIB = 1024 * 1024

/** A turn that is about to answer calls with these results. */
const viewWith = (results: readonly (string | null)[], parts: RequestParts = {}): TurnView =>
  makeView(makeRequest({ text: 'look', ...parts }), {
    said: [
      userSays('look'),
      modelSays('', {
        calls: results.map((result, index) => makeCall({ name: 'read_file', id: `c${index}` }, result)),
      }),
    ],
  })

const resultsOf = ({ transcript }: TurnView): (string | undefined)[] =>
  transcript.flatMap(({ calls }) => calls.map(({ result }) => result))

/** What a model with such a window is sent; null when it is passed over. */
function requestFor(view: TurnView, maxContextTokens: number): ModelRequest | null {
  const model = makeModel(LOCAL, { max_context_tokens: maxContextTokens, max_output_tokens: 500 })
  const plan = must(planTurn(view))
  const choice = chooseModel(plan.demands, makeCatalogue([model]))
  return choice.k === 'use' ? prepareCall(plan, choice.model).request : null
}

/** The texts of a request as its estimate counts them. */
const tokensOf = ({ messages }: ModelRequest): number =>
  estimateTokens(
    messages
      .map((message) =>
        message.role === 'tool' ? message.results.map(({ content }) => content).join('') : message.text,
      )
      .join(''),
  )

const sentResults = (request: ModelRequest | null): string[] =>
  (request?.messages ?? []).flatMap((message) =>
    message.role === 'tool' ? message.results.map(({ content }) => content) : [],
  )

const lines = (count: number): string =>
  Array.from({ length: count }, (_, index) => `line ${index} of a long file that nobody reads`).join('\n')

describe('[D27] a tool result in the prompt', () => {
  test('that fits the window goes in as it is, to the last token', () => {
    const view = viewWith([lines(100)])
    expect(withFittingResults(view, resultTokens(view))).toBe(view)
    expect(withFittingResults(view, resultTokens(view) - 1)).not.toBe(view)
  })

  test('of the longest kind is cut for a small window: its beginning, its end, and what is missing', () => {
    const long = lines(200_000).slice(0, 8 * MIB)
    const request = requestFor(viewWith([long]), 8_000)
    const [shown = ''] = sentResults(request)
    const note = /\n(\[(\d+) of (\d+) characters are left out here.*\])\n/.exec(shown)
    const [head = '', tail = ''] = shown.split(note?.[0] ?? '?')
    expect(note?.[1]).toBe(leftOut(Number(note?.[2]), long.length))
    expect(long.startsWith(head) && long.endsWith(tail)).toBe(true)
    expect(Number(note?.[2])).toBe(long.length - head.length - tail.length)
    expect(head.length).toBeGreaterThan(2 * tail.length)
    expect(tail.length).toBeGreaterThan(1_000)
    expect(request === null ? Number.POSITIVE_INFINITY : tokensOf(request)).toBeLessThan(7_500)
  })

  test('says how to see what is left out', () => {
    expect(leftOut(5, 10)).toContain('ask for a part of it')
  })

  test('leaves a part of the window to what was said before', () => {
    const before = [
      userSays('earlier question', { runId: 'before' }),
      modelSays('earlier answer', { runId: 'before' }),
    ]
    const view = viewWith([lines(100_000)])
    const said = [...before, ...view.transcript]
    const request = requestFor(
      { ...view, transcript: said.map((message, index) => ({ ...message, seq: index + 1 })) },
      8_000,
    )
    expect(request?.messages.map((message) => (message.role === 'tool' ? '' : message.text))).toContain(
      'earlier answer',
    )
  })

  test('gives way to others: short ones stay whole, long ones are cut alike', () => {
    const [short, long = '', longer = ''] = sentResults(
      requestFor(viewWith(['short', lines(10_000), lines(20_000)]), 16_000),
    )
    expect(short).toBe('short')
    expect(Math.abs(estimateTokens(long) - estimateTokens(longer))).toBeLessThan(50)
    expect(long).toContain('characters are left out')
    expect(longer).toContain('characters are left out')
  })

  test('a round of a hundred long results still has a model whose window holds a note for each', () => {
    const results = Array.from({ length: 100 }, () => lines(1_000))
    const shown = sentResults(requestFor(viewWith(results), 32_000))
    expect(shown).toHaveLength(100)
    expect(shown.every((text) => text.includes('characters are left out'))).toBe(true)
    expect(requestFor(viewWith(results), 8_000)).toBeNull()
  })

  test('where there is room for nearly nothing of it, the model is passed over', () => {
    expect(requestFor(viewWith([lines(10_000)]), 1_500)).toBeNull()
  })

  test('is stored and traced as it came: the view of the turn stays as it was', () => {
    const view = viewWith([lines(10_000)])
    const before = resultsOf(view)
    requestFor(view, 8_000)
    expect(resultsOf(view)).toEqual(before)
  })

  test('is told of in the report of the turn: what of it was not shown', () => {
    const plan = must(planTurn(viewWith(['short', lines(10_000)])))
    const outcomeFor = (window: number) =>
      prepareCall(plan, makeModel(LOCAL, { max_context_tokens: window, max_output_tokens: 500 })).outcome
    expect(outcomeFor(8_000).exclusions).toEqual([
      { item: 'the middle of what read_file gave', reason: 'too long for the window' },
    ])
    expect(outcomeFor(1_000_000).exclusions).toBeUndefined()
  })

  test('that never came takes nothing', () => {
    const view = viewWith([null])
    expect([resultTokens(view), sparableTokens(view)]).toEqual([0, 0])
    expect(withFittingResults(view, 0)).toBe(view)
  })

  test('is never more than its room, whatever it is made of, and never half a character', () => {
    const text = fc
      .tuple(
        fc.constantFrom('a', 'x1 ', '🚂', 'ü', '\n', '  ', '漢字', '{"a":1}', '\ud800'),
        fc.integer({ min: 1, max: 20_000 }),
      )
      .map(([piece, count]) => piece.repeat(count))
    fc.assert(
      fc.property(
        fc.array(text, { minLength: 1, maxLength: 5 }),
        fc.integer({ min: 1_500, max: 20_000 }),
        (results, room) => {
          const view = viewWith(results)
          const fitting = withFittingResults(view, room)
          expect(resultTokens(fitting)).toBeLessThanOrEqual(
            Math.max(room, resultTokens(view) - sparableTokens(view)),
          )
          for (const [index, shown = ''] of resultsOf(fitting).entries()) {
            if (results[index]?.isWellFormed()) expect(shown.isWellFormed()).toBe(true)
          }
        },
      ),
      { seed: 4, numRuns: 200 },
    )
  })

  test('is chosen by the same numbers that the prompt is made by: a model that is taken always holds it', () => {
    fc.assert(
      fc.property(
        fc.array(fc.integer({ min: 0, max: 3_000 }), { minLength: 1, maxLength: 20 }),
        fc.integer({ min: 1_000, max: 40_000 }),
        (counts, window) => {
          const request = requestFor(viewWith(counts.map(lines)), window)
          if (request === null) return
          expect(tokensOf(request)).toBeLessThanOrEqual(
            promptBudget({ max_context_tokens: window, max_output_tokens: 500 }),
          )
        },
      ),
      { seed: 5, numRuns: 60 },
    )
  })
})
