import { z } from 'zod'
import { type Components, SchemaNode } from '../../../../scripts/lib/json-schema-node.ts'
import { allSchemas } from '../../../../src/protocol/execution/json-schemas.ts'

/** The schemas that the generator publishes, by shape. */
export const published: Components = z
  .record(z.string(), SchemaNode)
  .parse(allSchemas((name) => `#/components/schemas/${name}`))
