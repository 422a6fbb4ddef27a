/** Compares two schemas by meaning. Each component is compared once, under its own name. */

import { type Components, componentName, type SchemaNode } from '../json-schema-node.ts'
import { alternatives, listedValues, type Option, tagOf } from './alternatives.ts'
import { type Differences, matchKeys } from './difference.ts'

export type Sides = { theirs: Components; ours: Components; differences: Differences }

const isObject = (option: SchemaNode) => option.type === 'object' || option.properties !== undefined

const ANY = 'any'
const typeOf = (option: SchemaNode): string => String(option.type ?? (isObject(option) ? 'object' : ANY))

/** Numeric widths (`int32`, `float`) are not for JSON; a format of a string is. */
const formatOf = (option: SchemaNode) => (option.type === 'string' ? (option.format ?? '') : '')

const BOUNDS = ['minimum', 'maximum', 'minLength', 'maxLength', 'minItems', 'maxItems'] as const
const boundsOf = (option: SchemaNode) =>
  BOUNDS.flatMap((bound) => (option[bound] === undefined ? [] : [`${bound} ${option[bound]}`])).join(', ')

/** Unknown fields: refused, or of a schema of their own; `true`, `{}` and silence are the same. */
function restOf(option: SchemaNode): SchemaNode | 'refused' {
  const rest = option.additionalProperties
  return rest === false ? 'refused' : typeof rest === 'object' ? rest : {}
}

function compareObjects(sides: Sides, at: string, theirs: SchemaNode, ours: SchemaNode): void {
  const { differences } = sides
  const needs = (option: SchemaNode, key: string) => option.required?.includes(key) ?? false
  matchKeys(
    new Map(Object.entries(theirs.properties ?? {})),
    new Map(Object.entries(ours.properties ?? {})),
    (key, side) => differences.one(`${at}.${key}`, 'property', side),
    (key, their, our) => {
      differences.required(`${at}.${key}`, needs(theirs, key), needs(ours, key))
      compareSchemas(sides, `${at}.${key}`, their, our)
    },
  )
  const [theirRest, ourRest] = [restOf(theirs), restOf(ours)]
  if (theirRest === 'refused' || ourRest === 'refused') {
    const say = (rest: typeof theirRest) => (rest === 'refused' ? 'refused' : 'ignored')
    differences.compare(at, 'unknown fields', say(theirRest), say(ourRest))
  } else {
    compareSchemas(sides, `${at}.*`, theirRest, ourRest)
    // Every key of a JSON object is a string, so a bare `propertyNames: {type: string}` says nothing.
    const keys = (option: SchemaNode) => option.propertyNames ?? { type: 'string' }
    compareSchemas(sides, `${at} keys`, keys(theirs), keys(ours))
  }
}

function compareOptions(sides: Sides, place: string, theirs: Option, ours: Option): void {
  const { differences } = sides
  // What only we have a name for is compared under that name, once for all its uses.
  const at = ours.origin !== undefined && sides.theirs[ours.origin] === undefined ? ours.origin : place
  if (typeOf(theirs) !== typeOf(ours)) {
    differences.add({ at, what: 'type', theirs: typeOf(theirs), ours: typeOf(ours) })
    return
  }
  const list = (option: SchemaNode) => listedValues(option)?.join(' | ') ?? ANY
  differences.compare(at, 'enum', list(theirs), list(ours))
  differences.compare(at, 'format', formatOf(theirs), formatOf(ours))
  differences.compare(at, 'pattern', theirs.pattern ?? '', ours.pattern ?? '')
  differences.compare(at, 'bounds', boundsOf(theirs), boundsOf(ours))
  if (isObject(theirs)) compareObjects(sides, at, theirs, ours)
  if (theirs.type === 'array') compareSchemas(sides, `${at}[]`, theirs.items ?? {}, ours.items ?? {})
}

/** The variants of a union by what tells them apart; those that nothing tells apart are counted. */
function byTag(side: Components, options: Option[]): Map<string, Option> {
  const variants = new Map<string, Option>()
  for (const option of options) {
    const tag = tagOf(side, option)
    const same = [...variants.keys()].filter((key) => key === tag || key.startsWith(`${tag} #`)).length
    variants.set(same === 0 ? tag : `${tag} #${same + 1}`, option)
  }
  return variants
}

const referred = (options: SchemaNode[]) => options.flatMap((option) => componentName(option) ?? [])

/** Notes every difference of meaning between two schemas, under names that start with `at`. */
export function compareSchemas(sides: Sides, at: string, theirs: SchemaNode, ours: SchemaNode): void {
  const { differences } = sides
  const named = (side: Components, node: SchemaNode) =>
    referred(alternatives(side, node, () => false).options)
  const inOurs = new Set(named(sides.ours, ours))
  const shared = new Set(named(sides.theirs, theirs).filter((name) => inOurs.has(name)))
  const follow = (name: string) => !shared.has(name)
  const [their, our] = [alternatives(sides.theirs, theirs, follow), alternatives(sides.ours, ours, follow)]

  if (their.nullable !== our.nullable) {
    const say = (nullable: boolean) => (nullable ? 'may be null' : 'never null')
    const what = our.nullable ? 'null added' : 'null missing'
    differences.add({ at, what, theirs: say(their.nullable), ours: say(our.nullable) })
  }

  const rest = (options: Option[]) => options.filter((option) => option.$ref === undefined)
  const [theirRest, ourRest] = [rest(their.options), rest(our.options)]
  const [theirOnly, ourOnly] = [theirRest[0], ourRest[0]]
  if (theirRest.length === 1 && ourRest.length === 1 && theirOnly !== undefined && ourOnly !== undefined) {
    compareOptions(sides, at, theirOnly, ourOnly)
    return
  }
  matchKeys(
    byTag(sides.theirs, theirRest),
    byTag(sides.ours, ourRest),
    (tag, side) => differences.one(`${at}(${tag})`, 'variant', side),
    (tag, a, b) => compareOptions(sides, `${at}(${tag})`, a, b),
  )
}
