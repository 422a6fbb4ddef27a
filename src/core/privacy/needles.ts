/**
 * Texts of which every constrained path holds one, in small ASCII letters. Looking for them first makes it cheap to pass
 * over what cannot be constrained.
 */

/** Null where there are none to be had: then everything has to be looked at. */
export type Needles = readonly string[] | null

/** A word may lead to a name that does not stand in it. */
const LEADS_ELSEWHERE = /^[~$%]|^file:.*%|(?:^|[\\/":])\.\.(?:[\\/"]|$)|[^\0-\x7f]/i

/** What stands before is left again, whether it can exist or not; in a URL each character may take three. */
const STEPS_BACK = /^file:|(?:^|[\\/":])\.\.(?:[\\/"]|$)/i

/** No file system has longer names of single files and folders. */
const MAX_COMPONENT_CHARS = 255

/** True for a text that is no path, since a part of it is too long to be the name of anything. */
export function isNoPath(text: string): boolean {
  if (text.length <= MAX_COMPONENT_CHARS || STEPS_BACK.test(text)) return false
  // Characters that are left out of comparisons are no ASCII; dots and blanks at the end count on some systems alone.
  return text.split(/[\\/]/).some(
    (part) =>
      part.length > MAX_COMPONENT_CHARS &&
      part
        .replace(/[^\0-\x7f]/g, '')
        .slice(MAX_COMPONENT_CHARS)
        .replace(/[. ]/g, '') !== '',
  )
}

/** One expression per list: a text may be taken apart into many. */
const compiled = new WeakMap<readonly string[], RegExp>()

function expressionOf(needles: readonly string[]): RegExp {
  const known = compiled.get(needles)
  if (known !== undefined) return known
  const source = needles.map((needle) => needle.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')).join('|')
  const made = new RegExp(source === '' ? '(?!)' : source, 'gi')
  compiled.set(needles, made)
  return made
}

/** True if a needle stands in the text, in either letter case. */
export function holdsNeedle(text: string, needles: Needles): boolean {
  if (needles === null) return true
  const wanted = expressionOf(needles)
  wanted.lastIndex = 0
  return wanted.test(text)
}

/** False for a name without wildcards that is none of the constrained ones, at the price of a few text searches. */
export const mayName = (name: string, needles: Needles): boolean =>
  holdsNeedle(name, needles) || LEADS_ELSEWHERE.test(name)

/** Where the lines begin and end that hold a needle, and where in the text the first one of each stands. */
export function* linesWith(
  text: string,
  needles: Needles,
): Generator<{ start: number; end: number; needleAt: number }, void> {
  const wanted = needles === null ? null : expressionOf(needles)
  for (let from = 0; from <= text.length; ) {
    let needleAt = from
    if (wanted !== null) {
      // Set each time: another text may have been looked at in between.
      wanted.lastIndex = from
      const hit = wanted.exec(text)
      if (hit === null) return
      needleAt = hit.index
    }
    const start = wanted === null ? from : text.lastIndexOf('\n', needleAt) + 1
    const at = text.indexOf('\n', needleAt)
    const end = at < 0 ? text.length : at
    yield { start, end, needleAt }
    from = end + 1
  }
}
