import type { TranscriptCall } from '../transcript.ts'
import { attributedPaths } from './attributed.ts'
import { type Budget, makeBudget } from './budget.ts'
import type { Constraint } from './guard.ts'
import { FILE_TOOLS, type Mentions, mentionsOf, patchesOf } from './mentions.ts'
import { holdsNeedle, isNoPath, mayName, type Needles } from './needles.ts'

/** What a guard knows of single paths. */
export type PathTest = {
  constraintOf(path: string): Constraint | null
  constraintOfFolder(path: string): Constraint | null
  /**
   * Of a name with wildcards: a pattern of which it spells a part.
   * @param budget for each comparison of two patterns; where it does not suffice, the answer is null
   */
  constraintOfWildcards(word: string, ignoreCase: boolean, budget: Budget): Constraint | null
  /** Of what is too long to be read to its end: some pattern may cover what it names. */
  constraintOfUnread(part: string): Constraint | null
  needles: Needles
  constrainsSome: boolean
}

/** A longer word with wildcards is no name but data; the work on it grows with its length. */
const MAX_WILD_CHARS = 512
const WILDCARDS = /[*?[\]{]/
/** So many places of a name say enough by their number, even where they are all open: `.???`. */
const SIZING_WILDCARDS = 3
/** Names of one call, below each folder where it works: a long program has a tenth of these. */
const MAX_NAMES = 250_000
const MAX_NAMES_CHARS = 16_000_000
/** Of the same, those that are held against the patterns. */
const MAX_LIKELY_NAMES = 20_000
const MAX_LIKELY_CHARS = 2_000_000
/** Comparisons of names with wildcards and patterns; the work on one grows with the name. */
const MAX_COMPARISONS = 100_000
const MAX_COMPARED_CHARS = 1_000_000

/**
 * Tells why a call is for local models alone: something that its arguments name, or that its result attributes text to,
 * is constrained.
 */
export function constraintOfCall(call: TranscriptCall, paths: PathTest): Constraint | null {
  if (!paths.constrainsSome) return null
  const mentions = mentionsOf(call)
  return ofMentions(mentions, paths) ?? ofTexts(call, mentions.folders, paths)
}

function ofMentions(
  { names, words, folders, ignoresCase, isWhole }: Mentions,
  paths: PathTest,
): Constraint | null {
  const all = makeBudget(MAX_NAMES, MAX_NAMES_CHARS)
  const likely = makeBudget(MAX_LIKELY_NAMES, MAX_LIKELY_CHARS)
  const wild = makeBudget(MAX_COMPARISONS, MAX_COMPARED_CHARS)
  const ofName = (name: string) =>
    mayName(name, paths.needles) && !isNoPath(name) && likely.take(name.length)
      ? paths.constraintOfFolder(name)
      : null
  /** Of a name as it stands, and with what its wildcards may stand for. */
  const ofWord = (word: string): Constraint | null => {
    if (!all.take(word.length)) return null
    const plain = ofName(word)
    if (plain !== null) return plain
    const isWild = WILDCARDS.test(word)
    const sampled = isWild ? first(samplesOf(word), ofName) : null
    if (sampled !== null) return sampled
    const maySpell = isWild ? mayBeSpelled(word, paths.needles) : ignoresCase && mayName(word, paths.needles)
    return maySpell ? paths.constraintOfWildcards(word, ignoresCase, wild) : null
  }
  const isSpent = () => all.isSpent || likely.isSpent || wild.isSpent
  const inFolders = (given: readonly string[]) =>
    first(folders, (folder) => first(given, (name) => (isSpent() ? null : ofWord(`${folder}/${name}`))))
  const named = first(names, ofWord) ?? first(words, ofWord) ?? inFolders(names) ?? inFolders(words)
  return named ?? (isWhole && !isSpent() ? null : paths.constraintOfUnread('what it names'))
}

function ofTexts(call: TranscriptCall, folders: readonly string[], paths: PathTest): Constraint | null {
  // Part of a name may be the folder's.
  const needles = folders.some((folder) => holdsNeedle(folder, paths.needles)) ? null : paths.needles
  const likely = makeBudget(MAX_LIKELY_NAMES, MAX_LIKELY_CHARS)
  const ofName = (name: string) =>
    mayName(name, paths.needles) && likely.take(name.length) ? paths.constraintOf(name) : null
  for (const text of [...patchesOf(call), ...(FILE_TOOLS.has(call.name) ? [] : [call.result ?? ''])]) {
    const { names, isWhole } = attributedPaths(text, needles)
    for (const name of names) {
      const constraint = ofName(name) ?? first(folders, (folder) => ofName(`${folder}/${name}`))
      if (constraint !== null) return constraint
    }
    if (!isWhole || likely.isSpent) return paths.constraintOfUnread('its result')
  }
  return null
}

function first(items: Iterable<string>, test: (item: string) => Constraint | null): Constraint | null {
  for (const item of items) {
    const constraint = test(item)
    if (constraint !== null) return constraint
  }
  return null
}

/** False for a word whose wildcards leave no pattern named. `*.json` and `src/*` stand for too much to name anything. */
function mayBeSpelled(word: string, needles: Needles): boolean {
  const last = Math.max(word.lastIndexOf('/'), word.lastIndexOf('\\')) + 1
  if (word.length > MAX_WILD_CHARS || word[last] === '*') return false
  return needles === null || spellsPartOf(word, needles)
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
function samplesOf(word: string): Set<string> {
  // Behind the last bracket that closes nothing is looked for, or each open one would look to the end.
  const closed = word.lastIndexOf(']') + 1
  const single = (
    word
      .slice(0, closed)
      .replace(/\[([!^]?)(\]?[^\]]*)\]/g, (_, negated: string, members: string) =>
        negated ? '_' : members.slice(0, 1),
      ) + word.slice(closed)
  )
    .replace(/\{([^{},]*)(?:,[^{}]*)?\}/g, '$1')
    .replaceAll('?', 'a')
  const samples = new Set([single.replace(/\*+/g, 'any'), single.replace(/\*+[/\\]?/g, '')])
  samples.delete('')
  samples.delete(word)
  return samples
}
