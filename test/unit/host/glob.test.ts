import { describe, expect, test } from 'vitest'
import { compileGlob, coveredBy } from '../../../src/host/glob.ts'

const matches = (pattern: string, path: string): boolean | string => {
  const glob = compileGlob(pattern)
  return typeof glob === 'string' ? glob : glob(path)
}

describe('[EC 8.2] globs', () => {
  test.each([
    ['*.pem', 'certs/a.pem', true],
    ['src/*.rs', 'src/a/b.rs', true],
    ['secrets/**', 'secrets/a/b', true],
    ['secrets/**', 'secrets', false],
    ['**/.env', '.env', true],
    ['**/.env', 'app/.env', true],
    ['**/.env', 'app/x.env', false],
    ['.env', 'app/.env', false],
    ['a/**/b', 'a/b', true],
    ['a/**/b', 'a/x/y/b', true],
    ['a/**/b', 'a/xb', false],
    ['a**b', 'axxb', true],
    ['{a,b}.ts', 'b.ts', true],
    ['{a,b}.ts', 'c.ts', false],
    ['[a-c].ts', 'b.ts', true],
    ['[!a-c].ts', 'b.ts', false],
    ['[]x].ts', '].ts', true],
    ['\\*.ts', '*.ts', true],
    ['\\*.ts', 'a.ts', false],
    ['a?c', 'a/c', true],
    ['A.ts', 'a.ts', false],
  ])('%s on %s is %s', (pattern, path, expected) => {
    expect(matches(pattern, path)).toBe(expected)
  })

  test.each(['[a', '{a', 'a}', 'a\\', '[c-a]', 'x'.repeat(257), '*a'.repeat(17)])(
    '%s is invalid',
    (pattern) => {
      expect(matches(pattern, 'x')).toEqual(expect.any(String))
    },
  )

  test('[D17] a pathological glob is matched in linear time', () => {
    const started = performance.now()
    expect(matches('*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*b', 'a'.repeat(5000))).toBe(false)
    expect(performance.now() - started).toBeLessThan(1000)
  })

  test('privacy fails closed: an invalid pattern covers everything, and a bare name covers it in every folder', () => {
    expect(coveredBy(['[a'])('any/thing.txt')).toBe(true)
    expect(coveredBy(['id_rsa'])('home/.ssh/id_rsa')).toBe(true)
    expect(coveredBy(['x/id_rsa'])('home/x/id_rsa')).toBe(false)
    expect(coveredBy([])('a')).toBe(false)
  })
})
