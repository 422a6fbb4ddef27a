import type { PolicyFinding, PolicyPlace } from '../core/policy-check/finding.ts'
import { policyFindings } from '../core/policy-check.ts'
import type { ExecutePolicy } from '../protocol/execution/policy.ts'
import { type Finding, inOrder, type Layer, layerFinding } from './config-file.ts'
import type { RuleOrigin } from './config-merge.ts'

/** What a well-formed policy may still get wrong (EC 24.2), by the router's own rules; everything is collected. */
export const checkPolicy = (policy: ExecutePolicy, layers: readonly Layer[], origin: RuleOrigin): Finding[] =>
  inFiles(
    policyFindings(policy).filter((finding) => !isAdvice(finding)),
    policy,
    layers,
    origin,
  )

/** What is worth a line to somebody who looks at the configuration, and in the way of nobody who runs something. */
export const policyAdvice = (
  policy: ExecutePolicy,
  layers: readonly Layer[],
  origin: RuleOrigin,
): Finding[] => inFiles(policyFindings(policy).filter(isAdvice), policy, layers, origin)

/**
 * A private path that is read more widely than it is written is no mistake: it keeps what the user wants kept, and so does
 * one that was to take something back. A rule may stand above another for a while. A permission that nothing here is
 * called by may be of a tool that another client has.
 */
const ADVICE: ReadonlySet<PolicyFinding['code']> = new Set([
  'negated_pattern',
  'private_pattern_widened',
  'shadowed_rule',
  'unknown_permission',
])

const isAdvice = ({ code }: PolicyFinding): boolean => ADVICE.has(code)

/** The findings with the file and the line that say so. A private path may stand in both files. */
const inFiles = (
  findings: readonly PolicyFinding[],
  policy: ExecutePolicy,
  layers: readonly Layer[],
  origin: RuleOrigin,
): Finding[] =>
  inOrder(
    findings.flatMap(({ at, message }) =>
      placesOf(at, policy, layers, origin).map(([layer, place]) => layerFinding(layer, place, message)),
    ),
  )

type Place = [layer: Layer, at: PolicyPlace]

function placesOf(
  at: PolicyPlace,
  { privacy }: ExecutePolicy,
  layers: readonly Layer[],
  origin: RuleOrigin,
): Place[] {
  const [table, key, third, fourth] = at
  if (table === 'routing' && key === 'rules' && typeof third === 'number')
    return [ruleAt(third, at, layers, origin)]
  if (table === 'routing') return [[origin.defaultRoute, at]]
  if (table === 'privacy' && key === 'restricted_paths' && typeof third === 'number')
    return listed(
      layers,
      privacy.restricted_paths[third],
      at.slice(0, 2),
      (config) => config.restricted_paths,
    )
  if (table === 'privacy' && key === 'remote' && third === 'blocked_paths' && typeof fourth === 'number')
    return listed(
      layers,
      privacy.remote?.blocked_paths[fourth],
      at.slice(0, 3),
      (config) => config.remote?.blocked_paths,
    )
  return [[lastThatSets(layers, at), at]]
}

/** A rule of the file that brought the rules, or one of the user's own that were kept beside those of a project. */
function ruleAt(index: number, at: PolicyPlace, [global]: readonly Layer[], origin: RuleOrigin): Place {
  const brought = origin.routing.config.routing?.rules?.length ?? 0
  if (index < brought || global === undefined) return [origin.routing, at]
  const kept = (global.config.routing?.rules ?? []).flatMap(({ local_only }, i) => (local_only ? [i] : []))
  return [global, ['routing', 'rules', kept[index - brought] ?? 0, ...at.slice(3)]]
}

type PrivacyTable = NonNullable<Layer['config']['privacy']>

/** Lists of paths are united over the files. */
const listed = (
  layers: readonly Layer[],
  pattern: string | undefined,
  at: PolicyPlace,
  listOf: (config: PrivacyTable) => readonly string[] | undefined,
): Place[] =>
  layers.flatMap((layer): Place[] => {
    const index = listOf(layer.config.privacy ?? {})?.indexOf(pattern ?? '') ?? -1
    return index < 0 ? [] : [[layer, [...at, index]]]
  })

/** Of a value that a project replaces whole, the file whose value holds. Privacy and permissions are merged key by key. */
function lastThatSets(layers: readonly Layer[], at: PolicyPlace): Layer {
  const merged = at.slice(0, at[0] === 'classification' ? 2 : 3)
  const holder = layers.findLast(({ config }) => isSet(config, merged))
  const layer = holder ?? layers.at(-1)
  if (layer === undefined) throw new Error('a configuration has at least one layer')
  return layer
}

function isSet(value: unknown, [key, ...rest]: PolicyPlace): boolean {
  if (key === undefined) return value !== undefined
  return isSet(Reflect.get(Object(value), key), rest)
}
