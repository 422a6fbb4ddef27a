import { describe, expect, test } from 'vitest'
import { diffParts, diffPaths, shownPaths } from '../../../src/core/diff-paths.ts'

const diff = (...lines: string[]): string => `${lines.join('\n')}\n`

describe('[EC 8.1] paths for routing', () => {
  test.each([
    ['one file', diff('diff --git a/src/a.ts b/src/a.ts', '@@ -1 +1 @@', '-x', '+y'), ['src/a.ts']],
    ['headers alone', diff('diff --git a/a.ts b/a.ts', 'diff --git a/b.ts b/b.ts'), ['a.ts', 'b.ts']],
    ['the new name of a rename', diff('diff --git a/old.ts b/new.ts'), ['new.ts']],
    ['a name with a space', diff('diff --git a/a b.ts b/a b.ts'), ['a b.ts']],
    ['a line that only mentions a diff', diff('+diff --git a/x b/x'), []],
    ['a quoted name', diff('diff --git "a/caf\\303\\251.ts" "b/caf\\303\\251.ts"'), ['café.ts']],
    ['line ends of Windows', 'diff --git a/a.ts b/a.ts\r\n', ['a.ts']],
    ['nothing', '', []],
  ])('%s', (_, text, expected) => {
    expect(diffPaths(text)).toEqual(expected)
  })
})

describe('[EC 9] every path that a diff may show content of', () => {
  test.each([
    ['one file', diff('diff --git a/src/a.ts b/src/a.ts'), ['src/a.ts']],
    ['a name with a space', diff('diff --git a/a b.ts b/a b.ts'), ['a b.ts']],
    ['no prefixes', diff('diff --git secrets/key secrets/key'), ['secrets/key']],
    ['other prefixes', diff('diff --git i/secrets/key w/secrets/key'), ['secrets/key']],
    ['a folder of one letter, without prefixes', diff('diff --git a/x a/x'), ['a/x']],
    ['a quoted name', diff('diff --git "a/t\\303\\274r\\t\\"x\\"" "b/t\\303\\274r\\t\\"x\\""'), ['tür\t"x"']],
    ['a merge', diff('diff --cc secrets/key'), ['secrets/key']],
    [
      'the old name of a rename',
      diff('rename from secrets/key', 'rename to public/key'),
      ['secrets/key', 'public/key'],
    ],
    ['a copy', diff('copy from "secrets/\\303\\274"', 'copy to b'), ['secrets/ü', 'b']],
  ])('%s', (_, text, expected) => {
    expect(shownPaths(text)).toEqual(expected)
  })

  test.each([
    ['both names of a rename', diff('diff --git a/secrets/key b/public/key'), ['secrets/key', 'public/key']],
    ['a plain unified diff', diff('--- a/secrets/key\t2026-01-01', '+++ b/secrets/key'), ['secrets/key']],
    ['a plain diff without prefixes', diff('--- secrets/key', '+++ secrets/key'), ['secrets/key']],
    ['a deleted file', diff('--- a/secrets/key', '+++ /dev/null'), ['secrets/key']],
    [
      'a rename with spaces',
      diff('diff --git a/my secrets/key b/other key'),
      ['my secrets/key', 'other key'],
    ],
    ['sides with names of their own', diff('diff --git old/secrets/key new/secrets/key'), ['secrets/key']],
    ['a diff with context', diff('*** secrets/key\t2026-01-01', '--- public\t2026-01-01'), ['secrets/key']],
    [
      'times behind a blank',
      diff('--- secrets/key 2020-01-01', '+++ secrets/key (working copy)'),
      ['secrets/key'],
    ],
    ['diff -r', diff('diff -r secrets/key other/secrets/key'), ['secrets/key']],
    ['the index line of other tools', diff('Index: secrets/key'), ['secrets/key']],
    ['a submodule', diff('Submodule secrets/key 1234..5678:'), ['secrets/key']],
    ['colours', diff('\u001b[1mdiff --git a/secrets/key b/secrets/key\u001b[m'), ['secrets/key']],
  ])('%s, among other readings', (_, text, expected) => {
    expect(shownPaths(text)).toEqual(expect.arrayContaining(expected))
    expect(shownPaths(text)).not.toContain('/dev/null')
  })

  test('a text that names no file may be of any', () => {
    expect(shownPaths('+SECRET=1\n')).toBe(null)
    expect(shownPaths(' \n')).toEqual([])
  })
})

describe('[EC 13] the files that a diff is about, for telling', () => {
  const names = (text: string) => diffParts(text).map((part) => part.names)

  test.each([
    [
      'one file',
      diff(
        'diff --git a/src/x.ts b/src/x.ts',
        '--- a/src/x.ts',
        '+++ b/src/x.ts',
        '@@ -1 +1 @@',
        '--- a/no',
        '+++ b/no',
      ),
      [['src/x.ts']],
    ],
    ['a header alone', diff('diff --git a/src/x.ts b/src/x.ts'), [['src/x.ts']]],
    [
      'both names of a rename',
      diff(
        'diff --git a/my first note.md b/my second note.md',
        'rename from my first note.md',
        'rename to my second note.md',
      ),
      [['my first note.md', 'my second note.md']],
    ],
    ['a new file', diff('diff --git a/n b/n', '--- /dev/null', '+++ b/n'), [['n']]],
    ['a merge', diff('diff --cc a.ts'), [['a.ts']]],
    ['two files', diff('diff --git a/a b/a', 'diff --git a/b b/b'), [['a'], ['b']]],
    ['no file', '+SECRET=1\n', [[]]],
  ])('%s', (_, text, expected) => {
    expect(names(text)).toEqual(expected)
  })
})

test('[D17] a header that can be read in too many ways names nothing, and is of any file', () => {
  const hostile = `diff --git ${'a '.repeat(100)}b`
  expect(shownPaths(hostile)).toBeNull()
  expect(diffParts(hostile)).toEqual([{ text: hostile, paths: null, names: [] }])
  expect(shownPaths(`diff --git a/${'x'.repeat(9000)} b/y`)).toBeNull()
})
