import { describe, expect, test } from 'vitest'
import { ERROR_STATUS } from '../../../src/protocol/execution/errors.ts'
import { buildOpenApi } from '../../../src/protocol/execution/openapi.ts'
import { ROUTES } from '../../../src/protocol/execution/routes.ts'
import { REQUEST_SHAPES, RESPONSE_SHAPES } from '../../../src/protocol/execution/shapes.ts'

const document = buildOpenApi()
const text = JSON.stringify(document)

const routeOf = (operationId: string) => ROUTES.find((route) => route.operationId === operationId)
const statusesOf = (operationId: string) => [...(routeOf(operationId)?.errors.keys() ?? [])]
const headersOf = (operationId: string) =>
  routeOf(operationId)
    ?.parameters.filter((parameter) => parameter.in === 'header')
    .map((parameter) => parameter.name)

describe('the routes of the execution contract', () => {
  test('are those of EC 2 and our additions', () => {
    expect(ROUTES.map(({ method, path }) => `${method} ${path}`).sort()).toEqual([
      'delete /api/v1/auth/keys/{key_id}',
      'delete /api/v1/auth/me',
      'delete /api/v1/devices/{device_id}',
      'delete /api/v1/memory/{memory_id}',
      'delete /api/v1/sessions/{session_id}',
      'delete /api/v1/sessions/{session_id}/grants/{grant_id}',
      'get /api/v1/auth/keys',
      'get /api/v1/auth/me',
      'get /api/v1/connect-requests',
      'get /api/v1/devices',
      'get /api/v1/export',
      'get /api/v1/llm/models',
      'get /api/v1/llm/providers',
      'get /api/v1/memory',
      'get /api/v1/openapi.json',
      'get /api/v1/sessions',
      'get /api/v1/sessions/{session_id}',
      'get /api/v1/sessions/{session_id}/events',
      'get /api/v1/sessions/{session_id}/export',
      'get /api/v1/sessions/{session_id}/run',
      'get /api/v1/sessions/{session_id}/traces',
      'get /api/v1/sessions/{session_id}/usage',
      'get /api/v1/settings/policy',
      'get /status',
      'post /api/v1/auth/bootstrap',
      'post /api/v1/auth/keys',
      'post /api/v1/auth/sign-in',
      'post /api/v1/auth/sign-out',
      'post /api/v1/connect-requests/listen',
      'post /api/v1/connect-requests/{request_id}/accept',
      'post /api/v1/connect-requests/{request_id}/deny',
      'post /api/v1/pairing',
      'post /api/v1/sessions',
      'post /api/v1/sessions/{session_id}/continue',
      'post /api/v1/sessions/{session_id}/execute',
      'post /api/v1/sessions/{session_id}/preview',
      'post /api/v1/sessions/{session_id}/stream',
      'put /api/v1/devices/{device_id}',
      'put /api/v1/memory/{memory_id}',
      'put /api/v1/sessions/{session_id}',
      'put /api/v1/settings/policy',
    ])
    expect(new Set(ROUTES.map((route) => route.operationId)).size).toBe(ROUTES.length)
  })

  test('declare every parameter of their path, and no other', () => {
    for (const { path, parameters } of ROUTES) {
      const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name)
      expect([path, parameters.filter((p) => p.in === 'path').map((p) => p.name)]).toEqual([path, inPath])
    }
  })

  test('take what clients send and answer with what the router sends', () => {
    for (const { request, success } of ROUTES) {
      if (request !== undefined) expect(Object.keys(REQUEST_SHAPES)).toContain(request)
      for (const answer of [success.json, success.stream, success.lines]) {
        if (answer !== undefined && answer !== 'OpenApi')
          expect(Object.keys(RESPONSE_SHAPES)).toContain(answer)
      }
    }
  })

  test('[EC 3] [D49] name each error code under its own status, and `invalid_request` also under 400, 404, 413, 415', () => {
    for (const route of ROUTES) {
      for (const [status, codes] of route.errors) {
        for (const code of codes) {
          const allowed = code === 'invalid_request' ? [400, 404, 413, 415, 422] : [ERROR_STATUS[code]]
          expect([route.operationId, code, allowed.includes(status)]).toEqual([route.operationId, code, true])
        }
      }
    }
  })

  test('[EC 2] refuse what is in front of every route, and missing tokens where one is needed', () => {
    for (const route of ROUTES) {
      expect([...route.errors.keys()]).toEqual(expect.arrayContaining([400, 429, 500]))
      expect([route.operationId, route.errors.has(401)]).toEqual([
        route.operationId,
        route.security !== 'none',
      ])
      expect([route.operationId, route.errors.has(413)]).toEqual([
        route.operationId,
        route.request !== undefined,
      ])
    }
  })

  test('[EC 2.11] [EC 2.12] serve a turn with the whole table of refusals, streamed or not', () => {
    const all = [400, 401, 403, 404, 409, 413, 415, 422, 429, 500, 502, 503, 504]
    expect(statusesOf('executeTurn')).toEqual(all)
    expect(statusesOf('continueTurn')).toEqual(all)
    expect(statusesOf('streamTurn')).toEqual(all)
  })

  test('[EC 1.1] [D20] [D19] [D43] name the headers that matter to them', () => {
    const keys = ['Anthropic', 'Gemini', 'OpenAI', 'Ollama'].map(
      (name) => `X-Smista-Provider-${name}-Api-Key`,
    )
    expect(headersOf('executeTurn')).toEqual(['Idempotency-Key', ...keys])
    expect(headersOf('continueTurn')).toEqual(['Idempotency-Key', ...keys])
    expect(headersOf('previewTurn')).toEqual(keys)
    expect(headersOf('listModels')).toEqual(['X-Smista-Timeout-Ms', ...keys])
    expect(headersOf('createSession')).toEqual(['Idempotency-Key'])
    expect(headersOf('getRun')).toEqual(['Last-Event-ID'])
    expect(headersOf('bootstrap')).toEqual(['X-Smista-Bootstrap-Token'])
  })
})

describe('the OpenAPI document', () => {
  test('defines every schema that it refers to', () => {
    const names = [...text.matchAll(/"\$ref":"#\/components\/schemas\/(\w+)"/g)].map(([, name]) => name)
    expect(names.length).toBe(text.split('"$ref"').length - 1)
    expect(names.filter((name) => name === undefined || !(name in document.components.schemas))).toEqual([])
  })

  test('[EC 18] offers turns as one JSON body and as events, and the stream route as events only', () => {
    const types = (path: string, method: string) =>
      Object.keys(document.paths[path]?.[method]?.responses['200']?.content ?? {})
    const session = '/api/v1/sessions/{session_id}'
    expect(types(`${session}/execute`, 'post')).toEqual(['application/json', 'text/event-stream'])
    expect(types(`${session}/continue`, 'post')).toEqual(['application/json', 'text/event-stream'])
    expect(types(`${session}/run`, 'get')).toEqual(['application/json', 'text/event-stream'])
    expect(types(`${session}/stream`, 'post')).toEqual(['text/event-stream'])
  })

  test('[EC 1] describes requests as sent: what has a default is optional, and may be null unless it is a list', () => {
    const rule = document.components.schemas.RoutingRule
    expect(rule).toMatchObject({
      required: ['name', 'model'],
      properties: {
        priority: { default: 1000, anyOf: [{ type: 'integer' }, { type: 'null' }] },
        local_only: { default: false, type: ['boolean', 'null'] },
        fallbacks: { default: [], type: 'array' },
      },
    })
  })

  test('[EC 1] describes answers as sent: open to later fields, and always with the fields that may be null', () => {
    const summary = document.components.schemas.SessionSummary
    expect(summary).not.toHaveProperty('additionalProperties')
    expect(summary).toMatchObject({
      required: ['id', 'title', 'encrypted', 'created_at', 'updated_at', 'archived'],
      properties: { title: { type: ['string', 'null'] } },
    })
  })
})
