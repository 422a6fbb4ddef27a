import { permissionExpansions } from '../core/policy-check/expansions.ts'
import { MAX_PATTERN_WEIGHT, patternWeight } from '../core/policy-check/pattern-weight.ts'
import { placeInBody } from '../core/policy-check.ts'
import { nearest } from '../core/suggest.ts'
import { ModelCapabilities } from '../protocol/execution/models.ts'
import { ToolsConfig } from '../protocol/execution/policy.ts'
import { type BodyIssue, suggesting } from './body-issues.ts'

/**
 * What of a policy cannot be carried out though it has the right shape, read from the body as it came: the schema drops
 * what it does not know, and a body that does not fit is to be told everything at once.
 */

const CAPABILITIES = Object.keys(ModelCapabilities.shape)

/**
 * Capabilities that a rule requires and that no model can have, because nobody knows them (EC 8.4). One that is set to
 * anything but `true` asks for nothing and is ignored as every unknown field is (EC 1).
 */
export const unknownCapabilities = (body: unknown): BodyIssue[] =>
  rulesOf(body).flatMap((rule, index) =>
    Object.entries(Object(field(rule, 'requires_capabilities')))
      .filter(([name, required]) => required === true && !CAPABILITIES.includes(name))
      .map(([name]): BodyIssue => {
        const path = placeInBody(['routing', 'rules', index, 'requires_capabilities', name])
        const message = `there is no such capability, so no model has it; the capabilities are ${CAPABILITIES.join(', ')}`
        return suggesting(
          { code: 'missing_capability', path, message, details: { capability: name } },
          nearest(name, CAPABILITIES),
        )
      }),
  )

/** Permissions that some rule tries to loosen, whether or not it would win (EC 8.4, 12.3). */
export const loosenedPermissions = (body: unknown): BodyIssue[] =>
  permissionExpansions({
    tools: toolsOf(field(field(body, 'policy'), 'tools')),
    routing: {
      rules: rulesOf(body).map((rule) => ({
        name: String(field(rule, 'name')),
        required_permissions: toolsOf(field(rule, 'required_permissions')),
      })),
    },
  }).map(({ at, message, suggestion, tool, base, requested }) => ({
    code: 'permission_expansion',
    path: placeInBody(at),
    message,
    suggestion,
    details: { tool, base, requested },
  }))

/** Patterns that weigh too much together to be read for each decision. */
export function tooManyPatterns(body: unknown): BodyIssue[] {
  const privacy = field(field(body, 'policy'), 'privacy')
  const lists = [
    field(privacy, 'restricted_paths'),
    field(field(privacy, 'remote'), 'blocked_paths'),
    ...rulesOf(body).map((rule) => field(rule, 'paths')),
  ]
  let weight = 0
  for (const list of lists) {
    for (const pattern of Array.isArray(list) ? list : []) {
      if (typeof pattern === 'string') weight += patternWeight(pattern)
    }
  }
  if (weight <= MAX_PATTERN_WEIGHT) return []
  const message = `the patterns of the policy are too many: ${weight} characters with the alternatives of their braces, and at most ${MAX_PATTERN_WEIGHT} are taken; put several into one wildcard`
  return [{ code: 'invalid_request', path: 'policy', message, details: { max_weight: MAX_PATTERN_WEIGHT } }]
}

const toolsOf = (value: unknown): ToolsConfig => ToolsConfig.safeParse(value).data ?? { permissions: {} }

function rulesOf(body: unknown): readonly unknown[] {
  const rules = field(field(field(body, 'policy'), 'routing'), 'rules')
  return Array.isArray(rules) ? rules : []
}

const field = (value: unknown, key: string): unknown =>
  typeof value === 'object' && value !== null && Object.hasOwn(value, key)
    ? Reflect.get(value, key)
    : undefined
