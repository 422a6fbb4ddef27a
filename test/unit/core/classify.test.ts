import { expect, test } from 'vitest'
import { tokenise } from '../../../src/core/classify.ts'

test('[EC 7] a text is split at everything that is neither letter nor digit', () => {
  expect(tokenise("Don't re-run API_v2, naïve—日本語 x²!")).toEqual([
    'don',
    't',
    're',
    'run',
    'api',
    'v2',
    'naïve',
    '日本語',
    'x²',
  ])
  expect(tokenise('İstanbul')).toHaveLength(1)
})
