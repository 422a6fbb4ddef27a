import { describe, expect, test } from 'vitest'
import { callPaths } from '../../../src/core/transcript.ts'

describe('[D11] the paths that a tool call names', () => {
  test.each([
    [{ path: 'a.ts' }, ['a.ts']],
    [{ paths: ['a.ts', 'b.ts'] }, ['a.ts', 'b.ts']],
    [{ file_path: 'a.ts' }, ['a.ts']],
    [{ filePath: 'a.ts' }, ['a.ts']],
    [{ sourceFile: 'a.ts', target_dir: 'out' }, ['a.ts', 'out']],
    [{ filename: 'a.ts' }, ['a.ts']],
    [{ Folder: 'src' }, ['src']],
    [{ profile: 'a.ts', telepathy: 'b', content: 'c', old: 'd' }, []],
    [{ path: 7, paths: [1, null, { path: 'x' }] }, []],
    [{ path: 'x'.repeat(5000) }, []],
    [{}, []],
  ])('%j', (args, expected) => {
    expect(callPaths({ arguments: args })).toEqual(expected)
  })
})
