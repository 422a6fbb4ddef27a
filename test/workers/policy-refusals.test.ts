import { beforeAll, describe, expect, it } from 'vitest'
import { PreviewResponse } from '../../src/protocol/execution/preview.ts'
import { type BodyChanges, makeExecute } from '../support/workers/bodies.ts'
import { eachCase } from '../support/workers/each-case.ts'
import { type Client, makeClient, parsed, refused, turnOf } from '../support/workers/router.ts'
import { scriptModels } from '../support/workers/scripted-models.ts'

const models = scriptModels()

let client: Client
let id: string
beforeAll(async () => {
  client = await makeClient()
  id = await client.newSession()
})

const POST_ROUTES = ['execute', 'stream', 'preview'] as const
const RUN_ROUTES = ['execute', 'stream'] as const

const post = (route: string, changes: BodyChanges) =>
  client.send('POST', `/api/v1/sessions/${id}/${route}`, makeExecute('do it', changes))

const RULE = { name: 'r', model: 'ollama/small' }

/** A policy as JSON says it, be it one that the types refuse. */
const policyOf = (rules: object[], rest: object = {}): BodyChanges => ({
  policy: {
    routing: { default: { model: 'ollama/small' }, rules: rules as (typeof RULE)[] },
    tools: { permissions: { shell: 'ask', read_file: 'allow' } },
    ...rest,
  },
})

/** Its second rule loosens and never wins. */
const LOOSENED = policyOf([
  RULE,
  {
    ...RULE,
    name: 'never wins',
    priority: 5000,
    required_permissions: { permissions: { shell: 'allow', read_file: 'deny' } },
  },
])

describe('a policy that cannot be carried out', () => {
  eachCase(
    POST_ROUTES,
    (route) =>
      `[EC 3][EC 24.2] ${route}: everything that is wrong is told, with its place and what was meant`,
    async (route) => {
      const wrong = policyOf(
        [
          { ...RULE, model: 'antropic/x', effort: 'hihg', requires_capabilities: { image: true } },
          { ...RULE, name: 's', intent: 'Edit', fallbacks: ['gpt'] },
        ],
        { privacy: { remote: { mode: 'denny' } } },
      )
      const answer = await refused(await post(route, wrong))
      expect(answer).toMatchObject({ status: 422, code: 'unknown_effort' })
      const { issues } = answer.details as { issues: { path: string; suggestion?: string }[] }
      expect(issues.map(({ path, suggestion }) => [path.replace('policy.', ''), suggestion])).toEqual([
        ['routing.rules.0.effort', 'high'],
        ['routing.rules.0.model', 'anthropic/x'],
        ['routing.rules.1.intent', 'edit'],
        ['routing.rules.1.fallbacks.0', undefined],
        ['privacy.remote.mode', 'deny'],
        ['routing.rules.0.requires_capabilities.image', 'images'],
      ])
      expect(models.chats).toHaveLength(0)
    },
  )

  eachCase(
    POST_ROUTES,
    (route) =>
      `[EC 8.4] ${route}: a capability that nobody knows, and that a rule requires, is missing everywhere`,
    async (route) => {
      const requires = policyOf([{ ...RULE, requires_capabilities: { tools: true, telepathy: true } }])
      expect(await refused(await post(route, requires))).toMatchObject({
        status: 422,
        code: 'missing_capability',
        details: {
          capability: 'telepathy',
          issues: [{ path: 'policy.routing.rules.0.requires_capabilities.telepathy' }],
        },
      })
      expect(models.chats).toHaveLength(0)
    },
  )

  it('[EC 1] one that is not required is ignored as any unknown field', async () => {
    models.script({ text: ['fine'] })
    const changes = policyOf([{ ...RULE, requires_capabilities: { telepathy: false, levitation: null } }])
    expect((await turnOf(await post('execute', changes))).status).toBe('completed')
  })
})

describe('[D17] patterns that weigh too much together', () => {
  const many = (count: number, pattern: string) =>
    Array.from({ length: count }, (_, n) => pattern.replace('N', String(n)))

  it.each([
    ['in the privacy lists', { privacy: { restricted_paths: many(30_000, 'pN/secret/area/**') } }],
    [
      'by the alternatives of their braces',
      { privacy: { restricted_paths: many(400, `N${'{a,b,c,d}'.repeat(3)}`) } },
    ],
    [
      'in the rules',
      {
        routing: {
          rules: many(40_000, 'rule N').map((name) => ({
            name,
            model: 'ollama/small',
            paths: [`${name}/src/**`],
          })),
          default: { model: 'ollama/small' },
        },
      },
    ],
  ])('%s are refused by execute and preview, and nothing is stored', async (_, policy) => {
    for (const verb of ['execute', 'preview'] as const) {
      const answer = await refused(await post(verb, { policy }))
      expect(answer).toMatchObject({ status: 422, code: 'invalid_request', details: { max_weight: 500_000 } })
    }
  })

  it('ten thousand usual ones are taken', async () => {
    const policy = { privacy: { restricted_paths: many(10_000, 'area-N/secret/**') } }
    await parsed(await post('preview', { policy }), PreviewResponse)
  })
})

describe('a policy that is only odd', () => {
  const ODD: BodyChanges = {
    policy: {
      ...policyOf([
        { ...RULE, paths: ['/src/**'] },
        { ...RULE, name: 'r', intent: 'edit' },
      ]).policy,
      privacy: { restricted_paths: ['~/x'] },
    },
  }

  it('[EC 24.2] stops no run', async () => {
    models.script({ text: ['fine'] })
    expect((await turnOf(await post('execute', ODD))).status).toBe('completed')
  })

  it('[EC 24.2] is told by a preview, with places and what to write instead', async () => {
    const { warnings } = await parsed(await post('preview', ODD), PreviewResponse)
    expect(warnings?.map(({ code, path, suggestion }) => [code, path, suggestion])).toEqual([
      ['duplicate_rule_name', 'policy.routing.rules.1.name', undefined],
      ['pattern_never_matches', 'policy.routing.rules.0.paths.0', 'src/**'],
      ['private_pattern_widened', 'policy.privacy.restricted_paths.0', '**/x'],
    ])
  })

  it('[EC 24.2] a policy with nothing amiss has no warnings', async () => {
    const preview = await parsed(await post('preview', policyOf([RULE])), PreviewResponse)
    expect(preview).not.toHaveProperty('warnings')
  })
})

describe('[EC 8.4][EC 12.3] a rule that loosens a permission', () => {
  eachCase(
    RUN_ROUTES,
    (route) => `is refused by ${route} whether or not it wins, with its place, before anything leaves`,
    async (route) => {
      expect(await refused(await post(route, LOOSENED))).toMatchObject({
        status: 422,
        code: 'permission_expansion',
        details: {
          tool: 'shell',
          base: 'ask',
          requested: 'allow',
          issues: [
            {
              path: 'policy.routing.rules.1.required_permissions.permissions.shell',
              message: expect.stringContaining('`never wins`'),
              suggestion: 'ask',
            },
          ],
        },
      })
      expect(models.chats).toHaveLength(0)
    },
  )

  it('[EC 1.3] a body that does not decode comes first, and both are told', async () => {
    const changes = { ...LOOSENED, input: { command: 'paln' as 'plan' } }
    const answer = await refused(await post('execute', changes))
    expect(answer.code).toBe('unknown_intent')
    expect(answer.details).toMatchObject({
      issues: [
        { path: 'input.command', suggestion: 'plan' },
        { path: 'policy.routing.rules.1.required_permissions.permissions.shell' },
      ],
    })
    expect(answer.details).not.toHaveProperty('tool')
  })

  it('[EC 2.13] does not stop a preview', async () => {
    const preview = await parsed(await post('preview', LOOSENED), PreviewResponse)
    expect(preview.required_permissions).toContainEqual({ permission: 'shell', mode: 'ask' })
    expect(preview.warnings).toContainEqual({
      code: 'permission_expansion',
      path: 'policy.routing.rules.1.required_permissions.permissions.shell',
      message: expect.stringContaining('`never wins`'),
      suggestion: 'ask',
    })
  })
})
