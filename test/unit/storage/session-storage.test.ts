import { describe, it } from 'vitest'
import { makeNodeSql } from '../../support/node/node-sql.ts'
import { STORAGE_RULES } from './session-contract.ts'

describe('session storage on SQLite in Node', () => {
  for (const { name, check } of STORAGE_RULES) it(name, () => check(makeNodeSql()))
})
