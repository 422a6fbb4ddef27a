import { isDeepStrictEqual } from 'node:util'
import type { Components, SchemaNode } from '../../../../scripts/lib/json-schema-node.ts'
import { isObject, type Json, memberSchema, resolveFor } from './schema-walk.ts'

/**
 * Where what was parsed differs from what was sent in a way that the contract does not provide for. It provides for
 * unknown fields that are dropped, defaults and nulls that are filled in or dropped as published, and the lower-casing
 * of the provider in a model reference.
 */
export function unexplained(components: Components, start: SchemaNode, wire: Json, parsed: Json): string[] {
  const problems: string[] = []
  const visit = (schema: SchemaNode, at: string, sent: Json, read: Json | undefined) => {
    if (isDeepStrictEqual(sent, read)) return
    if (sent === null && isDeepStrictEqual(read, schema.default)) return
    const { node, shape } = resolveFor(components, schema, sent)
    if (shape === 'ModelReference' && typeof sent === 'string') {
      const [provider = '', ...model] = sent.split('/')
      if (read !== [provider.toLowerCase(), ...model].join('/')) problems.push(`${at}: rewritten`)
    } else if (Array.isArray(sent) && Array.isArray(read) && sent.length === read.length && node.items) {
      const { items } = node
      sent.forEach((item, index) => void visit(items, `${at}/${index}`, item, read[index]))
    } else if (isObject(sent) && isObject(read)) {
      for (const [key, member] of Object.entries(sent)) {
        const next = memberSchema(node, key)
        if (next !== undefined) visit(next, `${at}/${key}`, member, read[key])
        else if (key in read && node.properties !== undefined)
          problems.push(`${at}/${key}: kept, and not known`)
      }
      for (const [key, member] of Object.entries(read)) {
        if (key in sent) continue
        const filledIn = memberSchema(node, key)?.default
        if (!isDeepStrictEqual(member, filledIn)) problems.push(`${at}/${key}: appeared`)
      }
    } else {
      problems.push(`${at}: changed`)
    }
  }
  visit(start, '', wire, parsed)
  return problems
}
