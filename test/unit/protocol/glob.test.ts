import { describe, expect, test } from 'vitest'
import { compileGlob, MAX_GLOB_CHARS, MAX_GLOB_WILDCARDS } from '../../../src/protocol/glob.ts'
import { makeRandom } from '../../support/core/random.ts'

const matches = (pattern: string, path: string): boolean => {
  const compiled = compileGlob(pattern)
  if ('invalid' in compiled) throw new Error(`${pattern} is invalid: ${compiled.invalid}`)
  return compiled.glob.matches(path)
}

const isInvalid = (pattern: string): boolean => 'invalid' in compileGlob(pattern)

type Row = [pattern: string, path: string, matches: boolean]

const TABLES: Record<string, Row[]> = {
  'the whole path has to match, in its own case': [
    ['src/a.ts', 'src/a.ts', true],
    ['src/a.ts', 'src/a.tsx', false],
    ['src/a.ts', 'lib/src/a.ts', false],
    ['src/A.ts', 'src/a.ts', false],
    ['[A-Z].ts', 'a.ts', false],
  ],
  '`*` and `?` cross a slash': [
    ['*.pem', 'certs/a.pem', true],
    ['src/*.rs', 'src/a/b.rs', true],
    ['*', 'a/b/c', true],
    ['*', '', true],
    ['a*', 'a', true],
    ['a?b', 'a/b', true],
    ['a?b', 'ab', false],
    ['a?b', 'axxb', false],
    ['?', 'é', true],
    ['?', '😀', true],
  ],
  'a leading `**/` stands for any folders or none': [
    ['**/.env', '.env', true],
    ['**/.env', 'app/.env', true],
    ['**/.env', 'a/b/.env', true],
    ['**/.env', '/etc/.env', true],
    ['**/.env', 'app.env', false],
    ['**/.env', 'app/x.env', false],
    ['**/.env', '.env/x', false],
  ],
  'a `/**/` in the middle stands for any folders or none': [
    ['a/**/b', 'a/b', true],
    ['a/**/b', 'a/x/b', true],
    ['a/**/b', 'a/x/y/b', true],
    ['a/**/b', 'a/xb', false],
    ['a/**/b', 'ab', false],
    ['a/**/**/b', 'a/b', true],
    ['a/**/**/b', 'a/x/b', true],
  ],
  'a trailing `/**` stands for everything below, at least one component': [
    ['secrets/**', 'secrets/a', true],
    ['secrets/**', 'secrets/a/b.txt', true],
    ['secrets/**', 'secrets', false],
    ['secrets/**', 'other/secrets/a', false],
    ['**', 'a/b', true],
  ],
  'elsewhere `**` is a `*`': [
    ['a**b', 'ab', true],
    ['a**b', 'a/x/b', true],
    ['a**/b', 'axx/b', true],
    ['a**/b', 'ab', false],
    ['a/**b', 'a/xb', true],
    ['a/**b', 'a/x/b', true],
    ['a/***/b', 'a/b', false],
  ],
  'classes take one character of them, or none of them': [
    ['[a-c].ts', 'b.ts', true],
    ['[a-c].ts', 'd.ts', false],
    ['[!a-c].ts', 'd.ts', true],
    ['[!a-c].ts', 'b.ts', false],
    ['[^a-c].ts', 'd.ts', true],
    ['[]x].ts', '].ts', true],
    ['[!]x].ts', '].ts', false],
    ['[a-].ts', '-.ts', true],
    ['[-a].ts', '-.ts', true],
    ['[*].ts', '*.ts', true],
    ['[*].ts', 'a.ts', false],
    ['[{].ts', '{.ts', true],
    ['[α-γ]', 'β', true],
    ['[a-c]', 'bb', false],
  ],
  'braces give alternatives, also one inside another': [
    ['{a,b}.ts', 'a.ts', true],
    ['{a,b}.ts', 'b.ts', true],
    ['{a,b}.ts', 'c.ts', false],
    ['{a,b}.ts', '{a,b}.ts', false],
    ['x{,y}', 'x', true],
    ['x{,y}', 'xy', true],
    ['{src,test}/**/*.{ts,js}', 'test/a/b.js', true],
    ['{src,test}/**/*.{ts,js}', 'lib/a/b.js', false],
    ['{a{b,c},d}', 'ac', true],
    ['{a{b,c},d}', 'd', true],
    ['{a{b,c},d}', 'ad', false],
    ['{[,],x}', ',', true],
    ['{\\,,x}', ',', true],
    ['{**/,}.env', 'a/.env', true],
  ],
  'a backslash takes the next character as it is': [
    ['\\*.ts', '*.ts', true],
    ['\\*.ts', 'a.ts', false],
    ['\\[a]', '[a]', true],
    ['\\{a,b\\}', '{a,b}', true],
    ['a\\\\b', 'a\\b', true],
  ],
  'without a wildcard a pattern is that one path': [
    ['.env', '.env', true],
    ['.env', 'app/.env', false],
    ['', '', true],
    ['', 'a', false],
  ],
  'one letter in two Unicode spellings is one letter': [
    ['cafe\u0301/*', 'caf\u00e9/x', true],
    ['caf\u00e9/*', 'caf\u00e9/x', true],
  ],
}

describe.each(Object.entries(TABLES))('[EC 8.2] %s', (_, rows) => {
  test.each(rows)('%j on %j is %s', (pattern, path, expected) => {
    expect(matches(pattern, path)).toBe(expected)
  })
})

describe('[EC 8.2] what is no pattern', () => {
  test.each(['[a', '[]', '[!]', '{a', '{a,{b}', 'a}', '}{', 'a\\', '{a\\', '[c-a]', '{[a,b}'])(
    '%j is invalid',
    (pattern) => {
      expect(isInvalid(pattern)).toBe(true)
    },
  )

  test('braces that multiply beyond 64 alternatives are invalid', () => {
    expect(isInvalid('{a,b}'.repeat(6))).toBe(false)
    expect(isInvalid('{a,b}'.repeat(7))).toBe(true)
  })
})

describe('[D17] bounds', () => {
  test('at most 256 characters', () => {
    expect(isInvalid('a'.repeat(MAX_GLOB_CHARS))).toBe(false)
    expect(isInvalid('a'.repeat(MAX_GLOB_CHARS + 1))).toBe(true)
    expect(isInvalid('😀'.repeat(MAX_GLOB_CHARS))).toBe(false)
  })

  test.each(['*a', '?a', '[x]a', '**/'])('at most 16 wildcards: %s', (wildcard) => {
    expect(isInvalid(wildcard.repeat(MAX_GLOB_WILDCARDS))).toBe(false)
    expect(isInvalid(wildcard.repeat(MAX_GLOB_WILDCARDS + 1))).toBe(true)
  })

  test('an escaped wildcard is none', () => {
    expect(isInvalid('\\*'.repeat(MAX_GLOB_WILDCARDS + 1))).toBe(false)
  })

  // Whatever tries one place after the other and goes back would not come to an end on any of these.
  test.each([
    ['*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*b', 'a'],
    ['*?a*?a*?a*?a*?a*?a*?a*?b', 'a'],
    ['**/**/**/**/**/**/**/**/b', 'a/'],
    ['**/a/**/a/**/a/**/a/**/a/**/a/**/a/**/b', 'a/'],
    ['?*?*?*?*?*?*?*[b]', 'a'],
    ['*[a]*[a]*[a]*[a]*[a]*[a]*[a]*[b]', 'a'],
    ['{*a,**/a}{*a,**/a}*a*a*a*a*a*a*b', 'a'],
    ['*😀*😀*😀*😀*😀*😀*😀*😀*b', '😀'],
  ])('a pathological glob comes to an end on a path of 20,000 characters: %s', (pattern, unit) => {
    const path = unit.repeat(20_000 / unit.length)
    // The last character is one that the pattern needs, or the path would be refused by its end alone.
    expect(matches(pattern, `${path}x b`)).toBe(matches(pattern, `${unit.repeat(40)}x b`))
    expect(matches(pattern, `${path}x`)).toBe(false)
  })
})

describe('[EC 8.2] against the same rules written as regular expressions', () => {
  /** The rules as a backtracking expression: slow on bad patterns, but plain to read. Patterns without braces only. */
  const reference = (pattern: string): RegExp => {
    const source = pattern
      .split(/(\*\*+|\*|\?|\[!?\]?[^\]]*\])/)
      .map((piece, index, pieces) => {
        const before = pieces.slice(0, index).join('')
        const after = pieces.slice(index + 1).join('')
        if (piece === '**' && (before === '' || before.endsWith('/')) && after.startsWith('/'))
          return '(?:.*/)?'
        if (/^\*+$/.test(piece)) return '.*'
        if (piece === '?') return '.'
        if (piece.startsWith('[')) return piece.replace('[!', '[^')
        return piece.replace(/[.]/g, '\\.')
      })
      .join('')
      // The slash behind a component `**` belongs to it.
      .replaceAll('(?:.*/)?/', '(?:.*/)?')
    return new RegExp(`^${source}$`, 'su')
  }

  const PIECES = ['a', 'b', '.', '/', '/', '*', '**', '**/', '/**/', '/**', '?', '[ab]', '[!a]']
  const LETTERS = ['a', 'b', '.', '/']

  test('3,000 random patterns answer on random paths as a regular expression does', () => {
    const random = makeRandom(17)
    let hits = 0
    const differing: [pattern: string, path: string, answer: boolean][] = []
    for (let i = 0; i < 3000; i++) {
      const pattern = random.list(6, () => random.pick(PIECES)).join('')
      const expected = reference(pattern)
      for (let j = 0; j < 8; j++) {
        const path = random.list(6, () => random.pick(LETTERS)).join('')
        const hit = expected.test(path)
        if (hit) hits++
        const answer = matches(pattern, path)
        if (answer !== hit) differing.push([pattern, path, answer])
      }
    }
    expect(differing).toEqual([])
    expect(hits).toBeGreaterThan(2000)
  })
})
