import { type Failure, failure } from '../protocol/execution/errors.ts'
import type { PermissionMode, ToolsConfig } from '../protocol/execution/policy.ts'
import { err, ok, type Result } from '../protocol/result.ts'

export type PermissionMap = Readonly<Record<string, PermissionMode>>

/** The order of the modes: allow < ask < deny (EC 4). */
export const STRICTNESS: Readonly<Record<PermissionMode, number>> = { allow: 0, ask: 1, deny: 2 }

/** The stricter of two modes; an absent one does not count. */
export function stricter(
  a: PermissionMode | undefined,
  b: PermissionMode | undefined,
): PermissionMode | undefined {
  if (a === undefined) return b
  if (b === undefined) return a
  return STRICTNESS[a] >= STRICTNESS[b] ? a : b
}

/** The documented group keys that govern a tool beside its own name (EC 12.2). */
const GROUP_KEY: Readonly<Record<string, string>> = {
  read_file: 'file_read',
  write_file: 'file_write',
  edit_file: 'file_write',
}

/** A permission that a rule sets looser than the request does. */
export type Loosening = { tool: string; base: PermissionMode; requested: PermissionMode }

/** What `required` would loosen. A rule may only tighten what is set; keys that were unset are accepted (EC 8.4). */
export function loosenings(base: PermissionMap, required: ToolsConfig | undefined): Loosening[] {
  return Object.entries(required?.permissions ?? {}).flatMap(([tool, requested]) => {
    const current = own(base, tool)
    if (current === undefined || STRICTNESS[requested] >= STRICTNESS[current]) return []
    return [{ tool, base: current, requested }]
  })
}

/** Narrows the request's permissions by those that the winning rule requires; a rule that loosens is refused (EC 8.4). */
export function narrowPermissions(
  base: PermissionMap,
  required: ToolsConfig | undefined,
): Result<PermissionMap, Failure> {
  if (!required) return ok(base)
  const [first] = loosenings(base, required)
  if (first !== undefined) {
    const { tool, base: current, requested } = first
    const message = `a routing rule may not loosen \`${tool}\` from ${current} to ${requested}`
    return err(failure('permission_expansion', message, { ...first }))
  }
  return ok({ ...base, ...required.permissions })
}

/** The mode of a tool: the strictest of its own key, its group key and its declaration; `fallback` when all are unset. */
export function toolMode(
  permissions: PermissionMap,
  name: string,
  declared: PermissionMode | undefined,
  fallback: PermissionMode,
): PermissionMode {
  const group = GROUP_KEY[name]
  const set = stricter(own(permissions, name), group === undefined ? undefined : own(permissions, group))
  return stricter(set, declared) ?? fallback
}

/** The mode of one call: as for the tool, and for a shell command that runs `git` also the `git` key. */
export function callMode(
  permissions: PermissionMap,
  name: string,
  args: Record<string, unknown>,
  mode: PermissionMode,
): PermissionMode {
  if (name !== 'shell' || typeof args.command !== 'string') return mode
  if (!runsGit(args.command)) return mode
  return stricter(mode, own(permissions, 'git')) ?? mode
}

/** Git begins the line, or what follows an operator of the shell; under a path and behind variables as well. */
const runsGit = (command: string): boolean =>
  command.split(/[;&|\n(){}`]/).some((part) => {
    const word = part
      .trim()
      .split(/\s+/)
      .find((one) => !/^\w+=/.test(one))
    return word !== undefined && /(^|\/)git$/.test(word)
  })

/** A tool may be called `constructor`: only own keys count. */
const own = (permissions: PermissionMap, key: string): PermissionMode | undefined =>
  Object.hasOwn(permissions, key) ? permissions[key] : undefined
