import { describe, expect, test } from 'vitest'
import { ContinueRequest } from '../../../src/protocol/execution/continue.ts'
import { ExecuteRequest } from '../../../src/protocol/execution/execute.ts'
import { CreateSessionRequest } from '../../../src/protocol/execution/session.ts'
import {
  type Bound,
  beyondBounds,
  CONTINUE_BOUNDS,
  EXECUTE_BOUNDS,
  SESSION_BOUNDS,
} from '../../../src/worker/request-bounds.ts'
import { makeFile, makeRequest } from '../../support/core/builders.ts'

const MODEL = 'ollama/m'
const SKILL = { name: 's', content: 'c', path: 'p' }

/** A request in which every part that has a bound is there. */
const EXECUTE = {
  ...makeRequest({
    workspace: { git_branch: 'b', active_file: 'f', git_diff: 'd', referenced_paths: ['p'] },
    rules: [
      {
        name: 'r',
        model: MODEL,
        fallbacks: [MODEL],
        required_permissions: { permissions: { shell: 'ask' } },
      },
    ],
    classification: { rules: [{ intent: 'edit', keywords: ['k'] }] },
    defaultRoute: { model: MODEL, fallbacks: [MODEL] },
    permissions: { shell: 'ask' },
    attachments: {
      files: [makeFile('p', 'c')],
      instructions: [{ source: 's', content: 'c' }],
      invoked_skills: [SKILL],
      available_skills: [SKILL],
      tools: [{ name: 't', parameters: { type: 'object' } }],
    },
  }),
}
const RESULTS = { type: 'tool_results', data: { results: [{ call_id: 'c', content: '' }] } }
const DECISIONS = {
  type: 'approval_decisions',
  data: { decisions: [{ approval_id: 'a', decision: 'approved', reason: 'r' }] },
}
const INJECT = { type: 'inject', data: { messages: [{ text: 't' }] } }
const SESSION = { title: 't', scope: 's', key_id: 'k' }

/** A value of the same kind of exactly this size. */
function sized(value: unknown, { most, of }: Bound, more: number): unknown {
  const size = most + more
  if (of === 'items' && Array.isArray(value)) return Array.from({ length: size }, () => value[0])
  if (of === 'items') return Object.fromEntries(Array.from({ length: size }, (_, n) => [`tool_${n}`, 'ask']))
  // Two bytes each, so that units are not mistaken for bytes.
  const text = (bytes: number) => 'ü'.repeat(bytes / 2) + 'x'.repeat(bytes % 2)
  return typeof value === 'string' ? text(size) : { a: text(size - '{"a":""}'.length) }
}

const parse = (path: string): string[] => path.replaceAll('*', '0').split('.')

/** The body with the part at the place of a bound brought to its edge. */
function bodyAt(body: unknown, bound: Bound, more: number): unknown {
  const copy: unknown = structuredClone(body)
  const keys = parse(bound.at)
  const last = keys.pop() ?? ''
  const parent = Object(keys.reduce<unknown>((at, key) => Reflect.get(Object(at), key), copy))
  if (!Object.hasOwn(parent, last)) throw new Error(`the body has no ${bound.at}`)
  Reflect.set(parent, last, sized(Reflect.get(parent, last), bound, more))
  return copy
}

const cases = [
  ...EXECUTE_BOUNDS.map((bound) => ({
    bound,
    bounds: EXECUTE_BOUNDS,
    body: EXECUTE,
    schema: ExecuteRequest,
  })),
  ...CONTINUE_BOUNDS.map((bound) => ({
    bound,
    bounds: CONTINUE_BOUNDS,
    body: bound.at.startsWith('data.results')
      ? RESULTS
      : bound.at.startsWith('data.decisions')
        ? DECISIONS
        : INJECT,
    schema: ContinueRequest,
  })),
  ...SESSION_BOUNDS.map((bound) => ({
    bound,
    bounds: SESSION_BOUNDS,
    body: SESSION,
    schema: CreateSessionRequest,
  })),
]

describe('[D27] what one request may bring', () => {
  test.each(cases)(
    '$bound.at: $bound.most $bound.of pass, one more is refused with its place',
    ({ bound, bounds, body, schema }) => {
      const find = beyondBounds(bounds)
      const fits = bodyAt(body, bound, 0)
      expect(find(fits)).toEqual([])
      expect(schema.safeParse(fits).success).toBe(true)
      const path = parse(bound.at).join('.')
      const limit = bound.of === 'items' ? { max_items: bound.most } : { max_bytes: bound.most }
      expect(find(bodyAt(body, bound, 1))).toEqual([
        {
          code: 'invalid_request',
          path,
          message: expect.stringContaining(String(bound.most)),
          details: { field: path, ...limit },
        },
      ])
    },
  )

  test('of several entries the first that is too long is named, once per bound', () => {
    const long = 'x'.repeat(5000)
    const body = { workspace: { referenced_paths: ['a', long, long], root: long } }
    expect(beyondBounds(EXECUTE_BOUNDS)(body).map(({ path }) => path)).toEqual([
      'workspace.root',
      'workspace.referenced_paths.1',
    ])
  })

  test('a body of any other shape has nothing to measure, and the schema tells what is wrong', () => {
    for (const body of [
      null,
      1,
      'x',
      [],
      {},
      { workspace: null },
      { attachments: { files: 'x', tools: [null] } },
    ]) {
      expect(beyondBounds(EXECUTE_BOUNDS)(body)).toEqual([])
    }
  })
})
