import path from 'node:path'
import { describe, expect, test } from 'vitest'
import { EXECUTION_GOLDEN, goldenText, isShape, loadGolden, refusedAt } from '../../../scripts/lib/golden.ts'
import { REQUEST_SHAPES, RESPONSE_SHAPES, SHAPES } from '../../../src/protocol/execution/shapes.ts'
import { published } from './support/published-schemas.ts'
import type { Json } from './support/schema-walk.ts'
import { unexplained } from './support/unexplained.ts'

const files = loadGolden(path.join(import.meta.dirname, '../../..', EXECUTION_GOLDEN))

const shapeOf = (name: string) => {
  if (!isShape(name)) throw new Error(`there is no shape ${name}`)
  return SHAPES[name]
}

const schemaOf = (name: string) => ({ $ref: `#/components/schemas/${name}` })

const accepted = files.filter((file) => !file.rejected)
const requests = accepted.filter((file) => file.shape in REQUEST_SHAPES)
const answers = accepted.filter((file) => !(file.shape in REQUEST_SHAPES))

describe('golden files', () => {
  test('every shape has one, and every one has a shape', () => {
    const withGolden = new Set(accepted.map((file) => file.shape))
    expect([...withGolden].sort()).toEqual(Object.keys(SHAPES).sort())
  })

  test('only what clients send is refused', () => {
    const refusing = files.filter((file) => file.rejected && file.shape in RESPONSE_SHAPES)
    expect(refusing).toEqual([])
  })

  test.each(files)('$path is formatted, ordered and derived as `npm run golden:update` leaves it', (file) => {
    expect(file.text).toBe(goldenText(file))
  })
})

describe('what the router sends', () => {
  test.each(answers)('$path is written again byte for byte: $golden.why', ({ shape, golden }) => {
    expect(JSON.stringify(shapeOf(shape).parse(golden.wire))).toBe(JSON.stringify(golden.wire))
  })
})

describe('what clients send', () => {
  test.each(requests)('$path is read as it says: $golden.why', ({ shape, golden }) => {
    const parsed: Json = JSON.parse(JSON.stringify(shapeOf(shape).parse(golden.wire)))
    expect(parsed).toEqual('parsed' in golden ? golden.parsed : golden.wire)
  })

  test.each(requests)('$path, once read, reads the same again', ({ shape, golden }) => {
    const parsed = shapeOf(shape).parse(golden.wire)
    expect(shapeOf(shape).parse(parsed)).toEqual(parsed)
  })

  test.each(requests)('[EC 1] $path loses only unknown fields and gains only published defaults', (file) => {
    const parsed: Json = JSON.parse(JSON.stringify(shapeOf(file.shape).parse(file.golden.wire)))
    expect(unexplained(published, schemaOf(file.shape), file.golden.wire as Json, parsed)).toEqual([])
  })

  test.each(files.filter((file) => file.rejected))('$path is refused: $golden.why', ({ shape, golden }) => {
    const result = shapeOf(shape).safeParse(golden.wire)
    expect(result.error && refusedAt(result.error)).toEqual(golden.refused)
  })

  test('a field that appears from nowhere, or survives unknown, would be noticed', () => {
    const schema = schemaOf('CreateSessionRequest')
    expect(unexplained(published, schema, { title: 'a' }, { title: 'a', scope: 'b' })).toEqual([
      '/scope: appeared',
    ])
    expect(unexplained(published, schema, { title: 'a', x: 1 }, { title: 'a', x: 1, scope: null })).toEqual([
      '/x: kept, and not known',
      '/scope: appeared',
    ])
    expect(unexplained(published, schema, { title: 'a' }, { title: 'A' })).toEqual(['/title: changed'])
  })
})
