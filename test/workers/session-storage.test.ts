import { describe, it } from 'vitest'
import { inside } from '../support/workers/session-object.ts'
import { STORAGE_RULES } from '../unit/storage/session-contract.ts'

describe('session storage in an object', () => {
  // Each rule has an object of its own, which has no tables until the rule makes them.
  for (const { name, check } of STORAGE_RULES) it(name, () => inside(name, check))
})
