/** Turns the wire types of the remote protocol into JSON Schema 2020-12, one document each. It writes no file. */

import { z } from 'zod'
import { asPublished, type JsonSchema } from '../execution/json-schemas.ts'
import { FlowAck } from './flow-ack.ts'
import { RemoteFrame } from './frame.ts'
import { HandshakeRequest } from './handshake-request.ts'
import { HandshakeResponse } from './handshake-response.ts'
import { PairingQr } from './pairing-qr.ts'
import { RemoteRequest } from './request.ts'
import { TokenAck } from './token-ack.ts'

/** What devices send, by the name of the document. */
export const REMOTE_REQUESTS = {
  'handshake-request': HandshakeRequest,
  'token-ack': TokenAck,
  'flow-ack': FlowAck,
  request: RemoteRequest,
} as const

/** What devices receive, over the socket or as a picture. */
export const REMOTE_RESPONSES = {
  'handshake-response': HandshakeResponse,
  'pairing-qr': PairingQr,
  frame: RemoteFrame,
} as const

export const REMOTE_DOCUMENTS = { ...REMOTE_REQUESTS, ...REMOTE_RESPONSES } as const
export type RemoteDocument = keyof typeof REMOTE_DOCUMENTS

type Override = typeof asPublished

const remoteAsPublished: Override = (context) => {
  asPublished(context)
  const { zodSchema, jsonSchema } = context
  const { def } = zodSchema._zod
  // What stands in for a label of no use is nobody's default.
  if (def.type === 'catch') delete jsonSchema.default
  // zod calls the type of a literal number by its JavaScript name.
  if (def.type === 'literal' && jsonSchema.type === 'number' && Number.isInteger(jsonSchema.const)) {
    jsonSchema.type = 'integer'
  }
}

/** A document begins with its shape, not with a reference to it. */
function published(shape: z.ZodType, io: 'input' | 'output'): JsonSchema {
  const { $schema, $ref, $defs, ...rest } = z.toJSONSchema(shape, { io, override: remoteAsPublished })
  const name = $ref?.slice('#/$defs/'.length)
  if (name === undefined) return { $schema, ...rest, ...($defs && { $defs }) }
  const { [name]: root, ...others } = $defs ?? {}
  const sorted = Object.entries(others).sort(([a], [b]) => (a < b ? -1 : 1))
  return { $schema, title: name, ...root, ...(sorted.length > 0 && { $defs: Object.fromEntries(sorted) }) }
}

const publishAll = (shapes: Record<string, z.ZodType>, io: 'input' | 'output'): Record<string, JsonSchema> =>
  Object.fromEntries(Object.entries(shapes).map(([name, shape]) => [name, published(shape, io)]))

/** The documents of what devices send. */
export const remoteRequestSchemas = (): Record<string, JsonSchema> => publishAll(REMOTE_REQUESTS, 'input')

/** The documents of what devices receive. */
export const remoteResponseSchemas = (): Record<string, JsonSchema> => publishAll(REMOTE_RESPONSES, 'output')
