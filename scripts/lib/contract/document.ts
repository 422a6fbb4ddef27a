/** The part of an OpenAPI 3.1 document that a comparison looks at, parsed: one of the two is not ours. */

import { z } from 'zod'
import { SchemaNode } from '../json-schema-node.ts'

const Content = z.record(z.string(), z.looseObject({ schema: SchemaNode.optional() }))

export const Parameter = z.looseObject({
  name: z.string(),
  in: z.string(),
  required: z.boolean().default(false),
  schema: SchemaNode.default({}),
})
export type Parameter = z.infer<typeof Parameter>

const Security = z.array(z.record(z.string(), z.array(z.string())))

export const Operation = z.looseObject({
  operationId: z.string().optional(),
  tags: z.array(z.string()).default([]),
  security: Security.optional(),
  parameters: z.array(Parameter).default([]),
  requestBody: z.looseObject({ required: z.boolean().default(false), content: Content }).optional(),
  responses: z.record(z.string(), z.looseObject({ content: Content.default({}) })),
})
export type Operation = z.infer<typeof Operation>

export const ContractDocument = z.looseObject({
  openapi: z.string().startsWith('3.1'),
  security: Security.optional(),
  paths: z.record(z.string(), z.record(z.string(), Operation)),
  components: z.looseObject({
    schemas: z.record(z.string(), SchemaNode),
    securitySchemes: z.record(z.string(), z.looseObject({})).default({}),
  }),
})
export type ContractDocument = z.infer<typeof ContractDocument>
