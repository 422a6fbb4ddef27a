import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { jsonMembers } from '../../../../src/core/remote/json-members.ts'
import {
  CUT_MARK,
  label,
  toolDetail,
  toolDetailOfJson,
  toolName,
} from '../../../../src/core/remote/labels.ts'

describe('what a tool is about', () => {
  it.each([
    [{ content: 'x', path: 'src/a.ts' }, 'src/a.ts'],
    [{ command: 'npm test\n  --watch' }, 'npm test --watch'],
    [{ argv: ['git', 'status'] }, 'git status'],
    [{ depth: 3, deep: { path: 'no' }, words: 'first text' }, 'first text'],
    [{ path: '   ', command: 'ls' }, 'ls'],
    [{ depth: 3, list: [1, 2] }, undefined],
    [{}, undefined],
  ])('[RF 1] of %j is %j', (args, detail) => {
    expect(toolDetail(args)).toBe(detail)
    expect(toolDetailOfJson(JSON.stringify(args))).toBe(detail)
  })

  it('[RF 1] is one line of 512 bytes at most, also in a frame, and says that it was cut', () => {
    for (const text of [
      'x'.repeat(10_000),
      '"'.repeat(600),
      '€'.repeat(200),
      '\u0001'.repeat(600) + '\\'.repeat(400),
    ]) {
      const detail = toolDetail({ path: text }) ?? ''
      expect(JSON.stringify(detail).length).toBeLessThanOrEqual(514)
      expect(new TextEncoder().encode(detail).length).toBeLessThanOrEqual(512)
      expect(detail.endsWith(CUT_MARK)).toBe(true)
      expect(detail).not.toMatch(/\p{Cc}/u)
    }
    expect(toolDetail({ path: 'x'.repeat(512) })).toBe('x'.repeat(512))
  })

  it('[RF 1] names of tools are cut, too: a model can make up any', () => {
    expect(toolName('read_file')).toBe('read_file')
    expect(toolName('n'.repeat(4000))).toHaveLength(126)
  })

  it('[RF 19] characters are counted as such where a label is limited by them', () => {
    expect(label('😀'.repeat(160), 1000, 160)).toBe('😀'.repeat(160))
    expect([...label('😀'.repeat(161), 1000, 160)]).toHaveLength(160)
  })
})

describe('the members of a JSON object without its end', () => {
  it('[U44] are read as far as they go', () => {
    const json = '{"path": "a\\"b.ts", "n": 12, "list": [1, {"x": "]"}], "content": "line\\nnext'
    expect(jsonMembers(json)).toEqual({ path: 'a"b.ts', n: 12, list: [1, { x: ']' }], content: 'line\nnext' })
  })

  it.each(['', '{', '{"a', '{"a"', '{"a":', '{"a":1', '[1,2', 'null', '"text"', '{"a":tru', '{,', '{"a" 1}'])(
    '[U44] %j has none that can be read',
    (json) => expect(jsonMembers(json)).toEqual({}),
  )

  it('[U44] wherever the end is missing, nothing is read that is not there', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue()), fc.nat(400), (object, end) => {
        const json = JSON.stringify(object)
        const members = jsonMembers(json.slice(0, end))
        const whole: Record<string, unknown> = JSON.parse(json)
        for (const [key, value] of Object.entries(members)) {
          const real = whole[key]
          if (typeof real === 'string' && typeof value === 'string') expect(real.startsWith(value)).toBe(true)
          else expect(value).toEqual(real)
        }
      }),
    )
  })
})
