/** JSON Schema as the scripts and tests read it: ours and those of others, with the keywords that either uses. */

import { z } from 'zod'

export type SchemaNode = {
  $ref?: string | undefined
  allOf?: SchemaNode[] | undefined
  anyOf?: SchemaNode[] | undefined
  oneOf?: SchemaNode[] | undefined
  type?: string | string[] | undefined
  const?: unknown
  enum?: unknown[] | undefined
  default?: unknown
  format?: string | undefined
  pattern?: string | undefined
  minimum?: number | undefined
  maximum?: number | undefined
  minLength?: number | undefined
  maxLength?: number | undefined
  minItems?: number | undefined
  maxItems?: number | undefined
  properties?: Record<string, SchemaNode> | undefined
  required?: string[] | undefined
  additionalProperties?: SchemaNode | boolean | undefined
  propertyNames?: SchemaNode | undefined
  items?: SchemaNode | undefined
}

export const SchemaNode: z.ZodType<SchemaNode> = z.lazy(() =>
  z.looseObject({
    $ref: z.string().optional(),
    allOf: z.array(SchemaNode).optional(),
    anyOf: z.array(SchemaNode).optional(),
    oneOf: z.array(SchemaNode).optional(),
    type: z.union([z.string(), z.array(z.string())]).optional(),
    enum: z.array(z.unknown()).optional(),
    format: z.string().optional(),
    pattern: z.string().optional(),
    minimum: z.number().optional(),
    maximum: z.number().optional(),
    minLength: z.number().optional(),
    maxLength: z.number().optional(),
    minItems: z.number().optional(),
    maxItems: z.number().optional(),
    properties: z.record(z.string(), SchemaNode).optional(),
    required: z.array(z.string()).optional(),
    additionalProperties: z.union([z.boolean(), SchemaNode]).optional(),
    propertyNames: SchemaNode.optional(),
    items: SchemaNode.optional(),
  }),
)

/** Schemas by name, as under `#/components/schemas`. */
export type Components = Readonly<Record<string, SchemaNode>>

/** The name behind `#/components/schemas/<name>`, or null for any other reference and for none. */
export function componentName(node: SchemaNode): string | null {
  return /^#\/components\/schemas\/([^/]+)$/.exec(node.$ref ?? '')?.[1] ?? null
}

/** The component that a node refers to. An unknown one throws. */
export function resolveRef(components: Components, node: SchemaNode): SchemaNode {
  const name = componentName(node)
  const found = name === null ? undefined : components[name]
  if (found === undefined) throw new Error(`unresolved reference ${node.$ref}`)
  return found
}
