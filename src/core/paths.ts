/**
 * Puts a path into the form that globs are matched against: forward slashes, no quotes, relative to the workspace
 * root, `.` and `..` resolved (EC 8.1). A path that leaves the root keeps its leading `..` or `/`, so that it still
 * matches what names it absolutely and never slips under a relative pattern.
 */
export function normalisePath(path: string, root: string): string {
  const unquoted = path.length > 1 && path.startsWith('"') && path.endsWith('"') ? path.slice(1, -1) : path
  const absolute = resolveDots(unquoted.replaceAll('\\', '/').normalize('NFC'))
  const base = resolveDots(root.replaceAll('\\', '/').normalize('NFC')).replace(/\/$/, '')
  if (base !== '' && absolute === base) return '.'
  return base !== '' && absolute.startsWith(`${base}/`) ? absolute.slice(base.length + 1) : absolute
}

function resolveDots(path: string): string {
  const rooted = path.startsWith('/')
  const kept: string[] = []
  for (const part of path.split('/')) {
    if (part === '' || part === '.') continue
    if (part !== '..') kept.push(part)
    else if (kept.length > 0 && kept[kept.length - 1] !== '..') kept.pop()
    else if (!rooted) kept.push('..')
  }
  return (rooted ? '/' : '') + kept.join('/')
}

/** The new-side paths of a diff: what follows ` b/` on each `diff --git` line (EC 8.1). */
export function diffPaths(diff: string): string[] {
  const paths: string[] = []
  for (const line of diff.split('\n')) {
    if (!line.startsWith('diff --git ')) continue
    const quoted = line.indexOf(' "b/')
    const plain = line.indexOf(' b/')
    if (quoted >= 0) paths.push(line.slice(quoted + 4).replace(/"\s*$/, ''))
    else if (plain >= 0) paths.push(line.slice(plain + 3).trimEnd())
  }
  return paths
}

/** The last component. */
export const baseName = (path: string): string => path.slice(path.lastIndexOf('/') + 1)
