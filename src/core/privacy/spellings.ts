/**
 * The names that one path may go by. Routing takes a path as the contract reads it (`normalisePath`); privacy asks under
 * which other names the same file could be found, since a reading too many only keeps something at home.
 */

import { foldCase } from '../../protocol/glob.ts'
import { isAbsolute, type Spelling, spell, withDrive } from '../paths.ts'

/** A path under one of its names; `home` begins with `~` and is null where the path does not lie in anyone's home. */
export type NamedPath = Spelling & {
  home: string | null
  /** Letter case says nothing where the file lies. */
  ignoresCase: boolean
}

/** Folders of a home below each of these; `root` has his own. */
const HOME = /^(?:\/home\/[^/]+|\/Users\/[^/]+|\/root|[A-Z]:\/Users\/[^/]+)(?=\/|$)/i
/** How people and commands write their own home. */
export const OWN_HOME =
  /^(?:~|\$HOME|\$\{HOME\}|%USERPROFILE%|%HOMEPATH%|\$env:(?:HOME|USERPROFILE))(?=[\\/]|$)/i
/** The folder where a command runs. */
const WORKING_FOLDER = /^(?:~\+|\$PWD|\$\{PWD\}|%CD%|\/proc\/(?:self|thread-self|\d+)\/cwd)(?=[\\/]|$)/i
/** Where file systems ignore letter case by themselves. */
const CASELESS =
  /^(?:[A-Za-z]:(?:\/|$)|\/\/|\/Users(?:\/|$)|\/Volumes(?:\/|$)|\/(?:mnt|cygdrive)\/[A-Za-z](?:\/|$))/i
const DRIVE = /^[A-Z]:(?=\/|$)/
const LOST_HOME = /^~[^/]*(?:\/|$)/
/** Most paths have none of these and so one name alone. */
const MAY_MEAN_ANOTHER = /^[\\/~$%]|^file:|:|[.\s](?:[\\/"]|$)|[^\0-\x7f]/i
/** Characters that some file systems leave out when they compare names. */
const IGNORED = /[\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff]/gu

/** The same place under the name that it mostly has. */
const ALIASES: readonly [RegExp, string][] = [
  [/^\/\/[?.]\/UNC\//i, '//'],
  [/^\/\/[?.]\/(?=[A-Za-z]:)/, ''],
  [/^\/\/wsl(?:\$|\.localhost)\/[^/]+(?=\/|$)/i, ''],
  [/^\/proc\/(?:self|thread-self|\d+)\/root(?=\/|$)/, ''],
  [/^\/System\/Volumes\/Data(?=\/|$)/i, ''],
  [/^\/private(?=\/(?:var|tmp|etc)(?:\/|$))/i, ''],
  [/^\/(?:var|usr)(?=\/home\/)/, ''],
]

/** The home that a folder of the user's shows; null where it shows none. */
export const homeOf = (folder: string): string | null => HOME.exec(folder)?.[0] ?? null

/** The root of a workspace in the form that `canonical` asks for. */
export const canonicalRoot = (root: string): string => withDrive(canonical(slashed(root), null))

/** Gives every name of a path of a workspace, as the client or a model wrote it; the plain one comes first. */
export function makeNamer(root: string): (path: string) => NamedPath[] {
  const base = canonicalRoot(root)
  const rootIgnoresCase = CASELESS.test(slashed(root))
  const named = (path: string, from: string): NamedPath => {
    const spelling = spell(path, from)
    const { relative, absolute } = spelling
    return {
      ...spelling,
      home: absolute === null ? (LOST_HOME.test(relative) ? relative : null) : inHome(absolute),
      ignoresCase: rootIgnoresCase || (absolute !== null && CASELESS.test(absolute)),
    }
  }
  return (path) => {
    const plain = named(path, root)
    const names: NamedPath[] = []
    const add = (name: NamedPath) => {
      const { relative, absolute, home } = name
      const known = names.some(
        (one) => one.relative === relative && one.absolute === absolute && one.home === home,
      )
      if (!known) names.push(name)
      if (!name.ignoresCase || absolute === null) return
      const below = withinRoot(absolute, base)
      if (below !== null && below !== relative) names.push({ ...name, relative: below })
    }
    add(plain)
    if (base !== root || MAY_MEAN_ANOTHER.test(path)) {
      const other = canonical(slashed(path), base)
      // Whose home it is cannot be known: it lies in no folder that can be named.
      if (LOST_HOME.test(other)) {
        const { relative } = spell(other, '')
        add({ relative, absolute: null, home: relative, ignoresCase: plain.ignoresCase })
      } else add(named(other, base))
      if (/[.:\s]/.test(other)) add(named(withoutWindowsTails(other, base), base))
    }
    // Without a root, any part of an absolute path may be the one that begins below it.
    const { absolute } = plain
    if (absolute !== null && !isAbsolute(base)) {
      for (let at = absolute.indexOf('/'); at >= 0; at = absolute.indexOf('/', at + 1)) {
        add({ ...plain, relative: absolute.slice(at + 1) })
      }
    }
    return names
  }
}

/** The path from the root, whatever the letter case in which the root is written; null outside of it. */
function withinRoot(absolute: string, root: string): string | null {
  const parts = absolute.split('/').filter(Boolean)
  const rootParts = root.split('/').filter(Boolean)
  const isInside = rootParts.every((part, index) => foldCase(part) === foldCase(parts[index] ?? ''))
  return isInside ? parts.slice(rootParts.length).join('/') || '.' : null
}

const inHome = (absolute: string): string | null => (HOME.test(absolute) ? absolute.replace(HOME, '~') : null)

const slashed = (path: string): string => {
  const forward = path.replaceAll('\\', '/').normalize('NFC')
  return /^"(.*)"$/s.exec(forward)?.[1] ?? forward
}

/**
 * A path without links, devices and abbreviations that are known to lead elsewhere.
 * @param root of the workspace, canonical itself; null for the root
 */
export function canonical(path: string, root: string | null): string {
  let result = withoutScheme(path).replace(IGNORED, '')
  if (root !== null) {
    result = result.replace(WORKING_FOLDER, '.')
    const home = homeOf(root)
    result = result.replace(OWN_HOME, home ?? '~')
    const other = /^~([^/]+)(?=\/|$)/.exec(result)
    if (other?.[1] !== undefined) {
      const above = home === null || home === '/root' ? '/home' : home.slice(0, home.lastIndexOf('/'))
      result = (other[1] === 'root' ? '/root' : `${above}/${other[1]}`) + result.slice(other[0].length)
    }
  }
  for (const [alias, name] of ALIASES) result = result.replace(alias, name)
  return onDrive(result, root ?? result)
}

function withoutScheme(path: string): string {
  const url = /^file:(?:\/\/(?:localhost)?(?=\/))?/i.exec(path)
  if (url === null) return path
  const rest = path.slice(url[0].length).replace(/[?#].*$/s, '')
  let decoded = rest
  try {
    decoded = decodeURIComponent(rest)
  } catch {
    // No percent encoding, so it means itself.
  }
  return decoded.replace(/^\/(?=[A-Za-z]:)/, '')
}

/** One form for the drives that Windows and the Unix tools on it write differently; the root says whose form it is. */
function onDrive(path: string, root: string): string {
  const drive = DRIVE.exec(root.replace(/^[a-z]:/, (letter) => letter.toUpperCase()))?.[0]
  if (drive !== undefined) {
    const mounted = /^\/(?:mnt\/|cygdrive\/)?([A-Za-z])(?=\/|$)/.exec(path)
    if (mounted?.[1] !== undefined) return `${mounted[1].toUpperCase()}:${path.slice(mounted[0].length)}`
    // Without a slash behind it a drive means the folder where one stands on it.
    if (path.slice(0, 2).toUpperCase() === drive && /^[^/]/.test(path.slice(2))) return path.slice(2)
    return path.startsWith('/') && !path.startsWith('//') ? `${drive}${path}` : path
  }
  const mount = /^(\/(?:mnt\/|cygdrive\/)?)[A-Za-z](?=\/|$)/.exec(root)?.[1]
  return mount === undefined
    ? path
    : path.replace(/^([A-Za-z]):(?=\/|$)/, (_, letter: string) => mount + letter.toLowerCase())
}

/** Windows opens `.env` for `.env.`, `.env ` and `.env::$DATA`, and another stream of it for `.env:name`. */
function withoutWindowsTails(path: string, root: string): string {
  const stream = DRIVE.test(root) || root.startsWith('//') ? /(?<=[^/]):[^/]*$/ : /(?<=[^/]):[^/:]*:\$[^/]*$/i
  return path
    .split('/')
    .map((part, index) => {
      if (part === '.' || part === '..' || (index === 0 && /^[A-Za-z]:$/.test(part))) return part
      const bare = part.replace(stream, '')
      let end = bare.length
      while (end > 0 && (bare[end - 1] === '.' || bare[end - 1] === ' ')) end--
      return end === 0 ? part : bare.slice(0, end)
    })
    .join('/')
}
