import { compileGlob } from '../protocol/glob.ts'

/**
 * Whether a path is covered by any of the patterns. An invalid pattern covers every path: privacy fails closed
 * (EC 8.2). A pattern without a slash is also tried on the base name, which only tightens.
 */
export function coveredBy(patterns: readonly string[]): (path: string) => boolean {
  const compiled = patterns.map((pattern) => ({ result: compileGlob(pattern), deep: pattern.includes('/') }))
  return (path) => {
    const base = path.slice(path.lastIndexOf('/') + 1)
    return compiled.some(({ result, deep }) => {
      if ('invalid' in result) return true
      return result.glob.matches(path) || (!deep && result.glob.matches(base))
    })
  }
}
