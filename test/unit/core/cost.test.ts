import { describe, expect, test } from 'vitest'
import { addMoney, compareMoney, priceCall, type TokenCounts } from '../../../src/core/cost.ts'
import { Decimal } from '../../../src/protocol/execution/ids.ts'
import { makeRandom } from '../../support/core/random.ts'

const price = (input: string | undefined, output: string | undefined, counts: TokenCounts) =>
  priceCall(
    {
      ...(input === undefined ? {} : { input_cost_per_million_tokens: input }),
      ...(output === undefined ? {} : { output_cost_per_million_tokens: output }),
    },
    counts,
  )

describe('[EC 20.1] the price of a call is exact', () => {
  test.each([
    // input rate, output rate, input tokens, output tokens, price
    ['3', '15', 812, 44, '0.003096'],
    ['0.1', '0.2', 1, 1, '0.0000003'],
    ['0.1', '0.2', 3, 0, '0.0000003'],
    ['1.10', '2.200', 1_000_000, 1_000_000, '3.3'],
    ['0', '0', 500, 500, '0'],
    ['5', '5', 0, 0, '0'],
    ['999999999999999999', '0', 1_000_000, 0, '999999999999999999'],
    ['0.000000000001', '0', 1, 0, '0.000000000000000001'],
    ['0.000000000000000001', '0', 1, 0, '0'],
    ['0.000000000000100001', '0', 10, 0, '0.000000000000000001'],
  ])('%s and %s per million for %i and %i: %s', (input, output, inputTokens, outputTokens, expected) => {
    expect(price(input, output, { inputTokens, outputTokens })).toBe(expected)
  })

  test.each([
    // cached, written, price of 1000 in and 10 out at 3 and 15, cached at 0.3, written at 3.75
    [0, 0, '0.00315'],
    [1000, 0, '0.00045'],
    [400, 600, '0.00252'],
    [0, 1000, '0.0039'],
    [1500, 0, '0.0006'],
  ])(
    '[U43] of 1000 tokens %i from the cache and %i into it: %s',
    (cachedTokens, cacheWriteTokens, expected) => {
      const rates = { input_cost_per_million_tokens: '3', output_cost_per_million_tokens: '15' }
      const counts = { inputTokens: 1000, outputTokens: 10, cachedTokens, cacheWriteTokens }
      const apart = {
        cached_input_cost_per_million_tokens: '0.3',
        cache_write_cost_per_million_tokens: '3.75',
      }
      expect(priceCall({ ...rates, ...apart }, counts)).toBe(expected)
      if (cachedTokens <= 1000) expect(priceCall(rates, counts)).toBe('0.00315')
    },
  )

  test('[U43] a prompt longer than the rates hold for has no price', () => {
    const rates = { input_cost_per_million_tokens: '1', output_cost_per_million_tokens: '1' }
    const upTo = (inputTokens: number) =>
      priceCall({ ...rates, prices_up_to_input_tokens: 1000 }, { inputTokens, outputTokens: 0 })
    expect([upTo(1000), upTo(1001)]).toEqual(['0.001', undefined])
  })

  test('[U43] unknown rates or counts give no price, never zero', () => {
    const counts = { inputTokens: 1, outputTokens: 1 }
    expect(price(undefined, '1', counts)).toBe(undefined)
    expect(price('1', undefined, counts)).toBe(undefined)
    expect(price('1', '1', { inputTokens: 1 })).toBe(undefined)
    expect(price('0', '0', { outputTokens: 1 })).toBe(undefined)
  })
})

describe('[D49] money is added and compared without floats', () => {
  test('where floats go wrong', () => {
    expect(addMoney('0.1', '0.2')).toBe('0.3')
    expect(addMoney('999999999999999999', '0.000000000000000001')).toBe(
      '999999999999999999.000000000000000001',
    )
    expect(addMoney('0.50', '0.5')).toBe('1')
  })

  test.each([
    ['1', '1.000', 0],
    ['0.1', '0.10', 0],
    ['2', '10', -1],
    ['0.3', '0.29999999999999999', 1],
  ])('%s against %s', (a, b, expected) => {
    expect(compareMoney(a, b)).toBe(expected)
    expect(compareMoney(b, a)).toBe(0 - expected)
  })

  test('sums do not depend on their order, and stay decimals', () => {
    const random = makeRandom(43)
    for (let i = 0; i < 300; i++) {
      const amounts = Array.from({ length: 5 }, () => `${random.int(1000)}.${random.int(1_000_000_000)}`)
      const sum = amounts.reduce(addMoney, '0')
      expect(amounts.reverse().reduce(addMoney, '0')).toBe(sum)
      expect(Decimal.safeParse(sum).success).toBe(true)
    }
  })
})
