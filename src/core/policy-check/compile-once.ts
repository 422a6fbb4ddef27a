import { compileGlob } from '../../protocol/glob.ts'

export type CompileGlob = (pattern: string) => ReturnType<typeof compileGlob>

/** A compiler that remembers: several checks look at the same patterns, and one with many braces takes milliseconds. */
export function makeCompiler(): CompileGlob {
  const known = new Map<string, ReturnType<typeof compileGlob>>()
  return (pattern) => {
    const before = known.get(pattern)
    if (before !== undefined) return before
    const compiled = compileGlob(pattern)
    known.set(pattern, compiled)
    return compiled
  }
}
