/**
 * The contract's path globs (EC 8.2), for the few decisions that this machine takes itself: which files a search may
 * quote, and whether a configured pattern is well-formed. A pattern is simulated as an automaton, so the time is
 * bounded by pattern length × path length whatever the pattern (D17).
 */

/** Longer patterns and more wildcards are invalid (D17). */
const MAX_CHARS = 256
const MAX_WILDCARDS = 16
/** Braces multiply; more alternatives are invalid. */
const MAX_ALTERNATIVES = 64

type Step =
  /** Takes one character that `accepts` it. */
  | { kind: 'one'; accepts: (char: string) => boolean }
  /** Takes any run of characters. */
  | { kind: 'any' }
  /** Takes nothing, or any run of characters that ends in a slash: a leading or inner component `**`. */
  | { kind: 'folders' }

export type GlobMatcher = (path: string) => boolean

/** Compiles a pattern; a string says why it is invalid. */
export function compileGlob(pattern: string): GlobMatcher | string {
  const chars = [...pattern]
  if (chars.length > MAX_CHARS) return `longer than ${MAX_CHARS} characters`
  const alternatives = expandBraces(chars)
  if (typeof alternatives === 'string') return alternatives
  const programs: Step[][] = []
  for (const alternative of alternatives) {
    const steps = compileSteps(alternative)
    if (typeof steps === 'string') return steps
    programs.push(steps)
  }
  return (path) => programs.some((steps) => runs(steps, path))
}

/**
 * Whether a path is covered by any of the patterns. An invalid pattern covers every path: privacy fails closed
 * (EC 8.2). A pattern without a slash is also tried on the base name, which only tightens.
 */
export function coveredBy(patterns: readonly string[]): GlobMatcher {
  const compiled = patterns.map((pattern) => ({ matcher: compileGlob(pattern), deep: pattern.includes('/') }))
  return (path) => {
    const base = path.slice(path.lastIndexOf('/') + 1)
    return compiled.some(({ matcher, deep }) => {
      if (typeof matcher === 'string') return true
      return matcher(path) || (!deep && matcher(base))
    })
  }
}

function expandBraces(chars: readonly string[]): string[][] | string {
  let wildcards = 0
  let expanded: string[][] = [[]]
  let group: string[][] | undefined
  for (let i = 0; i < chars.length; i++) {
    const char = chars[i] ?? ''
    let literal = [char]
    if (char === '\\') literal = [char, chars[++i] ?? '']
    else if (char === '[') {
      const end = classEnd(chars, i)
      if (end < 0) return 'a `[` without its `]`'
      literal = chars.slice(i, end + 1)
      i = end
      wildcards++
    } else if (char === '*' || char === '?') {
      if (!(char === '*' && chars[i - 1] === '*')) wildcards++
    } else if (char === '{') {
      if (group) return 'braces inside braces'
      group = [[]]
      wildcards++
      continue
    } else if (char === '}') {
      if (!group) return 'a `}` without its `{`'
      const branches = group
      expanded = expanded.flatMap((head) => branches.map((branch) => [...head, ...branch]))
      if (expanded.length > MAX_ALTERNATIVES) return 'too many alternatives'
      group = undefined
      continue
    } else if (char === ',' && group) {
      group.push([])
      continue
    }
    if (group) group.at(-1)?.push(...literal)
    else for (const sequence of expanded) sequence.push(...literal)
  }
  if (group) return 'a `{` without its `}`'
  return wildcards > MAX_WILDCARDS ? `more than ${MAX_WILDCARDS} wildcards` : expanded
}

/** The index of the `]` that closes the class; one that comes first is a member. */
function classEnd(chars: readonly string[], open: number): number {
  let from = open + 1
  if (chars[from] === '!' || chars[from] === '^') from++
  return chars.indexOf(']', from + 1)
}

function compileSteps(chars: readonly string[]): Step[] | string {
  const steps: Step[] = []
  for (let i = 0; i < chars.length; i++) {
    const char = chars[i] ?? ''
    if (char === '\\') {
      const escaped = chars[++i] ?? ''
      if (escaped === '') return 'a `\\` at the end'
      steps.push({ kind: 'one', accepts: (other) => other === escaped })
    } else if (char === '?') steps.push({ kind: 'one', accepts: () => true })
    else if (char === '[') {
      const end = classEnd(chars, i)
      const accepts = compileClass(chars.slice(i + 1, end))
      if (typeof accepts === 'string') return accepts
      steps.push({ kind: 'one', accepts })
      i = end
    } else if (char === '*') {
      const start = i
      while (chars[i + 1] === '*') i++
      const opens = start === 0 || chars[start - 1] === '/'
      if (i - start === 1 && opens && chars[i + 1] === '/') {
        steps.push({ kind: 'folders' })
        i++
      } else steps.push({ kind: 'any' })
    } else steps.push({ kind: 'one', accepts: (other) => other === char })
  }
  return steps
}

function compileClass(members: readonly string[]): ((char: string) => boolean) | string {
  const negated = members[0] === '!' || members[0] === '^'
  const list = negated ? members.slice(1) : members
  const ranges: { low: string; high: string }[] = []
  for (let i = 0; i < list.length; i++) {
    const low = list[i] ?? ''
    const high = list[i + 1] === '-' ? list[i + 2] : undefined
    if (high === undefined) ranges.push({ low, high: low })
    else {
      if (high < low) return `the range ${low}-${high} is upside down`
      ranges.push({ low, high })
      i += 2
    }
  }
  return (char) => ranges.some(({ low, high }) => low <= char && char <= high) !== negated
}

/** Follows all positions that the path may stand at in the program, character by character. */
function runs(steps: readonly Step[], path: string): boolean {
  let positions = new Set<number>()
  enter(steps, positions, 0)
  for (const char of path) {
    const next = new Set<number>()
    for (const position of positions) {
      const step = steps[position]
      if (!step) continue
      if (step.kind === 'any') enter(steps, next, position)
      else if (step.kind === 'folders') {
        next.add(position)
        if (char === '/') enter(steps, next, position + 1)
      } else if (step.accepts(char)) enter(steps, next, position + 1)
    }
    if (next.size === 0) return false
    positions = next
  }
  return positions.has(steps.length)
}

/** Adds a position and those behind it that need no character. */
function enter(steps: readonly Step[], positions: Set<number>, from: number): void {
  for (let i = from; ; i++) {
    positions.add(i)
    const step = steps[i]
    if (!step || step.kind === 'one') return
  }
}
