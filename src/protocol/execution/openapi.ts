/** Writes the routes and shapes of the execution contract as one OpenAPI 3.1 document. Data in, data out. */

import { ROUTER_VERSION } from '../version.ts'
import { allSchemas, type JsonSchema } from './json-schemas.ts'
import type { Route } from './route-parts.ts'
import { ROUTES } from './routes.ts'

export type OpenApiDocument = {
  openapi: '3.1.0'
  info: { title: string; version: string; description: string }
  servers: { url: string }[]
  tags: { name: string; description: string }[]
  paths: Record<string, Record<string, Operation>>
  components: {
    schemas: Record<string, JsonSchema>
    securitySchemes: Record<string, Readonly<Record<string, string>>>
  }
}

type Content = Record<string, { schema: JsonSchema }>
type Operation = {
  operationId: string
  summary: string
  description?: string
  tags: string[]
  security: Record<string, string[]>[]
  parameters?: Route['parameters']
  requestBody?: { required: true; content: Content }
  responses: Record<string, { description: string; content: Content }>
}

const TAGS: Record<Route['tag'], string> = {
  health: 'The router itself',
  auth: 'Users, keys and tokens',
  sessions: 'Conversations',
  execution: 'Runs: prompts, pauses and their answers',
  traces: 'What the router decided and why',
  usage: 'Tokens and money',
  llm: 'Providers and models',
  memory: 'What is remembered',
  export: 'Everything, to take along',
  devices: 'Phones and other devices: pairing them, and looking after them',
  settings: 'What holds for an account',
}

const refTo = (name: string) => `#/components/schemas/${name}`

/** `OpenApi` is this document, whose own schema lives elsewhere. */
const schemaOf = (shape: string): JsonSchema =>
  shape === 'OpenApi' ? { type: 'object' } : { $ref: refTo(shape) }

function responsesOf({ success, errors }: Route): Operation['responses'] {
  const content: Content = {}
  if (success.json !== undefined) content['application/json'] = { schema: schemaOf(success.json) }
  if (success.stream !== undefined) content['text/event-stream'] = { schema: schemaOf(success.stream) }
  if (success.lines !== undefined) content['application/x-ndjson'] = { schema: schemaOf(success.lines) }
  const responses: Operation['responses'] = {
    [success.status]: { description: success.description, content },
  }
  for (const [status, codes] of errors) {
    responses[status] = {
      description: `Refused: ${codes.map((code) => `\`${code}\``).join(', ')}.`,
      content: { 'application/json': { schema: schemaOf('ApiError') } },
    }
  }
  return responses
}

function operationOf(route: Route): Operation {
  return {
    operationId: route.operationId,
    summary: route.summary,
    ...(route.description === undefined ? {} : { description: route.description }),
    tags: [route.tag],
    security: route.security === 'none' ? [] : [{ [route.security]: [] }],
    ...(route.parameters.length === 0 ? {} : { parameters: route.parameters }),
    ...(route.request === undefined
      ? {}
      : {
          requestBody: {
            required: true as const,
            content: { 'application/json': { schema: schemaOf(route.request) } },
          },
        }),
    responses: responsesOf(route),
  }
}

/** The whole document. The same code always writes the same document, key by key. */
export function buildOpenApi(): OpenApiDocument {
  const paths: OpenApiDocument['paths'] = {}
  for (const route of ROUTES) {
    paths[route.path] = { ...paths[route.path], [route.method]: operationOf(route) }
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Switchyard execution API',
      version: ROUTER_VERSION,
      description:
        'Unknown fields of a request are ignored, except in `local_preferences`. Clients match errors by `code`, and ' +
        'ignore fields they do not know. An unknown path answers 404 and a wrong method 405, both with `invalid_request`.',
    },
    servers: [{ url: '/' }],
    tags: Object.entries(TAGS).map(([name, description]) => ({ name, description })),
    paths,
    components: {
      schemas: allSchemas(refTo),
      securitySchemes: {
        bearer: { type: 'http', scheme: 'bearer' },
        apiKey: { type: 'apiKey', in: 'header', name: 'X-Smista-Api-Key' },
      },
    },
  }
}
