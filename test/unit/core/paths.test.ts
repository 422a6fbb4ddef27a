import { describe, expect, test } from 'vitest'
import { baseName, normalisePath, spell } from '../../../src/core/paths.ts'

describe('[EC 8.1] paths in the form that globs are matched against', () => {
  test.each([
    // as sent, root, form
    ['src/a.ts', '/work', 'src/a.ts'],
    ['./src/a.ts', '/work', 'src/a.ts'],
    ['src/./a.ts', '/work', 'src/a.ts'],
    ['src//a.ts', '/work', 'src/a.ts'],
    ['src/lib/../a.ts', '/work', 'src/a.ts'],
    ['src\\a.ts', '/work', 'src/a.ts'],
    ['"src/a b.ts"', '/work', 'src/a b.ts'],
    ['secrets/', '/work', 'secrets'],
    ['/work/src/a.ts', '/work', 'src/a.ts'],
    ['/work/src/a.ts', '/work/', 'src/a.ts'],
    ['/work/../work/src/a.ts', '/work', 'src/a.ts'],
    ['/work', '/work', '.'],
    ['.', '/work', '.'],
    ['', '/work', '.'],
    ['/etc/passwd', '/', 'etc/passwd'],
    ['C:\\proj\\src\\a.ts', 'C:\\proj', 'src/a.ts'],
    ['caf\u0065\u0301.ts', '/work', 'caf\u00e9.ts'],
    ['src/a.ts', '', 'src/a.ts'],
    ['/work/a.ts', '', '/work/a.ts'],
    ['', '', '.'],
  ])('%j under %j is %j', (path, root, expected) => {
    expect(normalisePath(path, root)).toBe(expected)
  })

  test.each([
    ['/etc/passwd', '/work', '/etc/passwd'],
    ['../x', '/work', '/x'],
    ['src/../../x', '/work', '/x'],
    ['/workshop/a.ts', '/work', '/workshop/a.ts'],
    ['../../../../x', '/work', '/x'],
    ['..\\x', 'C:\\proj', 'C:/x'],
    ['../x', '', '../x'],
    ['../x', 'somewhere', '../x'],
  ])('%j leads out of %j and never looks as if it did not: %j', (path, root, expected) => {
    expect(normalisePath(path, root)).toBe(expected)
  })

  test('a form stays as it is when it is put into the form again', () => {
    for (const path of ['a/b', '../a', '/x/y', '.', 'C:/a', '"q"', 'a\\b']) {
      const once = normalisePath(path, '/work/sub')
      expect(normalisePath(once, '/work/sub')).toBe(once)
    }
  })

  test('both names of a path are known, however it was written', () => {
    const both = { relative: '../lib/a.ts', absolute: '/work/lib/a.ts' }
    expect(spell('../lib/a.ts', '/work/app')).toEqual(both)
    expect(spell('/work/lib/a.ts', '/work/app')).toEqual(both)
    expect(spell('a.ts', 'app')).toEqual({ relative: 'a.ts', absolute: null })
  })

  test('the last component', () => {
    expect([baseName('a/b.ts'), baseName('b.ts'), baseName('/b')]).toEqual(['b.ts', 'b.ts', 'b'])
  })
})
