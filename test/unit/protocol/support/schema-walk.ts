import {
  type Components,
  componentName,
  resolveRef,
  type SchemaNode,
} from '../../../../scripts/lib/json-schema-node.ts'

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json }
export type JsonObject = { [key: string]: Json }

export const isObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** A schema that has been followed to where it says something, and the name of the shape it was found under. */
export type Resolved = { node: SchemaNode; shape: string | null }

/** Whether a variant of a union is the one that a value is written in; null, and tags with one value, decide. */
function fits(components: Components, variant: SchemaNode, value: Json): boolean {
  const node = variant.$ref === undefined ? variant : resolveRef(components, variant)
  if (node.type === 'null') return value === null
  if (value === null) return false
  if (!isObject(value)) return node.properties === undefined
  const tags = Object.entries(node.properties ?? {}).filter(([, property]) => property.const !== undefined)
  const untagged = tags.length === 0
  return untagged
    ? (node.required ?? []).every((key) => key in value)
    : tags.every(([k, p]) => value[k] === p.const)
}

/** Follows references and chooses the variant that a value is written in. */
export function resolveFor(components: Components, start: SchemaNode, value: Json): Resolved {
  let node = start
  let shape: string | null = null
  for (;;) {
    if (node.$ref !== undefined) {
      shape = componentName(node)
      node = resolveRef(components, node)
      continue
    }
    const variants = node.anyOf ?? node.oneOf
    if (variants === undefined) return { node, shape }
    const variant = variants.find((candidate) => fits(components, candidate, value))
    if (variant === undefined) throw new Error(`no variant for ${JSON.stringify(value)}`)
    node = variant
  }
}

/** The schema of one member of an object, or undefined where the schema does not know it. */
export function memberSchema(node: SchemaNode, key: string): SchemaNode | undefined {
  const rest = node.additionalProperties
  return node.properties?.[key] ?? (typeof rest === 'object' ? rest : undefined)
}

export type FoundObject = { at: (string | number)[]; shape: string | null; node: SchemaNode }

/** Every object in a value that has fields of its own, as against a map of anything, with the schema it follows. */
export function objectsIn(components: Components, start: SchemaNode, value: Json): FoundObject[] {
  const found: FoundObject[] = []
  const visit = (schema: SchemaNode, at: (string | number)[], here: Json) => {
    const { node, shape } = resolveFor(components, schema, here)
    if (Array.isArray(here)) {
      const items = node.items
      if (items !== undefined) here.forEach((item, index) => void visit(items, [...at, index], item))
    } else if (isObject(here)) {
      if (node.properties !== undefined) found.push({ at, shape, node })
      for (const [key, member] of Object.entries(here)) {
        const next = memberSchema(node, key)
        if (next !== undefined) visit(next, [...at, key], member)
      }
    }
  }
  visit(start, [], value)
  return found
}
