import { describe, expect, test } from 'vitest'
import type { CallRecord } from '../../../src/core/run/writes.ts'
import { sessionUsage, turnUsage } from '../../../src/core/usage.ts'

const call = (fields: Partial<CallRecord> = {}): CallRecord => ({
  provider: 'openai',
  model: 'm',
  taskType: 'chat',
  chosenBy: 'default route',
  status: 'answered',
  usage: null,
  ...fields,
})

describe('[EC 20.1] usage of a turn', () => {
  test('counters and price of all its calls together', () => {
    expect(
      turnUsage([
        call({ usage: { inputTokens: 10, outputTokens: 1, cachedTokens: 4 }, cost: '0.1' }),
        call({ usage: { inputTokens: 20, outputTokens: 2, reasoningTokens: 5 }, cost: '0.2' }),
      ]),
    ).toEqual({
      input_tokens: 30,
      output_tokens: 3,
      cached_tokens: 4,
      reasoning_tokens: 5,
      total_tokens: 33,
      actual_cost: '0.3',
      currency: 'USD',
    })
  })

  test('[U43] what is unknown is left out, and never zero', () => {
    expect(turnUsage([])).toEqual({})
    expect(turnUsage([call()])).toEqual({ unknown_count: 1 })
    expect(turnUsage([call({ usage: { inputTokens: 7 } })])).toEqual({ input_tokens: 7 })
    expect(turnUsage([call({ usage: { outputTokens: 7 } })])).toEqual({ output_tokens: 7 })
  })

  test('[U43] a part is never told as the whole: no price with an answer whose price is unknown', () => {
    const known = call({ usage: { inputTokens: 10, outputTokens: 1 }, cost: '0.5' })
    expect(turnUsage([known, call()])).toEqual({
      input_tokens: 10,
      output_tokens: 1,
      total_tokens: 11,
      unknown_count: 1,
    })
    expect(turnUsage([known, call({ usage: { inputTokens: 1, outputTokens: 1 } })])).toEqual({
      input_tokens: 11,
      output_tokens: 2,
      total_tokens: 13,
    })
  })

  test('a call that failed without a word takes nothing away from the price of the one that answered', () => {
    const known = call({ usage: { inputTokens: 10, outputTokens: 1 }, cost: '0.5' })
    expect(turnUsage([call({ status: 'failed' }), known])).toMatchObject({ actual_cost: '0.5' })
    expect(turnUsage([call({ status: 'failed' }), known])).not.toHaveProperty('unknown_count')
  })

  test('a counter that is zero is left out, and still priced', () => {
    const zeros = { inputTokens: 0, outputTokens: 0, cachedTokens: 0, reasoningTokens: 0 }
    expect(turnUsage([call({ usage: zeros, cost: '0' })])).toEqual({ actual_cost: '0', currency: 'USD' })
    expect(turnUsage([call({ usage: { inputTokens: 7, outputTokens: 0 } })])).toEqual({
      input_tokens: 7,
      total_tokens: 7,
    })
  })
})

describe('[EC 20.2] usage of a session', () => {
  test('an empty session', () => {
    expect(sessionUsage([])).toEqual({ total: {}, by_model: [], by_task_type: [] })
  })

  test('groups in the order in which they were first seen; money under `estimated_cost`', () => {
    const usage = { inputTokens: 1, outputTokens: 2 }
    const sum = sessionUsage([
      call({ model: 'b', taskType: 'edit', usage, cost: '1.5' }),
      call({ model: 'a', taskType: 'chat', usage, cost: '0.5' }),
      call({ model: 'b', taskType: 'chat', status: 'lost' }),
    ])
    const one = { input_tokens: 1, output_tokens: 2, total_tokens: 3, currency: 'USD' }
    expect(sum).toEqual({
      total: {
        input_tokens: 2,
        output_tokens: 4,
        total_tokens: 6,
        estimated_cost: '2',
        currency: 'USD',
        unknown_count: 1,
      },
      by_model: [
        { provider: 'openai', model: 'b', request_count: 2, estimated_cost: '1.5', unknown_count: 1, ...one },
        { provider: 'openai', model: 'a', request_count: 1, estimated_cost: '0.5', ...one },
      ],
      by_task_type: [
        { task_type: 'edit', request_count: 1, estimated_cost: '1.5', ...one },
        { task_type: 'chat', request_count: 2, estimated_cost: '0.5', unknown_count: 1, ...one },
      ],
    })
  })

  test('one model name at two providers is two models', () => {
    const { by_model } = sessionUsage([call(), call({ provider: 'ollama' })])
    expect(by_model.map(({ provider, request_count }) => [provider, request_count])).toEqual([
      ['openai', 1],
      ['ollama', 1],
    ])
  })

  test('a call without a price adds to the count and to no money', () => {
    const { total } = sessionUsage([call({ usage: { inputTokens: 1, outputTokens: 1 } })])
    expect(total).toEqual({ input_tokens: 1, output_tokens: 1, total_tokens: 2 })
  })
})
