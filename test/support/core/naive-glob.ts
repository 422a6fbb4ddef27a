/** Globs once more, as a regular expression and from the contract's words alone (EC 8.2). */

import type { Random } from './random.ts'

/** @returns null for a pattern that is invalid */
export function naiveGlob(pattern: string): RegExp | null {
  try {
    const branches = alternatives(pattern.normalize('NFC')).map(translate)
    return new RegExp(`^(?:${branches.join('|')})$`, 'su')
  } catch {
    return null
  }
}

/** The first group in braces is written out, then the next. */
function alternatives(pattern: string): string[] {
  const open = bare(pattern, '{', 0)
  const close = bare(pattern, '}', 0)
  if (open < 0 && close < 0) return [pattern]
  if (open < 0 || close < open) throw new SyntaxError('unbalanced')
  const parts: string[] = []
  let depth = 0
  let from = open + 1
  let at = open
  for (;;) {
    const next = [bare(pattern, '{', at + 1), bare(pattern, '}', at + 1), bare(pattern, ',', at + 1)].filter(
      (index) => index >= 0,
    )
    if (next.length === 0) throw new SyntaxError('unbalanced')
    at = Math.min(...next)
    const char = pattern[at]
    if (char === '{') depth++
    else if (char === '}' && depth > 0) depth--
    else if (depth === 0) {
      parts.push(pattern.slice(from, at))
      from = at + 1
      if (char === '}') break
    }
  }
  return parts.flatMap((part) => alternatives(pattern.slice(0, open) + part + pattern.slice(from)))
}

/** Where a character stands that is neither escaped nor in a class. */
function bare(pattern: string, wanted: string, start: number): number {
  for (let at = start; at < pattern.length; at++) {
    if (pattern[at] === '\\') at++
    else if (pattern[at] === '[') at = endOfClass(pattern, at)
    else if (pattern[at] === wanted) return at
  }
  return -1
}

function endOfClass(pattern: string, open: number): number {
  const first = /^\[[!^]?\]?/.exec(pattern.slice(open))?.[0].length ?? 1
  const end = pattern.indexOf(']', open + first)
  if (end < 0) throw new SyntaxError('a class without its end')
  return end
}

function translate(glob: string): string {
  let out = ''
  for (let at = 0; at < glob.length; ) {
    const rest = glob.slice(at)
    const char = rest[0] ?? ''
    const isStart = at === 0 || glob[at - 1] === '/'
    if (isStart && /^\*\*\//.test(rest)) {
      out += '(?:.*/)?'
      at += 3
    } else if (isStart && rest === '**') {
      out += at === 0 ? '.*' : '.+'
      at += 2
    } else if (char === '*') {
      out += '.*'
      at++
    } else if (char === '?') {
      out += '.'
      at++
    } else if (char === '[') {
      const end = endOfClass(glob, at)
      const members = glob.slice(at + 1, end)
      const negated = /^[!^]/.test(members)
      out += `[${negated ? '^' : ''}${(negated ? members.slice(1) : members).replaceAll(/[\\[\]^&~|]/g, '\\$&')}]`
      at = end + 1
    } else {
      const literal = char === '\\' ? rest[1] : char
      if (literal === undefined) throw new SyntaxError('an escape at the end')
      out += literal.replace(/[$()*+./?[\\\]^{|}]/, '\\$&')
      at += char === '\\' ? 2 : 1
    }
  }
  return out
}

const PIECES = [
  'a',
  'b',
  '/',
  '/',
  '*',
  '**',
  '**/',
  '/**',
  '/**/',
  '?',
  '[ab]',
  '[!a]',
  '[a-c]',
  '{a,b}',
  '{a/,**/b}',
]
const ODD_PIECES = ['{', '}', '[', ']', '\\', '\\*', ',', 'é', '.', '-', '^', '{a,{b,c}}', '[]a]']
const PARTS = ['a', 'b', 'c', 'ab', 'é', '.', '*', '😀', '-', ',', 'a.b', ']']

/** A pattern and paths that it may match, each as normalising leaves it. */
export const makeGlobCase = (random: Random): { pattern: string; paths: string[] } => ({
  pattern: random.list(7, () => random.pick(random.chance(0.15) ? ODD_PIECES : PIECES)).join(''),
  paths: Array.from({ length: 12 }, () => {
    const path = [random.pick(PARTS), ...random.list(3, () => random.pick(PARTS))].join('/')
    return random.chance(0.2) ? `/${path}` : path
  }),
})
