/** A path under the names that a pattern may know it by. */
export type Spelling = {
  /** From the workspace root; `..` leads out of it. Absolute only where nothing is known of the root. */
  relative: string
  /** Null where nothing says where the root is. */
  absolute: string | null
}

/** Spells a path out: forward slashes, no quotes, NFC, `.` and `..` resolved (EC 8.1). */
export function spell(path: string, root: string): Spelling {
  const given = clean(path)
  const base = clean(root)
  const rooted = isAbsolute(base)
  const absolute = isAbsolute(given) ? given : rooted ? clean(`${base}/${given}`) : null
  return {
    relative: absolute !== null && rooted ? relativeTo(base, absolute) : given === '' ? '.' : given,
    absolute,
  }
}

/**
 * The form of a path that globs are matched against and reports show: relative to the workspace root (EC 8.1). A path
 * outside the root is absolute where that is known, so that it never slips under a relative pattern.
 */
export function normalisePath(path: string, root: string): string {
  const { relative, absolute } = spell(path, root)
  return absolute !== null && (relative === '..' || relative.startsWith('../')) ? absolute : relative
}

/** Of a path with forward slashes. */
export const isAbsolute = (clean: string): boolean => clean.startsWith('/') || /^[A-Za-z]:(\/|$)/.test(clean)

/** A drive is the same one in either case. */
export const withDrive = (path: string): string =>
  path.replace(/^[a-z](?=:(\/|$))/, (drive) => drive.toUpperCase())

function clean(path: string): string {
  const unquoted = path.length > 1 && path.startsWith('"') && path.endsWith('"') ? path.slice(1, -1) : path
  const slashed = withDrive(unquoted.replaceAll('\\', '/').normalize('NFC'))
  const rooted = slashed.startsWith('/')
  const kept: string[] = []
  for (const part of slashed.split('/')) {
    if (part === '' || part === '.') continue
    if (part !== '..') kept.push(part)
    else if (kept.length > 0 && kept.at(-1) !== '..') kept.pop()
    else if (!rooted) kept.push('..')
  }
  return (rooted ? '/' : '') + kept.join('/')
}

function relativeTo(base: string, path: string): string {
  if (path === base) return '.'
  const inside = base.endsWith('/') ? base : `${base}/`
  if (path.startsWith(inside)) return path.slice(inside.length)
  const from = base.split('/').filter(Boolean)
  const to = path.split('/').filter(Boolean)
  let same = 0
  while (same < from.length && from[same] === to[same]) same++
  return [...from.slice(same).map(() => '..'), ...to.slice(same)].join('/')
}

/** The last component. */
export const baseName = (path: string): string => path.slice(path.lastIndexOf('/') + 1)
