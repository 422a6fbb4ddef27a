import { test } from 'vitest'
import { checkRandomTalks, seedsFrom } from './never-loops.ts'

test('whatever the tools answer, no call is made twice, none that is not on offer, and an answer comes', () => {
  checkRandomTalks(seedsFrom(1, 200))
})
