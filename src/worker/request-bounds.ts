import {
  isLongerThan,
  MAX_DECISIONS,
  MAX_DIFF_BYTES,
  MAX_FALLBACKS,
  MAX_FILE_BYTES,
  MAX_FILES,
  MAX_INJECTED_MESSAGES,
  MAX_INSTRUCTION_BYTES,
  MAX_INSTRUCTIONS,
  MAX_KEY_ID_BYTES,
  MAX_KEYWORDS,
  MAX_NAME_BYTES,
  MAX_PATH_BYTES,
  MAX_PERMISSIONS,
  MAX_REASON_BYTES,
  MAX_REFERENCED_PATHS,
  MAX_RESULTS,
  MAX_RULES,
  MAX_SCOPE_BYTES,
  MAX_SKILL_BYTES,
  MAX_SKILLS,
  MAX_TITLE_BYTES,
  MAX_TOOL_SCHEMA_BYTES,
} from '../storage/limits.ts'
import type { BodyIssue } from './body-issues.ts'

/**
 * What one part of a body may come to (D27). `at` is its place, `*` for each entry of a list. `items`: entries of a list
 * or an object; `bytes`: UTF-8 of a text, or of anything else written as JSON.
 */
export type Bound = { at: string; most: number; of: 'items' | 'bytes' }

const items = (at: string, most: number): Bound => ({ at, most, of: 'items' })
const bytes = (at: string, most: number): Bound => ({ at, most, of: 'bytes' })

/** Of a policy, beside whatever else is in the body. */
export const POLICY_BOUNDS: readonly Bound[] = [
  items('policy.classification.rules', MAX_RULES),
  items('policy.classification.rules.*.keywords', MAX_KEYWORDS),
  items('policy.routing.rules', MAX_RULES),
  bytes('policy.routing.rules.*.name', MAX_NAME_BYTES),
  items('policy.routing.rules.*.fallbacks', MAX_FALLBACKS),
  items('policy.routing.rules.*.required_permissions.permissions', MAX_PERMISSIONS),
  items('policy.routing.default.fallbacks', MAX_FALLBACKS),
  items('policy.tools.permissions', MAX_PERMISSIONS),
]

const skillBounds = (list: string): Bound[] => [
  items(list, MAX_SKILLS),
  bytes(`${list}.*.name`, MAX_NAME_BYTES),
  bytes(`${list}.*.path`, MAX_PATH_BYTES),
  bytes(`${list}.*.content`, MAX_SKILL_BYTES),
]

/** Of `execute` and `preview`. */
export const EXECUTE_BOUNDS: readonly Bound[] = [
  bytes('workspace.root', MAX_PATH_BYTES),
  bytes('workspace.git_branch', MAX_PATH_BYTES),
  bytes('workspace.active_file', MAX_PATH_BYTES),
  bytes('workspace.git_diff', MAX_DIFF_BYTES),
  items('workspace.referenced_paths', MAX_REFERENCED_PATHS),
  bytes('workspace.referenced_paths.*', MAX_PATH_BYTES),
  items('attachments.files', MAX_FILES),
  bytes('attachments.files.*.path', MAX_PATH_BYTES),
  bytes('attachments.files.*.content', MAX_FILE_BYTES),
  bytes('attachments.files.*.content_hash', MAX_NAME_BYTES),
  items('attachments.instructions', MAX_INSTRUCTIONS),
  bytes('attachments.instructions.*.source', MAX_PATH_BYTES),
  bytes('attachments.instructions.*.content', MAX_INSTRUCTION_BYTES),
  ...skillBounds('attachments.invoked_skills'),
  ...skillBounds('attachments.available_skills'),
  bytes('attachments.tools.*.parameters', MAX_TOOL_SCHEMA_BYTES),
  ...POLICY_BOUNDS,
]

/** Of `continue`, whatever its type: a part belongs to one type only. */
export const CONTINUE_BOUNDS: readonly Bound[] = [
  items('data.results', MAX_RESULTS),
  items('data.decisions', MAX_DECISIONS),
  bytes('data.decisions.*.reason', MAX_REASON_BYTES),
  items('data.messages', MAX_INJECTED_MESSAGES),
]

/** Of making and changing a session: these stand in rows that lists read. */
export const SESSION_BOUNDS: readonly Bound[] = [
  bytes('title', MAX_TITLE_BYTES),
  bytes('scope', MAX_SCOPE_BYTES),
  bytes('key_id', MAX_KEY_ID_BYTES),
]

/** What of a body is more than its bounds allow, read from the body as it came; at most one finding per bound. */
export const beyondBounds =
  (bounds: readonly Bound[]) =>
  (body: unknown): BodyIssue[] =>
    bounds.flatMap((bound) => {
      for (const { value, path } of partsAt(body, bound.at.split('.'), [])) {
        if (isBeyond(value, bound)) return [issueOf(bound, path)]
      }
      return []
    })

function isBeyond(value: unknown, { most, of }: Bound): boolean {
  if (value === undefined || value === null) return false
  if (of === 'items') return typeof value === 'object' && Object.keys(value).length > most
  return isLongerThan(typeof value === 'string' ? value : JSON.stringify(value), most)
}

const issueOf = ({ most, of }: Bound, path: string): BodyIssue => ({
  code: 'invalid_request',
  path,
  message: of === 'items' ? `at most ${most} entries are taken` : `at most ${most} bytes are taken`,
  details: { field: path, ...(of === 'items' ? { max_items: most } : { max_bytes: most }) },
})

/** The parts of a body at a place, each with the path to it; none where the body has another shape. */
function* partsAt(
  value: unknown,
  [key, ...rest]: readonly string[],
  path: readonly string[],
): Generator<{ value: unknown; path: string }> {
  if (key === undefined) yield { value, path: path.join('.') }
  else if (key === '*') {
    if (!Array.isArray(value)) return
    for (const [index, entry] of value.entries()) yield* partsAt(entry, rest, [...path, String(index)])
  } else if (typeof value === 'object' && value !== null && Object.hasOwn(value, key)) {
    yield* partsAt(Reflect.get(value, key), rest, [...path, key])
  }
}
