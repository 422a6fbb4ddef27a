import type { SchemaNode } from '../../../../../scripts/lib/json-schema-node.ts'
import { isObject, type Json } from '../../support/schema-walk.ts'

type Document = { root: SchemaNode; defs: Readonly<Record<string, SchemaNode>> }

/** A schema and where it stands, by the names a reader would use: `RemoteEvent(turn_started).prompt`. */
type Placed = { node: SchemaNode; at: string }

function follow({ node, at }: Placed, { defs }: Document): Placed {
  const name = /^#\/\$defs\/(.+)$/.exec(node.$ref ?? '')?.[1]
  if (name === undefined) return { node, at }
  const found = defs[name]
  if (found === undefined) throw new Error(`unresolved reference ${node.$ref}`)
  return { node: found, at: name }
}

/** The value of `type` or `kind` that stands for a variant. */
const tagOf = (node: SchemaNode): unknown => node.properties?.type?.const ?? node.properties?.kind?.const

function variantsOf(placed: Placed, document: Document): Placed[] {
  const { node, at } = follow(placed, document)
  const variants = node.anyOf ?? node.oneOf
  if (variants === undefined) return [{ node, at }]
  return variants
    .filter((variant) => variant.type !== 'null')
    .flatMap((variant) => {
      const [next] = [follow({ node: variant, at }, document)]
      const tag = tagOf(next.node)
      return variantsOf(
        { node: next.node, at: next.at === at && tag !== undefined ? `${at}(${tag})` : next.at },
        document,
      )
    })
}

const listed = (node: SchemaNode): unknown[] => node.enum ?? (node.const === undefined ? [] : [node.const])

const propertiesOf = ({ node, at }: Placed) =>
  Object.entries(node.properties ?? {}).map(([key, property]) => ({
    key,
    node: property,
    at: `${at}.${key}`,
  }))

/** Every property and every listed value of a document. */
export function placesOf(document: Document): Set<string> {
  const places = new Set<string>()
  const seen = new Set<SchemaNode>()
  const visit = (placed: Placed) => {
    for (const variant of variantsOf(placed, document)) {
      if (seen.has(variant.node)) continue
      seen.add(variant.node)
      for (const value of listed(variant.node)) places.add(`${variant.at} = ${value}`)
      for (const property of propertiesOf(variant)) {
        places.add(property.at)
        visit(property)
      }
      const { items } = variant.node
      if (items !== undefined) visit({ node: items, at: `${variant.at}[]` })
    }
  }
  visit({ node: document.root, at: 'root' })
  return places
}

/** What a frame shows of its document; a value that no variant fits shows nothing. */
export function placesIn(document: Document, frame: Json): Set<string> {
  const places = new Set<string>()
  const fits = ({ node }: Placed, value: Json) =>
    isObject(value)
      ? node.properties !== undefined &&
        Object.entries(node.properties).every(
          ([k, p]) => p.const === undefined || (value[k] ?? p.const) === p.const,
        )
      : node.properties === undefined
  const visit = (placed: Placed, value: Json) => {
    const variant = variantsOf(placed, document).find((candidate) => fits(candidate, value))
    if (variant === undefined) return
    for (const one of listed(variant.node)) if (one === value) places.add(`${variant.at} = ${one}`)
    if (isObject(value)) {
      for (const property of propertiesOf(variant)) {
        const member = value[property.key]
        if (member === undefined) continue
        places.add(property.at)
        visit(property, member)
      }
    }
    const { items } = variant.node
    if (Array.isArray(value) && items !== undefined) {
      for (const item of value) visit({ node: items, at: `${variant.at}[]` }, item)
    }
  }
  visit({ node: document.root, at: 'root' }, frame)
  return places
}
