import type { PrivacyPolicy, RoutingRule } from '../../protocol/execution/policy.ts'
import { foldCase, type Glob } from '../../protocol/glob.ts'
import { agreement } from '../../protocol/glob-overlap.ts'
import { hashOf } from '../hash.ts'
import { isAbsolute, normalisePath } from '../paths.ts'
import type { TranscriptCall } from '../transcript.ts'
import { constraintOfCall, type PathTest, spellsPartOf } from './call-constraint.ts'
import { globOf, type PrivacyPattern, readPattern } from './patterns.ts'
import { canonicalRoot, makeNamer } from './spellings.ts'

/** Which pattern of which list makes a path one that only local models may see. */
export type Constraint = {
  /** As reports show it: normalised. Of what is not read, which part of the call it is. */
  path: string
  pattern: string
  /** `restricted_paths`, `remote.blocked_paths`, or: rule `NAME`. */
  list: string
  /** How the pattern covers the path; `path` is the contract's own reading (EC 8.2). */
  how: 'path' | 'base name' | 'folder' | 'letter case' | 'spelling' | 'invalid pattern' | 'too long'
}

/** Tells what must never reach a remote model (EC 9), and why. */
export type PrivacyGuard = {
  /** Why only local models may see a path, given as the client sent it; null when others may. */
  constraintOf(path: string): Constraint | null
  /** Also for a folder whose contents are constrained. */
  constraintOfFolder(path: string): Constraint | null
  /** For a call: of what its arguments name, or else of what its result attributes text to. */
  constraintOfCall(call: TranscriptCall): Constraint | null
  /** Some path is constrained: content of unknown origin may be its. */
  readonly constrainsSome: boolean
  /** Equal for guards that constrain the same, and for the same reasons. */
  readonly key: string
}

/** One line for people: what matches what, and how where it is not the plain reading. */
export function sayConstraint({ path, pattern, list, how }: Constraint): string {
  if (how === 'invalid pattern') return `\`${pattern}\` of ${list} is no valid pattern, so every path counts`
  if (how === 'too long')
    return `${path} is too long to be read to its end, so it counts as matching \`${pattern}\` of ${list}`
  const by = how === 'path' ? '' : how === 'spelling' ? ' (in another spelling)' : ` (by its ${how})`
  return `\`${path}\` matches \`${pattern}\` of ${list}${by}`
}

type Listed = { pattern: string; list: string; reading: PrivacyPattern }

/** Stands for whatever lies in a folder. */
const ANY_NAME = 'any'
/** So much of a pattern has a word with wildcards to spell in order to name it: `.env*` does, `.*` and `test*` do not. */
const NAMING_AGREEMENT = 2
/** Enough for a word that says at least how long the name is: `.???`. */
const SIZED_NAMING_AGREEMENT = 1

/** Paths of which a guard remembers what it found; longer ones are seldom asked for twice. */
const MAX_KNOWN_PATHS = 4096
const MAX_KNOWN_PATH_CHARS = 512

/**
 * Where nothing says where the root is, a path may begin below it at any of its folders. No honest path has so many, and
 * each is one more name to hold against every pattern.
 */
const MAX_FOLDERS_WITHOUT_ROOT = 64

/** The guard of a policy, which mostly stays the same object from turn to turn. */
const known = new WeakMap<
  PrivacyPolicy,
  { rules: readonly RoutingRule[]; root: string; guard: PrivacyGuard }
>()

/**
 * Constrained = covered by `restricted_paths`, `remote.blocked_paths` or the paths of a `local_only` rule. A pattern
 * that cannot be read constrains every path: it fails closed (EC 8.2). The same policy gives the same guard.
 */
export function makePrivacyGuard(
  privacy: PrivacyPolicy,
  rules: readonly RoutingRule[],
  root: string,
): PrivacyGuard {
  const before = known.get(privacy)
  if (before !== undefined && before.rules === rules && before.root === root) return before.guard
  const guard = newGuard(privacy, rules, root)
  known.set(privacy, { rules, root, guard })
  return guard
}

function newGuard(privacy: PrivacyPolicy, rules: readonly RoutingRule[], root: string): PrivacyGuard {
  const { patterns, broken } = readLists(privacy, rules, root)
  const namer = makeNamer(root)
  const found = new Map<string, Constraint | null>()
  const [anyPattern = null] = listedPatterns(privacy, rules)
  const constrainsSome = anyPattern !== null
  const isRootKnown = isAbsolute(canonicalRoot(root))

  const constraintOfUnread = (part: string): Constraint | null =>
    anyPattern === null ? null : { path: part, ...anyPattern, how: 'too long' }
  const find = (path: string): Constraint | null => {
    if (!isRootKnown && path.split(/[\\/]/).length > MAX_FOLDERS_WITHOUT_ROOT)
      return constraintOfUnread(normalisePath(path, root))
    const names = namer(path)
    const texts = names.map(({ relative, absolute }) => foldCase(`${absolute ?? ''}/${relative}`))
    for (const { pattern, list, reading } of patterns) {
      const { needles } = reading
      if (needles !== null && !needles.some((one) => texts.some((text) => text.includes(one)))) continue
      for (const [index, name] of names.entries()) {
        const how = reading.match(name, index === 0)
        if (how !== null) return { path: normalisePath(path, root), pattern, list, how }
      }
    }
    return broken === null ? null : { ...broken, path: normalisePath(path, root) }
  }
  const constraintOf = (path: string): Constraint | null => {
    const before = found.get(path)
    if (before !== undefined) return before
    const constraint = find(path)
    if (path.length <= MAX_KNOWN_PATH_CHARS) {
      if (found.size >= MAX_KNOWN_PATHS) found.clear()
      found.set(path, constraint)
    }
    return constraint
  }
  const constraintOfFolder = (path: string): Constraint | null => {
    const own = constraintOf(path)
    if (own !== null) return own
    const inside = constraintOf(`${path}/${ANY_NAME}`)
    return inside === null ? null : { ...inside, path: normalisePath(path, root) }
  }
  const constraintOfWildcards: PathTest['constraintOfWildcards'] = (word, ignoreCase, budget) => {
    const enough = word.includes('*') ? NAMING_AGREEMENT : SIZED_NAMING_AGREEMENT
    for (const name of namer(word)) {
      const folds = ignoreCase || name.ignoresCase
      const globs = new Map<string | null, Glob | null>()
      for (const { pattern, list, reading } of patterns) {
        if (reading.needles !== null && !ignoreCase && !spellsPartOf(word, reading.needles)) continue
        for (const cover of reading.covers()) {
          const text = name[cover.of]
          if (!globs.has(text)) globs.set(text, text === null ? null : globOf(text, folds))
          const glob = globs.get(text) ?? null
          if (glob === null) continue
          const covered = cover.names(folds)
          const pairs = glob.alternatives.length * covered.alternatives.length
          if (!budget.take(pairs * word.length)) return null
          if ((agreement(glob, covered) ?? 0) < enough) continue
          return { path: normalisePath(word, root), pattern, list, how: 'spelling' }
        }
      }
    }
    return null
  }

  const paths: PathTest = {
    constraintOf,
    constraintOfFolder,
    constraintOfWildcards,
    constraintOfUnread,
    needles: broken === null ? needlesOf(patterns) : null,
    constrainsSome,
  }
  return {
    constraintOf,
    constraintOfFolder,
    constraintOfCall: (call) => constraintOfCall(call, paths),
    constrainsSome,
    key: keyOf(privacy, rules, root),
  }
}

/** A short name of all that a guard goes by, and of all that it says. */
function keyOf(privacy: PrivacyPolicy, rules: readonly RoutingRule[], root: string): string {
  const listed = listedPatterns(privacy, rules).map(({ pattern, list }) => JSON.stringify([list, pattern]))
  return hashOf(JSON.stringify([root, listed]))
}

/** @returns broken: the first pattern that cannot be read, as the constraint that it is for every path */
function readLists(
  privacy: PrivacyPolicy,
  rules: readonly RoutingRule[],
  root: string,
): { patterns: Listed[]; broken: Omit<Constraint, 'path'> | null } {
  const listed = listedPatterns(privacy, rules)
  const base = canonicalRoot(root)
  const patterns: Listed[] = []
  let broken: Omit<Constraint, 'path'> | null = null
  for (const { pattern, list } of listed) {
    const reading = readPattern(pattern, root, base)
    if ('invalid' in reading) broken ??= { pattern, list, how: 'invalid pattern' }
    else patterns.push({ pattern, list, reading })
  }
  return { patterns, broken }
}

/** Every pattern with the name of its list. */
const listedPatterns = (
  privacy: PrivacyPolicy,
  rules: readonly RoutingRule[],
): { pattern: string; list: string }[] => [
  ...privacy.restricted_paths.map((pattern) => ({ pattern, list: 'restricted_paths' })),
  ...(privacy.remote?.blocked_paths ?? []).map((pattern) => ({ pattern, list: 'remote.blocked_paths' })),
  ...rules
    .filter((rule) => rule.local_only)
    .flatMap(({ name, paths }) => paths.map((pattern) => ({ pattern, list: `rule \`${name}\`` }))),
]

/** Texts of which every constrained path holds one; null if some pattern gives none. */
function needlesOf(patterns: readonly Listed[]): string[] | null {
  const needles = new Set<string>()
  for (const { reading } of patterns) {
    if (reading.needles === null) return null
    for (const needle of reading.needles) needles.add(needle)
  }
  return [...needles]
}
