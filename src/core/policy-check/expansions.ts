import type { RoutingRule, ToolsConfig } from '../../protocol/execution/policy.ts'
import { type Loosening, loosenings } from '../permissions.ts'
import { brief, type PolicyPlace } from './finding.ts'

/** What of a policy says who loosens what. */
export type PermissionsOfPolicy = {
  tools: ToolsConfig
  routing: { rules: readonly Pick<RoutingRule, 'name' | 'required_permissions'>[] }
}

/** A permission that a rule sets looser than the policy does, and where it says so. */
export type PermissionExpansion = Loosening & { at: PolicyPlace; message: string; suggestion: string }

/** Every permission that some rule tries to loosen, whether or not the rule ever wins (EC 8.4, 12.3). */
export const permissionExpansions = ({ tools, routing }: PermissionsOfPolicy): PermissionExpansion[] =>
  routing.rules.flatMap(({ name, required_permissions }, index) =>
    loosenings(tools.permissions, required_permissions).map((loosening) => ({
      ...loosening,
      at: ['routing', 'rules', index, 'required_permissions', 'permissions', loosening.tool],
      message: `a rule may only tighten permissions, and rule \`${brief(name)}\` loosens \`${brief(loosening.tool)}\` from ${loosening.base} to ${loosening.requested}`,
      suggestion: loosening.base,
    })),
  )
