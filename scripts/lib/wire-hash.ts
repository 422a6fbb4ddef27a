/** Fingerprints of the two wires: they change when a shape does, and not when only a description does. */

import { createHash } from 'node:crypto'
import {
  type JsonSchema,
  requestSchemas,
  responseSchemas,
} from '../../src/protocol/execution/json-schemas.ts'
import { remoteRequestSchemas, remoteResponseSchemas } from '../../src/protocol/remote/json-schemas.ts'

/** JSON with sorted keys and without descriptions, so that neither order nor prose counts. */
function canonical(value: unknown, isMap = false): unknown {
  if (Array.isArray(value)) return value.map((item) => canonical(item))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value)
      .filter(([key, member]) => isMap || key !== 'description' || typeof member !== 'string')
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([key, member]) => [key, canonical(member, key === 'properties' && !isMap)]),
  )
}

const sha256 = (schemas: Record<string, JsonSchema>): string =>
  createHash('sha256')
    .update(JSON.stringify(canonical(schemas, true)))
    .digest('hex')

export type WireHashes = { requests: string; responses: string }

export const executionWireHashes = (): WireHashes => ({
  requests: sha256(requestSchemas((name) => name)),
  responses: sha256(responseSchemas((name) => name)),
})

export const remoteWireHashes = (): WireHashes => ({
  requests: sha256(remoteRequestSchemas()),
  responses: sha256(remoteResponseSchemas()),
})
