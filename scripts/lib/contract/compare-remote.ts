/**
 * Holds our types of the remote protocol against a reference that is older than they are: its example frames, and its
 * JSON Schemas. Within a version the wire only grows, so the question is not whether both are the same, but whether
 * whoever knows only the reference can talk with us.
 */

import { isDeepStrictEqual } from 'node:util'
import { z } from 'zod'
import { decodeHandshake } from '../../../src/protocol/remote/decode-handshake.ts'
import { decodeRequest } from '../../../src/protocol/remote/decode-request.ts'
import { type Components, SchemaNode } from '../json-schema-node.ts'
import { type RemoteGoldenFile, reread } from '../remote-golden.ts'
import { compareSchemas } from './compare-schemas.ts'
import { type Difference, Differences } from './difference.ts'

/** `request`: what clients send, and we must accept. `answer`: what we send, and clients must be able to read. */
export type Direction = 'request' | 'answer'

/** What is wrong with an example frame: one sentence, or none. */
export function frameProblems(file: Pick<RemoteGoldenFile, 'path' | 'document' | 'wire'>): string[] {
  const read = reread(file)
  if (!read.ok) return [`${file.path}: refused at ${read.at}`]
  if (!isDeepStrictEqual(read.wire, file.wire)) return [`${file.path}: read as something else`]
  const text = JSON.stringify(file.wire)
  const isDecoded =
    file.document === 'request'
      ? decodeRequest(text, 'session').k === 'request'
      : file.document !== 'handshake-request' || decodeHandshake(text).ok
  return isDecoded ? [] : [`${file.path}: not decoded`]
}

const Document = z.looseObject({ $defs: z.record(z.string(), SchemaNode).default({}) })

/**
 * A document as the comparison of components wants it. What stands beside a reference is merged with it; and a number
 * with one value, like the version, is one with bounds: it tells no variant from another.
 */
function asComponents(document: unknown): { root: SchemaNode; components: Components } {
  const { $defs, ...root } = Document.parse(document)
  const convert = (node: SchemaNode): SchemaNode => {
    const { $ref, const: value, properties, items, anyOf, oneOf, ...rest } = node
    const own: SchemaNode = {
      ...rest,
      ...(typeof value === 'number'
        ? { minimum: value, maximum: value }
        : value === undefined
          ? {}
          : { const: value }),
      ...(properties && { properties: mapValues(properties, convert) }),
      ...(items && { items: convert(items) }),
      ...(anyOf && { anyOf: anyOf.map(convert) }),
      ...(oneOf && { oneOf: oneOf.map(convert) }),
    }
    if ($ref === undefined) return own
    const reference = { $ref: $ref.replace('#/$defs/', '#/components/schemas/') }
    return properties === undefined ? reference : { allOf: [reference, own] }
  }
  return { root: convert(SchemaNode.parse(root)), components: mapValues($defs, convert) }
}

const mapValues = <T>(record: Readonly<Record<string, T>>, change: (value: T) => T): Record<string, T> =>
  Object.fromEntries(Object.entries(record).map(([key, value]) => [key, change(value)]))

/** Whether a difference keeps those apart who know only the reference; the rest is growth, or a stricter promise. */
function breaks({ what, theirs, ours }: Difference, direction: Direction): boolean {
  switch (what) {
    case 'property added':
    case 'variant added':
      return false
    case 'became required':
    case 'null missing':
      return direction === 'request'
    case 'became optional':
    case 'null added':
      return direction === 'answer'
    case 'enum': {
      const known = new Set(ours.split(' | '))
      if (direction === 'request')
        return ours !== 'any' && !theirs.split(' | ').every((one) => known.has(one))
      return theirs !== 'any' && !theirs.split(' | ').every((one) => known.has(one))
    }
    case 'bounds':
    case 'format':
    case 'pattern':
      return direction === 'request' ? ours !== 'nothing' : ours === 'nothing'
    default:
      return true
  }
}

/** The differences between two documents that matter, under places that start with `name`. */
export function compareRemote(
  name: string,
  direction: Direction,
  theirs: unknown,
  ours: unknown,
): Difference[] {
  const [their, our] = [asComponents(theirs), asComponents(ours)]
  const differences = new Differences()
  const sides = { theirs: their.components, ours: our.components, differences }
  compareSchemas(sides, name, their.root, our.root)
  for (const [shape, node] of Object.entries(their.components)) {
    const same = our.components[shape]
    if (same !== undefined) compareSchemas(sides, shape, node, same)
  }
  return differences.list().filter((difference) => breaks(difference, direction))
}
