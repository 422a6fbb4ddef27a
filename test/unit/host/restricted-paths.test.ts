import { expect, test } from 'vitest'
import { coveredBy } from '../../../src/host/restricted-paths.ts'

test('[EC 8.2] an invalid pattern covers everything, and a bare name covers it in every folder', () => {
  expect(coveredBy(['[a'])('any/thing.txt')).toBe(true)
  expect(coveredBy(['id_rsa'])('home/.ssh/id_rsa')).toBe(true)
  expect(coveredBy(['x/id_rsa'])('home/x/id_rsa')).toBe(false)
  expect(coveredBy([])('a')).toBe(false)
})
