import type { TranscriptCall } from '../transcript.ts'
import { attributedPaths, type Needles } from './attributed.ts'
import type { Constraint } from './guard.ts'
import { mentionsOf, patchesOf } from './mentions.ts'

/** What a guard knows of single paths. */
export type PathTest = {
  constraintOf(path: string): Constraint | null
  constraintOfFolder(path: string): Constraint | null
  /** Of a name with wildcards: a pattern of which it spells a part. */
  constraintOfWildcards(word: string, ignoreCase: boolean): Constraint | null
  /** Texts of which every constrained path holds one, in small ASCII letters; null where there are none. */
  needles: Needles
  constrainsSome: boolean
}

/** A longer word with wildcards is no name but data; the work on it grows with its length. */
const MAX_WILD_CHARS = 512
const WILDCARDS = /[*?[\]{]/
/** So many places of a name say enough by their number, even where they are all open: `.???`. */
const SIZING_WILDCARDS = 3
/** A word may lead to a name that does not stand in it. */
const LEADS_ELSEWHERE = /^[~$%]|^file:.*%|\.\.|[^\0-\x7f]/i
/** Tools of the contract whose result is about the file they name, or about none. */
const NO_OTHER_SOURCE: ReadonlySet<string> = new Set(['read_file', 'write_file', 'edit_file', 'memory'])

/**
 * Tells why a call is for local models alone: something that its arguments name, or that its result attributes text to,
 * is constrained. Each call is looked at once.
 */
export function makeCallTest(paths: PathTest): (call: TranscriptCall) => Constraint | null {
  const known = new WeakMap<TranscriptCall, Constraint | null>()
  return (call) => {
    if (!paths.constrainsSome) return null
    const before = known.get(call)
    if (before !== undefined) return before
    const constraint = ofCall(call, paths)
    known.set(call, constraint)
    return constraint
  }
}

function ofCall(call: TranscriptCall, paths: PathTest): Constraint | null {
  const { names, words, folders, ignoresCase } = mentionsOf(call)
  const test = (word: string) => ofWord(word, ignoresCase, paths)
  const inFolders = (given: readonly string[]) =>
    first(folders, (folder) => first(given, (name) => test(`${folder}/${name}`)))
  const named = first(names, test) ?? first(words, test) ?? inFolders(names) ?? inFolders(words)
  if (named !== null) return named
  for (const text of [...patchesOf(call), ...(NO_OTHER_SOURCE.has(call.name) ? [] : [call.result ?? ''])]) {
    // Of many lines in a row the same is said.
    let before = ''
    for (const path of attributedPaths(text, paths.needles)) {
      if (path === before || path === '' || path === '/dev/null') continue
      before = path
      const constraint = first([path, ...folders.map((folder) => `${folder}/${path}`)], (one) =>
        mayName(one, paths.needles) ? paths.constraintOf(one) : null,
      )
      if (constraint !== null) return constraint
    }
  }
  return null
}

function first(items: readonly string[], test: (item: string) => Constraint | null): Constraint | null {
  for (const item of items) {
    const constraint = test(item)
    if (constraint !== null) return constraint
  }
  return null
}

/** False for a name without wildcards that is none of the constrained ones, at the price of a few text searches. */
function mayName(name: string, needles: Needles): boolean {
  if (needles === null || LEADS_ELSEWHERE.test(name)) return true
  const small = name.toLowerCase()
  return needles.some((needle) => small.includes(needle))
}

/** Of a name as it stands, and with what its wildcards may stand for. */
function ofWord(word: string, ignoreCase: boolean, paths: PathTest): Constraint | null {
  const ofName = (name: string) => (mayName(name, paths.needles) ? paths.constraintOfFolder(name) : null)
  const plain = ofName(word)
  if (plain !== null) return plain
  if (!WILDCARDS.test(word))
    return ignoreCase && mayName(word, paths.needles) ? paths.constraintOfWildcards(word, true) : null
  const sampled = first(samplesOf(word), ofName)
  if (sampled !== null) return sampled
  return maySpell(word, paths.needles) ? paths.constraintOfWildcards(word, ignoreCase) : null
}

/** False for a word whose wildcards leave no pattern named. `*.json` and `src/*` stand for too much to name anything. */
function maySpell(word: string, needles: Needles): boolean {
  if (word.length > MAX_WILD_CHARS || word.slice(word.search(/[^/\\]*$/)).startsWith('*')) return false
  if (needles === null) return true
  return spellsPartOf(word, needles)
}

/** False if a word with wildcards has nothing in common with the texts of which every path of a pattern holds one. */
export function spellsPartOf(word: string, needles: readonly string[]): boolean {
  if ((word.match(/[?[]/g)?.length ?? 0) >= SIZING_WILDCARDS) return true
  const small = word.toLowerCase()
  for (let i = 0; i + 1 < small.length; i++) {
    const pair = small.slice(i, i + 2)
    if (!WILDCARDS.test(pair) && needles.some((needle) => needle.includes(pair))) return true
  }
  return false
}

/** Names that the wildcards give: for any text, and for none. */
function samplesOf(word: string): string[] {
  const single = word
    .replace(/\[([!^]?)(\]?[^\]]*)\]/g, (_, negated: string, members: string) =>
      negated ? '_' : members.slice(0, 1),
    )
    .replace(/\{([^{},]*)[^{}]*\}/g, '$1')
    .replaceAll('?', 'a')
  return [...new Set([single.replace(/\*+/g, 'any'), single.replace(/\*+[/\\]?/g, '')])].filter(
    (sample) => sample !== '' && sample !== word,
  )
}
