import { readFileSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { executionWireHashes, remoteWireHashes } from '../../../scripts/lib/wire-hash.ts'
import { EXECUTION_WIRE_HISTORY, REMOTE_WIRE_HISTORY, ROUTER_VERSION } from '../../../src/protocol/version.ts'

describe('versions', () => {
  test('[EC 2.1] the reported release is that of package.json', () => {
    const text = readFileSync(path.join(import.meta.dirname, '../../../package.json'), 'utf8')
    expect(z.object({ version: z.string() }).parse(JSON.parse(text)).version).toBe(ROUTER_VERSION)
  })

  const wires = [
    { name: 'execution', history: EXECUTION_WIRE_HISTORY, hashes: executionWireHashes },
    { name: 'remote', history: REMOTE_WIRE_HISTORY, hashes: remoteWireHashes },
  ]

  test.each(wires)(
    'the $name wire is that of the last line of its history; a change is written there with these hashes',
    ({ history, hashes }) => {
      const { requests, responses } = hashes()
      expect(history.at(-1)).toMatchObject({ requests, responses })
    },
  )

  test.each(wires)('the history of the $name wire counts from 1 without a gap', ({ history }) => {
    expect(history.map((line) => line.version)).toEqual(history.map((_, i) => i + 1))
  })
})
