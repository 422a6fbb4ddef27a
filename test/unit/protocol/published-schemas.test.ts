import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { EXECUTION_GOLDEN, loadGolden } from '../../../scripts/lib/golden.ts'
import { EXECUTION_SCHEMAS, executionSchemaFiles } from '../../../scripts/lib/schema-files.ts'
import { allSchemas } from '../../../src/protocol/execution/json-schemas.ts'

const root = path.join(import.meta.dirname, '../../..')
const generated = executionSchemaFiles()
const checkedIn = readdirSync(path.join(root, EXECUTION_SCHEMAS)).sort()

describe('schemas/execution', () => {
  test('holds the generated files and no other', () => {
    expect(checkedIn).toEqual([...generated.keys()].sort())
  })

  test.each(checkedIn)('%s is what `npm run generate` writes', (name) => {
    expect(readFileSync(path.join(root, EXECUTION_SCHEMAS, name), 'utf8')).toBe(generated.get(name))
  })

  test('is written the same way each time', () => {
    expect([...executionSchemaFiles()]).toEqual([...generated])
  })

  test('refers only to files that are there', () => {
    const references = [...generated].flatMap(([name, text]) =>
      name === 'openapi.json' ? [] : [...text.matchAll(/"\$ref": "([^"]+)"/g)].map(([, file]) => file ?? ''),
    )
    expect(references.length).toBeGreaterThan(50)
    expect(references.filter((file) => !generated.has(file))).toEqual([])
  })
})

/** Published schemas as validators of their own, so that they can be held against the types they came from. */
const $defs = allSchemas((name) => `#/$defs/${name}`)
const validators = new Map(
  Object.keys($defs).map((name) => [name, z.fromJSONSchema({ $ref: `#/$defs/${name}`, $defs } as never)]),
)
const accepts = (shape: string, wire: unknown) => validators.get(shape)?.safeParse(wire).success

/** JSON Schema cannot say "in any case": what is published for a reference leaves the list of providers to the router. */
const LOOSER_THAN_THE_TYPE = [
  'ModelReference/reject/nameless-instance.json',
  'ModelReference/reject/unknown-provider.json',
]

describe('a published schema', () => {
  const files = loadGolden(path.join(root, EXECUTION_GOLDEN))

  test.each(files.filter((file) => !file.rejected))('accepts $path', ({ shape, golden }) => {
    expect(accepts(shape, golden.wire)).toBe(true)
  })

  test.each(files.filter((file) => file.rejected))('refuses $path', ({ shape, golden, path }) => {
    expect(accepts(shape, golden.wire)).toBe(LOOSER_THAN_THE_TYPE.includes(path))
  })
})
