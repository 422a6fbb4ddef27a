import { test } from 'vitest'
import { checkRandomTalks, seedsFrom } from './never-loops.ts'

test('whatever the tools answer, no call is made twice and an answer comes, over many more conversations', {
  timeout: 120_000,
}, () => {
  checkRandomTalks(seedsFrom(10_000, 20_000))
})
