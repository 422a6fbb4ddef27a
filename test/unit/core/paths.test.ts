import { describe, expect, test } from 'vitest'
import { baseName, normalisePath, spell } from '../../../src/core/paths.ts'

describe('[EC 8.1] paths in the form that globs are matched against', () => {
  test.each([
    // as sent, root, form
    ['src/a.ts', '/code', 'src/a.ts'],
    ['./src/a.ts', '/code', 'src/a.ts'],
    ['src/./a.ts', '/code', 'src/a.ts'],
    ['src//a.ts', '/code', 'src/a.ts'],
    ['src/lib/../a.ts', '/code', 'src/a.ts'],
    ['src\\a.ts', '/code', 'src/a.ts'],
    ['"src/a b.ts"', '/code', 'src/a b.ts'],
    ['secrets/', '/code', 'secrets'],
    ['/code/src/a.ts', '/code', 'src/a.ts'],
    ['/code/src/a.ts', '/code/', 'src/a.ts'],
    ['/code/../code/src/a.ts', '/code', 'src/a.ts'],
    ['/code', '/code', '.'],
    ['.', '/code', '.'],
    ['', '/code', '.'],
    ['/etc/passwd', '/', 'etc/passwd'],
    ['C:\\proj\\src\\a.ts', 'C:\\proj', 'src/a.ts'],
    ['c:\\proj\\src\\a.ts', 'C:\\proj', 'src/a.ts'],
    ['C:/proj/src/a.ts', 'c:\\proj', 'src/a.ts'],
    ['caf\u0065\u0301.ts', '/code', 'caf\u00e9.ts'],
    ['src/a.ts', '', 'src/a.ts'],
    ['/code/a.ts', '', '/code/a.ts'],
    ['', '', '.'],
  ])('%j under %j is %j', (path, root, expected) => {
    expect(normalisePath(path, root)).toBe(expected)
  })

  test.each([
    ['/etc/passwd', '/code', '/etc/passwd'],
    ['../x', '/code', '/x'],
    ['src/../../x', '/code', '/x'],
    ['/workshop/a.ts', '/code', '/workshop/a.ts'],
    ['../../../../x', '/code', '/x'],
    ['..\\x', 'C:\\proj', 'C:/x'],
    ['../x', '', '../x'],
    ['../x', 'somewhere', '../x'],
  ])('%j leads out of %j and never looks as if it did not: %j', (path, root, expected) => {
    expect(normalisePath(path, root)).toBe(expected)
  })

  test('a form stays as it is when it is put into the form again', () => {
    for (const path of ['a/b', '../a', '/x/y', '.', 'C:/a', '"q"', 'a\\b']) {
      const once = normalisePath(path, '/code/sub')
      expect(normalisePath(once, '/code/sub')).toBe(once)
    }
  })

  test('both names of a path are known, however it was written', () => {
    const both = { relative: '../lib/a.ts', absolute: '/code/lib/a.ts' }
    expect(spell('../lib/a.ts', '/code/app')).toEqual(both)
    expect(spell('/code/lib/a.ts', '/code/app')).toEqual(both)
    expect(spell('a.ts', 'app')).toEqual({ relative: 'a.ts', absolute: null })
  })

  test('the last component', () => {
    expect([baseName('a/b.ts'), baseName('b.ts'), baseName('/b')]).toEqual(['b.ts', 'b.ts', 'b'])
  })
})
