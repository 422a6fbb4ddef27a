import { describe, expect, test } from 'vitest'
import { compileGlob, foldCase, type Glob } from '../../../src/protocol/glob.ts'
import { agreement, globsIntersect } from '../../../src/protocol/glob-overlap.ts'
import { makeRandom } from '../../support/core/random.ts'

function glob(pattern: string, ignoreCase = false): Glob {
  const compiled = compileGlob(pattern, { ignoreCase })
  if ('invalid' in compiled) throw new Error(`${pattern} is invalid: ${compiled.invalid}`)
  return compiled.glob
}

describe('[EC 8.2] what two patterns have in common', () => {
  test.each([
    // one, other, characters that both spell in a path that both match
    ['.env*', '**/.env', 2],
    ['cred*', '**/credentials.json', 2],
    ['.*', '**/.env', 1],
    ['test*', '**/*.pem', 0],
    ['test*', '**/.env', 0],
    ['test', '**/.env', null],
    ['a/b', 'a/c', null],
    ['src/**', '**/key', 0],
    ['[ab]x', '[bc]x', 2],
    ['[a-f]', '[g-z]', null],
    ['[!a]', 'a', null],
    ['[!a]', '[!b]', 0],
    ['{a,b}/x', 'b/*', 1],
    ['a/**/b', 'a/b', 2],
  ])('%j and %j: %s', (a, b, expected) => {
    expect(agreement(glob(a), glob(b))).toBe(expected)
    expect(agreement(glob(b), glob(a))).toBe(expected)
  })

  test('[D17] two patterns full of wildcards are compared in bounded time', () => {
    const many = `${'*a'.repeat(15)}*`
    expect(globsIntersect(glob(many), glob('*b'.repeat(15)))).toBe(true)
    expect(globsIntersect(glob(`${many}x`), glob(`${many}y`))).toBe(false)
  })

  test('whatever path two patterns both match shows that they intersect', () => {
    const random = makeRandom(5)
    const pieces = ['a', 'b', '/', '*', '**/', '?', '[ab]', '[!a]', '{a,b}']
    const letters = ['a', 'b', '/']
    let shared = 0
    const missed: string[] = []
    for (let i = 0; i < 2000; i++) {
      const [a, b] = [0, 1].map(() => random.list(5, () => random.pick(pieces)).join(''))
      for (let j = 0; j < 6; j++) {
        const path = random.list(5, () => random.pick(letters)).join('')
        if (!glob(a ?? '').matches(path) || !glob(b ?? '').matches(path)) continue
        shared++
        if (!globsIntersect(glob(a ?? ''), glob(b ?? ''))) missed.push(`${a} and ${b} on ${path}`)
      }
    }
    expect(missed).toEqual([])
    expect(shared).toBeGreaterThan(200)
  })
})

describe('[EC 8.2] further readings for privacy', () => {
  test.each([
    ['secrets', 'secrets/a/b', true],
    ['secrets', 'secrets', false],
    ['**/.ssh', 'home/.ssh/id', true],
    ['a*', 'ab/c', true],
    ['a/*.d', 'a/b.d/c', true],
    ['a/*.d', 'a/b.dc/c', false],
    ['{a,b/c}', 'b/c/d', true],
  ])('%j matches a folder in which %j lies: %s', (pattern, path, expected) => {
    expect(glob(pattern).matchesFolderOf(path)).toBe(expected)
  })

  test.each([
    ['Straße/*', 'STRASSE/x'],
    ['[A-Z]x', 'aX'],
    ['.ENV', '.env'],
    ['Σ*', 'ς1'],
    ['Kelvin', '\u212aELVIN'],
  ])('in either letter case %j matches %j', (pattern, path) => {
    expect(glob(pattern, true).matches(foldCase(path))).toBe(true)
  })
})
