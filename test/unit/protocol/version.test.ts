import { readFileSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { executionWireHashes } from '../../../scripts/lib/wire-hash.ts'
import { EXECUTION_WIRE_HISTORY, ROUTER_VERSION } from '../../../src/protocol/version.ts'

describe('versions', () => {
  test('[EC 2.1] the reported release is that of package.json', () => {
    const text = readFileSync(path.join(import.meta.dirname, '../../../package.json'), 'utf8')
    expect(z.object({ version: z.string() }).parse(JSON.parse(text)).version).toBe(ROUTER_VERSION)
  })

  test('the execution wire is that of the last line of its history; a change is written there with these hashes', () => {
    const { requests, responses } = executionWireHashes()
    expect(EXECUTION_WIRE_HISTORY.at(-1)).toMatchObject({ requests, responses })
  })

  test('the history counts from 1 without a gap', () => {
    expect(EXECUTION_WIRE_HISTORY.map((line) => line.version)).toEqual(
      EXECUTION_WIRE_HISTORY.map((_, i) => i + 1),
    )
  })
})
