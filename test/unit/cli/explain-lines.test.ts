import { expect, test } from 'vitest'
import { wrap } from '../../../src/cli/explain/lines.ts'

test('lines break between words, and a word that is longer than a line is broken', () => {
  expect(wrap('one two three four', 9)).toEqual(['one two', '  three', '  four'])
  expect(wrap(`a ${'x'.repeat(20)}`, 10)).toEqual(['a', '  xxxxxxxx', '  xxxxxxxx', '  xxxx'])
  expect(wrap('', 10)).toEqual([''])
})

test('what stands in backticks stays in one piece, so that a command can be copied', () => {
  const command = "`chmod 600 '/home/o/my keys/kf2_Yw3NKWbEM2aRElRIu7JbT.json'`"
  expect(wrap(`locked: others can read it: run ${command}, then again`, 20)).toEqual([
    'locked: others can',
    '  read it: run',
    `  ${command},`,
    '  then again',
  ])
})

test('a backtick without its other half holds nothing together', () => {
  expect(wrap('one `two three', 9)).toEqual(['one `two', '  three'])
})
