import path from 'node:path'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { EXECUTION_GOLDEN, loadGolden } from '../../../scripts/lib/golden.ts'
import { ERROR_STATUS } from '../../../src/protocol/execution/errors.ts'
import { SHAPES } from '../../../src/protocol/execution/shapes.ts'
import { published } from './support/published-schemas.ts'

const files = loadGolden(path.join(import.meta.dirname, '../../..', EXECUTION_GOLDEN)).filter(
  (f) => !f.rejected,
)

const wiresOf = (shape: string): unknown[] => files.filter((f) => f.shape === shape).map((f) => f.golden.wire)

const tagsOf = (shape: string, tag: string): unknown[] => [
  ...new Set(wiresOf(shape).map((wire) => z.record(z.string(), z.unknown()).parse(wire)[tag])),
]

/** The values that a tag may have anywhere in a union, as published. */
function tagValues(node: (typeof published)[string], tag: string): unknown[] {
  const variants = node.anyOf ?? node.oneOf ?? []
  const own = node.properties?.[tag]?.const
  return [...new Set([...(own === undefined ? [] : [own]), ...variants.flatMap((v) => tagValues(v, tag))])]
}

const schema = (name: string) => published[name] ?? {}
const sorted = (values: unknown[]) => [...values].sort()

describe('there is a golden file for', () => {
  test('every outcome status, in an outcome, a response and a `turn_end`', () => {
    const statuses = sorted(tagValues(schema('TurnOutcome'), 'status'))
    expect(statuses).toHaveLength(7)
    expect(sorted(tagsOf('TurnOutcome', 'status'))).toEqual(statuses)
    expect(sorted(tagsOf('TurnResponse', 'status'))).toEqual(statuses)
    expect(sorted(tagsOf('TurnEvent', 'status').filter((status) => status !== undefined))).toEqual(statuses)
  })

  test('every continuation', () => {
    expect(sorted(tagsOf('ContinueRequest', 'type'))).toEqual(sorted(SHAPES.ContinueKind.options))
  })

  test('every stream event', () => {
    const types = sorted(tagValues(schema('TurnEvent'), 'type'))
    expect(types).toHaveLength(6)
    expect(sorted(tagsOf('TurnEvent', 'type'))).toEqual(types)
  })

  test('every trace payload', () => {
    expect(sorted(tagsOf('Payload', 'type'))).toEqual(sorted(SHAPES.TraceEventType.options))
  })

  test('every error code', () => {
    const codes = wiresOf('ApiError').map((wire) => SHAPES.ApiError.parse(wire).error.code)
    expect(sorted(codes)).toEqual(Object.keys(ERROR_STATUS).sort())
  })

  test('every value of every enum', () => {
    const enums = Object.entries(published).filter(([, node]) => node.enum !== undefined)
    expect(enums.length).toBeGreaterThan(10)
    for (const [name, node] of enums)
      expect([name, sorted(wiresOf(name))]).toEqual([name, sorted(node.enum ?? [])])
  })

  test('every kind of content that can be sealed', () => {
    const kinds = wiresOf('ContentRef').map((ref) => z.string().parse(ref).split(':')[0])
    expect(schema('ContentRef').pattern).toBe('^(message|tool_call|diff|plan|memory|trace|run_input):.+$')
    expect(sorted(kinds)).toEqual(['diff', 'memory', 'message', 'plan', 'run_input', 'tool_call', 'trace'])
  })
})
