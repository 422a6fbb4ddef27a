import { STRICTNESS } from '../core/permissions.ts'
import type { PermissionMode } from '../protocol/execution/policy.ts'
import type { ConfigFile, Finding, Layer } from './config-file.ts'
import { inOrder, layerFinding } from './config-file.ts'

/** The stricter of two modes. */
export const stricter = (a: PermissionMode, b: PermissionMode): PermissionMode =>
  STRICTNESS[a] >= STRICTNESS[b] ? a : b

const isLooser = (mode: PermissionMode, floor: PermissionMode): boolean =>
  STRICTNESS[mode] < STRICTNESS[floor]

/**
 * Lays the project over the global file (EC 24.1): a set value replaces the lower one, path lists are united, and
 * permissions and privacy may only be tightened. What would loosen a value that the global file sets is a finding.
 */
export function mergeLayers(
  global: Layer,
  project: Layer,
): { config: ConfigFile; findings: Finding[]; origin: RuleOrigin } {
  const low = global.config
  const high = project.config
  const config: ConfigFile = {
    classification: { ...low.classification, ...high.classification },
    routing: { ...low.routing, ...high.routing, ...keptRules(low, high) },
    privacy: {
      restricted_paths: union(low.privacy?.restricted_paths, high.privacy?.restricted_paths),
      remote: {
        ...low.privacy?.remote,
        ...high.privacy?.remote,
        blocked_paths: union(low.privacy?.remote?.blocked_paths, high.privacy?.remote?.blocked_paths),
      },
      local: { ...low.privacy?.local, ...high.privacy?.local },
    },
    tools: { permissions: { ...low.tools?.permissions, ...high.tools?.permissions } },
    local_preferences: { ...low.local_preferences, ...high.local_preferences },
  }
  const origin: RuleOrigin = {
    routing: high.routing?.rules ? project : global,
    defaultRoute: high.routing?.default ? project : global,
  }
  return { config, findings: loosenings(global, project), origin }
}

/** A project brings its own rules; the user's own rules that keep paths at home stay beside them (EC 24.1). */
function keptRules(low: ConfigFile, high: ConfigFile): Pick<NonNullable<ConfigFile['routing']>, 'rules'> {
  const own = high.routing?.rules
  if (!own) return {}
  return { rules: [...own, ...(low.routing?.rules ?? []).filter((rule) => rule.local_only)] }
}

/** The layer that a part of the merged configuration was taken from, for messages. */
export type RuleOrigin = { routing: Layer; defaultRoute: Layer }

function loosenings(global: Layer, project: Layer): Finding[] {
  const findings: Finding[] = []
  const low = global.config
  const high = project.config
  const check = (at: string[], floor: PermissionMode | undefined, mode: PermissionMode | undefined) => {
    if (floor === undefined || mode === undefined || !isLooser(mode, floor)) return
    findings.push(layerFinding(project, at, `a project may not loosen ${floor} (${global.file}) to ${mode}`))
  }
  for (const [tool, mode] of Object.entries(high.tools?.permissions ?? {}))
    check(['tools', 'permissions', tool], own(low.tools?.permissions, tool), mode)
  check(['privacy', 'remote', 'mode'], low.privacy?.remote?.mode, high.privacy?.remote?.mode)
  check(['privacy', 'local', 'mode'], low.privacy?.local?.mode, high.privacy?.local?.mode)
  for (const [key, safe] of SAFE_PREFERENCE) {
    const floor = low.local_preferences?.[key]
    if (floor === safe && high.local_preferences?.[key] === !safe) {
      const message = `a project may not turn ${safe} (${global.file}) into ${!safe}`
      findings.push(layerFinding(project, ['local_preferences', key], message))
    }
  }
  return inOrder(findings)
}

/** The value of each preference that a project may not take back. */
const SAFE_PREFERENCE: readonly (readonly [keyof NonNullable<ConfigFile['local_preferences']>, boolean])[] = [
  ['local_only', true],
  ['no_network', true],
  ['auto_apply', false],
  ['encrypt_sessions', true],
]

const own = <T>(map: Readonly<Record<string, T>> | undefined, key: string): T | undefined =>
  map && Object.hasOwn(map, key) ? map[key] : undefined

const union = (low: readonly string[] = [], high: readonly string[] = []): string[] => [
  ...new Set([...low, ...high]),
]
