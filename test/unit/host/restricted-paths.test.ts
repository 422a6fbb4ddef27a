import { expect, test } from 'vitest'
import { coveredBy } from '../../../src/host/restricted-paths.ts'

test.each([
  ['[EC 8.2] an invalid pattern covers everything', '[a', 'any/thing.txt', true],
  ['a bare name covers it in every folder', 'id_rsa', 'home/.ssh/id_rsa', true],
  ['a path is that path', 'x/id_rsa', 'home/x/id_rsa', false],
  ['[U37] a folder covers what is in it, as in the router', 'secrets', 'secrets/deep/key', true],
  ['an absolute pattern covers the paths below the root', '/w/config/**', 'config/a.json', true],
])('%s', (_, pattern, path, covered) => {
  expect(coveredBy([pattern], '/w')(path)).toBe(covered)
})

test('no pattern covers nothing', () => {
  expect(coveredBy([], '/w')('a')).toBe(false)
})
