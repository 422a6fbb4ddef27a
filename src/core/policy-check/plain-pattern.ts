/**
 * How a pattern would have to be written for the contract's plain reading (EC 8.2), where paths come from the workspace
 * root, with `/` between folders and none in front or behind (EC 8.1).
 */

import { OWN_HOME } from '../privacy/spellings.ts'

/** A pattern that is not in the plain form: what it says, and the plain form where there is one. */
export type OddPattern = { because: string; plain: string | null }

/** A `\` that is meant as a separator: not before a character that file names have and that globs read otherwise. */
const MEANT_AS_SLASH = /\\(?![[\]{}!,^-])/g

const ABSOLUTE = /^(?:[/\\]|[A-Za-z]:[/\\])/

/** Why no candidate path ever matches a routing pattern as it stands; null when one may. */
export function neverMatches(pattern: string): OddPattern | null {
  if (pattern === '') return { because: 'it is empty', plain: null }
  if (OWN_HOME.test(pattern)) {
    const rest = simplified(withSlashes(pattern).replace(OWN_HOME, ''))
    return { because: '`~` stands for no folder here', plain: rest && anywhere(rest) }
  }
  const slashed = withSlashes(pattern)
  const plain = simplified(slashed)
  if (slashed !== pattern)
    return { because: '`\\` does not separate folders; it takes the meaning from what follows', plain }
  if (ABSOLUTE.test(pattern))
    return {
      because: 'paths are from the workspace root, and none inside it begins with `/` or a drive',
      plain,
    }
  if (/(^|\/)\.\.(\/|$)/.test(pattern)) return { because: '`..` of a path is resolved before', plain }
  if (/(^|\/)\.(\/|$)/.test(pattern)) return { because: '`./` of a path is dropped before', plain }
  if (pattern.endsWith('/')) return { because: 'no path ends with `/`', plain }
  if (pattern.includes('//')) return { because: 'no path has two `/` in a row', plain }
  return null
}

/**
 * How a privacy pattern is read that the plain reading would give less to than it seems to ask for. Reading it more
 * widely keeps more with local models. `plain` keeps no less, in a form that says so. Null when the two readings are one.
 */
export function widened(pattern: string): OddPattern | null {
  const slashed = withSlashes(pattern)
  const isFolder = slashed.endsWith('/')
  if (OWN_HOME.test(pattern) || ABSOLUTE.test(pattern)) {
    const because = OWN_HOME.test(pattern)
      ? 'it stands for that place in every home folder'
      : 'it is held against the absolute path and against the path from the workspace root'
    const rest = simplified(slashed.replace(OWN_HOME, '').replace(/\/$/, ''))
    return { because, plain: rest === null ? '**' : anywhere(isFolder ? withAllIn(rest) : rest) }
  }
  const path = simplified(slashed.replace(/\/$/, ''))
  if (isFolder) {
    const because = 'it stands for the folder with all in it'
    if (path === null || path.includes('/')) return { because, plain: path && withAllIn(path) }
    return {
      because: 'it stands for every folder of that name with all in it',
      plain: anywhere(withAllIn(path)),
    }
  }
  if (slashed !== pattern) return { because: '`\\` separates folders as `/` does', plain: path }
  if (/(^|\/)\.{0,2}\//.test(pattern)) return { because: 'it stands for what it leads to', plain: path }
  return pattern.includes('/') ? likeFolder(pattern) : likeName(pattern)
}

/** Without a slash: the contract looks for it at the workspace root alone, unless it begins with a wildcard. */
function likeName(name: string): OddPattern | null {
  if (name === '' || name.startsWith('*')) return null
  const because = 'it stands for every file of that name, and for every folder of that name with all in it'
  return { because, plain: anywhere(withAllIn(name)) }
}

/** One path, whose last name has no ending, as those of folders: the contract reads it as a file. */
function likeFolder(path: string): OddPattern | null {
  if (/[*?[{]/.test(path) || path.slice(path.lastIndexOf('/') + 1).includes('.')) return null
  return { because: 'it stands for a file, and for a folder with all in it', plain: withAllIn(path) }
}

const withSlashes = (pattern: string): string => pattern.replace(MEANT_AS_SLASH, '/')

/** A path together with what is below it. `*` crosses folders, and braces within braces are not read by everybody. */
const withAllIn = (path: string): string =>
  path.endsWith('*') ? path : path.includes('{') ? `${path}/**` : `{${path},${path}/**}`

const anywhere = (path: string): string => (path.startsWith('**') ? path : `**/${path}`)

/** Drops what paths do not have: `.`, empty names, a root; resolves `..`; a closing `/` means what is below. */
function simplified(pattern: string): string | null {
  const kept: string[] = []
  for (const part of pattern.replace(/^[A-Za-z]:(?=\/)/, '').split('/')) {
    if (part === '' || part === '.') continue
    if (part !== '..') kept.push(part)
    // What a wildcard matched cannot be taken back, and above the root nothing is relative.
    else if (kept.length === 0 || /[*?[{]/.test(kept.pop() ?? '')) return null
  }
  if (pattern.endsWith('/')) kept.push('**')
  return kept.length === 0 ? null : kept.join('/')
}
