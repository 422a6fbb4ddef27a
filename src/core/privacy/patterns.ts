/**
 * What a pattern of a privacy list is held against. The contract's reading comes first (EC 8.2); each further one only
 * adds to what stays with local models.
 */

import { compileGlob, foldCase, type Glob, type Part } from '../../protocol/glob.ts'
import type { Alternatives } from '../../protocol/glob-overlap.ts'
import { baseName, isAbsolute, withDrive } from '../paths.ts'
import { canonical, canonicalRoot, homeOf, type NamedPath, OWN_HOME } from './spellings.ts'

export type Match = 'path' | 'base name' | 'folder' | 'letter case' | 'spelling'

/** Names that a pattern covers, of one kind. */
export type Cover = {
  of: 'relative' | 'absolute' | 'home'
  /** `ignoreCase` where letter case says nothing. */
  names(ignoreCase: boolean): Alternatives
}

export type PrivacyPattern = {
  /** How the pattern covers a path; null if it does not. `first` = the path goes by its plain name. */
  match(name: NamedPath, first: boolean): Match | null
  /** What it covers, for questions about sets of paths. */
  covers(): readonly Cover[]
  /**
   * Texts in ASCII, in small letters, of which every path that it covers holds one in one of its names; null if there
   * are none to be had.
   */
  readonly needles: readonly string[] | null
}

/** Which name of a path a reading looks at. `component` = each part of it; `lost home` = a home that is not known. */
type Subject = 'relative' | 'absolute' | 'home' | 'lost home' | 'component'
type Reading = {
  subject: Subject
  glob: Glob
  /** The same where letter case says nothing, which is seldom asked for. */
  folded(): Glob
  how: Match
}

/** Reads a pattern of a workspace, or says that it is none. `base` is the root as `canonicalRoot` leaves it. */
export function readPattern(
  pattern: string,
  root: string,
  base = canonicalRoot(root),
): PrivacyPattern | { invalid: string } {
  const compiled = compileGlob(pattern)
  if ('invalid' in compiled) return compiled
  const readings: Reading[] = []
  const known = new Set<string>()
  const globs = new Map<string, Glob>([[pattern, compiled.glob]])
  for (const [index, text] of textsOf(pattern, root, base).entries()) {
    for (const [subject, globText, how] of subjectsOf(text)) {
      const name = `${subject}:${globText}`
      if (known.has(name)) continue
      known.add(name)
      const glob = globs.get(globText) ?? globOf(globText, false)
      if (glob === null) continue
      globs.set(globText, glob)
      readings.push({
        subject,
        glob,
        folded: once(() => globOf(globText, true) ?? glob),
        how: index === 0 ? how : 'spelling',
      })
    }
  }
  return {
    match: (name, first) => {
      const how = firstMatch(readings, name)
      return how === null || first || how === 'letter case' ? how : 'spelling'
    },
    covers: once(() => readings.map(coverOf)),
    needles: needlesOf(readings, base),
  }
}

/** A pattern that is made here, or the word of a command, as a glob; null where it is none. */
export function globOf(text: string, ignoreCase: boolean): Glob | null {
  const compiled = compileGlob(text, { unbounded: true, ignoreCase })
  return 'invalid' in compiled ? null : compiled.glob
}

function once<T>(make: () => T): () => T {
  let made: { value: T } | undefined
  return () => {
    made ??= { value: make() }
    return made.value
  }
}

/** Most patterns can only have been meant in one way: they begin with a plain name, and hold nothing that leads elsewhere. */
const ODD = /^[/~$%]|^file:|^[A-Za-z]:|\\|\/\/|(?:^|\/)\.\.?(?:\/|$)|[^ -~]/i

/** The pattern and the texts that it may have been meant as; the first is what the contract reads, tidied. */
function textsOf(pattern: string, root: string, base: string): string[] {
  if (!ODD.test(pattern)) return [pattern]
  const tidy = (text: string) => withDrive(text.normalize('NFC').replace(/^(?:\.\/+)+/, ''))
  const texts = [tidy(pattern)]
  const add = (text: string) => {
    if (text !== '' && !texts.includes(text)) texts.push(text)
  }
  // Who writes Windows paths means the separator, not an escape.
  for (const text of [pattern, pattern.replaceAll('\\', '/')]) {
    add(tidy(text))
    add(tidy(withoutDetours(text)))
    // The name of a share, as `spell` leaves it.
    add(tidy(withoutDetours(text)).replace(/^\/{2,}/, '/'))
    add(tidy(canonical(text.replace(OWN_HOME, '~'), null)))
  }
  for (const text of [...texts]) {
    const above = aboveRoot(text, root)
    if (above !== null) add(above)
    // The root shows how drives are written.
    if (/^[A-Z]:/.test(base) ? /^\/(?!\/)/.test(text) : /^[A-Z]:\//.test(text)) add(canonical(text, base))
  }
  return texts
}

/** `a//b`, `a/./b` and `a/x/../b` as what they lead to. */
function withoutDetours(text: string): string {
  let left = text.replace(/(?<=.)\/(?:\.?\/)+/g, '/')
  for (let before = ''; before !== left; ) {
    before = left
    left = left.replace(/(^|\/)(?!\.\.?\/)[^/*?[\]{}]+\/\.\.\//, '$1')
  }
  return left
}

/** A pattern that leads out of the root by `..`, as the absolute one that it means. */
function aboveRoot(text: string, root: string): string | null {
  const up = /^(?:\.\.\/)+/.exec(text)?.[0]
  const base = withDrive(root.replaceAll('\\', '/').normalize('NFC'))
  if (up === undefined || !isAbsolute(base)) return null
  const parts = base.split('/').filter((part) => part !== '' && part !== '.')
  const kept = parts.slice(0, Math.max(0, parts.length - up.length / 3))
  const folder = kept.map((part) => part.replace(/[\\*?[\]{}]/g, '\\$&')).join('/')
  const rest = text.slice(up.length)
  if (/^[A-Za-z]:/.test(base)) return `${folder}/${rest}`
  return folder === '' ? `/${rest}` : `/${folder}/${rest}`
}

function* subjectsOf(text: string): Generator<[Subject, string, Match]> {
  const bare = text.replace(/(?<=.)\/+$/, '')
  yield ['relative', bare, 'path']
  if (bare !== text) yield ['relative', `${bare}/**`, 'path']
  if (!bare.includes('/')) yield ['component', bare, 'base name']
  if (/^~[^/]*(?:\/|$)/.test(bare)) {
    yield ['home', bare, 'path']
    yield ['lost home', bare, 'spelling']
  }
  if (!isAbsolute(bare)) return
  yield ['absolute', bare, 'path']
  if (/^\/[^/]/.test(bare)) yield ['relative', bare.slice(1), 'spelling']
  const home = homeOf(bare)
  if (home !== null) yield ['lost home', `~${bare.slice(home.length)}`, 'spelling']
}

function firstMatch(readings: readonly Reading[], name: NamedPath): Match | null {
  let found: Match | null = null
  for (const { subject, glob, folded, how } of readings) {
    for (const text of subjectTexts(subject, name)) {
      const match = glob.matches(text)
        ? subject === 'component' && text !== baseName(name.relative)
          ? 'folder'
          : how
        : glob.matchesFolderOf(text)
          ? how === 'spelling'
            ? how
            : 'folder'
          : name.ignoresCase && matchesFolded(folded(), foldCase(text))
            ? 'letter case'
            : null
      if (match !== null && (found === null || RANK[match] < RANK[found])) found = match
    }
    if (found === 'path') return found
  }
  return found
}

const matchesFolded = (folded: Glob, text: string): boolean =>
  folded.matches(text) || folded.matchesFolderOf(text)

/** The plainest way in which a pattern covers a path is the one that is told. */
const RANK: Readonly<Record<Match, number>> = {
  path: 0,
  'base name': 1,
  folder: 2,
  'letter case': 3,
  spelling: 4,
}

function subjectTexts(subject: Subject, { relative, absolute, home }: NamedPath): string[] {
  const isOutside = relative === '..' || relative.startsWith('../')
  switch (subject) {
    case 'relative':
      return isOutside && absolute !== null ? [relative, absolute] : [relative]
    case 'component': {
      const parts = (isOutside && absolute !== null ? absolute : relative).split('/')
      return [relative, ...parts.filter((part) => part !== '' && part !== '..').reverse()]
    }
    case 'absolute':
      return absolute === null ? [] : [absolute]
    case 'home':
      return home === null ? [] : [home]
    case 'lost home':
      return home === null || absolute !== null ? [] : [home]
  }
}

function coverOf({ subject, glob, folded }: Reading): Cover {
  const plain = once(() => withAllBelow(subject, glob))
  const small = once(() => withAllBelow(subject, folded()))
  return {
    of: subject === 'component' ? 'relative' : subject === 'lost home' ? 'home' : subject,
    names: (ignoreCase) => (ignoreCase ? small() : plain()),
  }
}

/** What the reading matches, and what lies below. */
function withAllBelow(subject: Subject, { alternatives }: Glob): Alternatives {
  return {
    alternatives: alternatives
      .map((parts) => (subject === 'component' ? [{ k: 'dirs' as const }, ...parts] : parts))
      .flatMap((parts) => [parts, [...parts, { k: 'char' as const, char: '/' }, { k: 'star' as const }]]),
  }
}

function needlesOf(readings: readonly Reading[], base: string): string[] | null {
  const here = foldCase(base)
  const needles = new Set<string>()
  for (const { subject, glob } of readings) {
    // What the root holds itself stands in such a name of each of its files, though not in what is written of them.
    const namesRoot = subject === 'absolute' || subject === 'home'
    for (const parts of glob.alternatives) {
      let longest = ''
      let run = ''
      for (const part of [...parts, END]) {
        if (part.k === 'char' && part.char > ' ' && part.char <= '~' && part.char !== '/') {
          run += part.char
          continue
        }
        if (run.length > longest.length && !/^(?:\.\.?|~)$/.test(run)) {
          const small = run.toLowerCase()
          if (!namesRoot || !here.includes(small)) longest = small
        }
        run = ''
      }
      if (longest === '') return null
      needles.add(longest)
    }
  }
  return [...needles]
}

const END: Part = { k: 'star' }
