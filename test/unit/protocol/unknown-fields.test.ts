import path from 'node:path'
import { describe, expect, test } from 'vitest'
import { EXECUTION_GOLDEN, loadGolden } from '../../../scripts/lib/golden.ts'
import { REQUEST_SHAPES, SHAPES, SHARED_SHAPES } from '../../../src/protocol/execution/shapes.ts'
import { published } from './support/published-schemas.ts'
import { isObject, type Json, objectsIn } from './support/schema-walk.ts'

type Shape = keyof typeof REQUEST_SHAPES | keyof typeof SHARED_SHAPES

const UNKNOWN = 'field_of_a_later_version'

/** The value with one more field in the object at a path. */
function withUnknownField(value: Json, [step, ...rest]: readonly (string | number)[]): Json {
  if (step === undefined) return isObject(value) ? { ...value, [UNKNOWN]: { any: ['thing'] } } : value
  if (Array.isArray(value)) return value.map((item, i) => (i === step ? withUnknownField(item, rest) : item))
  if (!isObject(value)) return value
  return { ...value, [step]: withUnknownField(value[step] ?? null, rest) }
}

const inputs = loadGolden(path.join(import.meta.dirname, '../../..', EXECUTION_GOLDEN))
  .filter((file) => !file.rejected)
  .flatMap((file) =>
    file.shape in REQUEST_SHAPES || file.shape in SHARED_SHAPES
      ? [{ shape: file.shape as Shape, wire: file.golden.wire as Json, path: file.path }]
      : [],
  )

const cases = inputs.flatMap((input) =>
  objectsIn(published, { $ref: `#/components/schemas/${input.shape}` }, input.wire).map((object) => ({
    ...input,
    at: object.at,
    pointer: `${input.path}#/${object.at.join('/')}`,
    inPreferences: object.shape === 'LocalPreferences',
  })),
)

describe('[EC 1] an unknown field', () => {
  test.each(cases.filter((c) => !c.inPreferences))('is ignored at $pointer', ({ shape, wire, at }) => {
    const grown = SHAPES[shape].safeParse(withUnknownField(wire, at))
    expect(grown.error?.issues).toBeUndefined()
    expect(grown.data).toEqual(SHAPES[shape].parse(wire))
  })

  test.each(cases.filter((c) => c.inPreferences))('is refused at $pointer', ({ shape, wire, at }) => {
    const issues = SHAPES[shape].safeParse(withUnknownField(wire, at)).error?.issues
    expect(issues).toMatchObject([{ code: 'unrecognized_keys', keys: [UNKNOWN], path: at }])
  })

  test('was tried in every object shape that clients send, and refused only in local preferences', () => {
    const objects = Object.keys({ ...REQUEST_SHAPES, ...SHARED_SHAPES }).filter(
      (shape) => published[shape]?.properties,
    )
    const tried = new Set(cases.filter((c) => c.at.length === 0).map((c) => c.shape))
    expect(objects.filter((shape) => !tried.has(shape as Shape))).toEqual([])
    const closed = Object.keys(published).filter((shape) => published[shape]?.additionalProperties === false)
    expect(closed).toEqual(['LocalPreferences'])
  })
})
