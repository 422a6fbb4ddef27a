/**
 * Brings a schema to the form in which two can be compared whatever style they were written in: the flat list of
 * things that a value may be, references and `allOf` merged away, nullability apart.
 */

import { type Components, componentName, resolveRef, type SchemaNode } from '../json-schema-node.ts'

/** `origin` is the component that an option was found in, where it was found behind a reference. */
export type Option = SchemaNode & { origin?: string }

export type Alternatives = { nullable: boolean; options: Option[] }

/** Fields of both; where both say something about a keyword that is not a list or a map, the second one wins. */
function merge(a: SchemaNode, b: SchemaNode): SchemaNode {
  const properties = { ...a.properties, ...b.properties }
  const required = [...new Set([...(a.required ?? []), ...(b.required ?? [])])]
  return {
    ...a,
    ...b,
    ...(Object.keys(properties).length > 0 ? { properties } : {}),
    ...(required.length > 0 ? { required } : {}),
  }
}

const crossed = (left: Option[], right: Option[]): Option[] =>
  left.flatMap((a) => right.map((b) => merge(a, b)))

/** Splits unions and type lists; `follow` says which references are looked into. */
function split(components: Components, node: SchemaNode, follow: (name: string) => boolean): Option[] {
  const { $ref, allOf, anyOf, oneOf, ...own } = node
  if ($ref !== undefined) {
    const name = componentName(node)
    if (name !== null && !follow(name)) return [{ $ref }]
    const found = split(components, resolveRef(components, node), follow)
    return name === null ? found : found.map((option) => ({ origin: name, ...option }))
  }
  let options: Option[] = [own]
  // What is merged has to be seen: references inside `allOf` are always followed.
  for (const part of allOf ?? [])
    options = crossed(
      options,
      split(components, part, () => true),
    )
  const variants = anyOf ?? oneOf
  if (variants !== undefined) {
    const each = variants.flatMap((variant) => split(components, variant, follow))
    options = Object.keys(own).some((key) => key !== 'description' && key !== 'default')
      ? crossed(options, each)
      : each
  }
  return options.flatMap((option) =>
    Array.isArray(option.type) ? option.type.map((type) => ({ ...option, type })) : [option],
  )
}

const values = (option: SchemaNode): unknown[] | undefined =>
  option.const === undefined ? option.enum : [option.const]

/** Several strings with listed values are one string with all of them. */
function joinStrings(options: Option[]): Option[] {
  const strings = options.filter((option) => option.type === 'string')
  if (strings.length < 2) return options
  const lists = strings.map(values)
  const joined: SchemaNode = lists.every((list) => list !== undefined)
    ? { type: 'string', enum: lists.flatMap((list) => list ?? []) }
    : { type: 'string' }
  return [joined, ...options.filter((option) => option.type !== 'string')]
}

/** What a value may be. References that `follow` declines stay as they are. */
export function alternatives(
  components: Components,
  node: SchemaNode,
  follow: (name: string) => boolean,
): Alternatives {
  const options = split(components, node, follow)
  return {
    nullable: options.some((option) => option.type === 'null'),
    options: joinStrings(options.filter((option) => option.type !== 'null')),
  }
}

/** The listed values of an option, sorted, or undefined where any will do. */
export const listedValues = (option: SchemaNode): string[] | undefined => values(option)?.map(String).sort()

/**
 * What tells one object of a union from the others: the properties that must be there and can have one value only, or
 * else the ones that must be there.
 */
export function tagOf(components: Components, option: SchemaNode): string {
  const tags = Object.entries(option.properties ?? {}).flatMap(([key, property]) => {
    if (!option.required?.includes(key)) return []
    const listed = property.$ref === undefined ? values(property) : values(resolveRef(components, property))
    return listed?.length === 1 ? [`${key}=${listed[0]}`] : []
  })
  if (tags.length > 0) return tags.sort().join(' ')
  return option.type === 'object' ? [...(option.required ?? [])].sort().join(' ') : String(option.type)
}
