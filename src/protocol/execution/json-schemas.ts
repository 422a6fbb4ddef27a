/** Turns the wire shapes into JSON Schema 2020-12. It writes no file and knows no route. */

import { z } from 'zod'
import { assert } from '../assert.ts'
import { REQUEST_SHAPES, RESPONSE_SHAPES, SHARED_SHAPES, type ShapeName } from './shapes.ts'

export type JsonSchema = Readonly<Record<string, unknown>>

/** How one shape names another: `ref('Usage')` is the text of the `$ref`. */
export type RefStyle = (name: string) => string

type Shapes = Readonly<Record<string, z.ZodType>>

type Override = NonNullable<NonNullable<Parameters<typeof z.toJSONSchema>[1]>['override']>

/** Where the published schema says another thing than zod's own reading of the type. */
export const asPublished: Override = ({ zodSchema, jsonSchema }) => {
  const { def } = zodSchema._zod
  // Unknown fields are ignored on the wire (EC 1): only `strictObject` closes a schema.
  if (def.type === 'object' && def.catchall === undefined) delete jsonSchema.additionalProperties
  // zod leaves a default out near a transform, because it cannot know that this one only fills it in.
  if (def.type === 'default') jsonSchema.default = def.defaultValue as never
  const filledIn = z.globalRegistry.get(zodSchema)?.default
  if (filledIn !== undefined) jsonSchema.default = filledIn as never
  // Behind a format, the pattern tells a reader nothing more; and every JSON number ends at the safe integers.
  if (jsonSchema.format === 'uuid' || jsonSchema.format === 'date-time') delete jsonSchema.pattern
  if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum
}

function describe(shapes: Shapes, io: 'input' | 'output', ref: RefStyle): Record<string, JsonSchema> {
  const registry = z.registry<{ id: string }>()
  for (const [id, shape] of Object.entries(shapes)) registry.add(shape, { id })
  const { schemas } = z.toJSONSchema(registry, { io, uri: ref, override: asPublished })
  // zod collects here what is referred to by name and not in the list: a shape that is missing or in the wrong group.
  const strays = Object.keys((schemas.__shared as { $defs?: object } | undefined)?.$defs ?? {})
  assert(strays.length === 0, `shapes outside the ${io} list: ${strays.join(', ')}`)
  return Object.fromEntries(
    Object.entries(schemas).map(([name, { $schema, $id, ...schema }]) => [name, schema as JsonSchema]),
  )
}

const byName = <T>(record: Record<string, T>): Record<string, T> =>
  Object.fromEntries(Object.entries(record).sort(([a], [b]) => (a < b ? -1 : 1)))

/** The schemas of all that clients send, by name, in alphabetical order. */
export const requestSchemas = (ref: RefStyle): Record<string, JsonSchema> =>
  byName(describe({ ...REQUEST_SHAPES, ...SHARED_SHAPES }, 'input', ref))

/** The schemas of all that the router sends, by name, in alphabetical order. */
export const responseSchemas = (ref: RefStyle): Record<string, JsonSchema> =>
  byName(describe({ ...RESPONSE_SHAPES, ...SHARED_SHAPES }, 'output', ref))

/** The schemas of every shape, by name, in alphabetical order. A shared shape that differs by direction throws. */
export function allSchemas(ref: RefStyle): Record<ShapeName, JsonSchema> {
  const requests = requestSchemas(ref)
  const responses = responseSchemas(ref)
  for (const name of Object.keys(SHARED_SHAPES)) {
    const same = JSON.stringify(requests[name]) === JSON.stringify(responses[name])
    assert(same, `${name} reads differently as input and as output`)
  }
  return byName({ ...requests, ...responses }) as Record<ShapeName, JsonSchema>
}
