import { describe, expect, test } from 'vitest'
import { endingLine, usageLine } from '../../../src/cli/run-summary.ts'
import { completed } from '../../../src/core/run/envelope.ts'
import { CompletedTurn } from '../../../src/protocol/execution/turn.ts'
import { makeReport } from '../../support/core/run-machine.ts'

const turn = (ending: 'truncated' | 'refused' | null) =>
  CompletedTurn.parse(Reflect.get(completed('text', ending, makeReport(), {}, 'trace:1'), 'data'))

describe('the lines under an answer', () => {
  test('[U42] say that it was cut, or refused, and nothing of one that is complete', () => {
    expect(endingLine(turn('truncated'))).toContain('output limit')
    expect(endingLine(turn('refused'))).toContain('refused')
    expect(endingLine(turn(null))).toBe(undefined)
  })

  test('[U43] tell cache reads, cache writes and reasoning apart, and unknown from zero', () => {
    const usage = { input_tokens: 812, output_tokens: 44, cached_tokens: 512, cache_write_tokens: 128 }
    expect(usageLine({ ...usage, reasoning_tokens: 20, actual_cost: '0.0031', currency: 'USD' })).toBe(
      'in 812 · out 44 tokens · cached 512 · cache written 128 · reasoning 20 · $0.0031',
    )
    expect(usageLine({ output_tokens: 44 })).toBe('in ? · out 44 tokens · cost unknown')
    expect(usageLine({ output_tokens: 44, actual_cost: '0' })).toBe('in 0 · out 44 tokens · $0')
    expect(usageLine({ output_tokens: 44, estimated_cost: '0', unknown_count: 1 })).toContain('in ? ·')
  })
})
