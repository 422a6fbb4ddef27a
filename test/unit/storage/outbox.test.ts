import { describe, expect, it } from 'vitest'
import { drain, type OutboxDeps, retryDelayMs, retryDelaySinceMs } from '../../../src/storage/outbox.ts'

/** An outbox over an array; `fail` says what becomes of each write. */
function makeOutbox(owed: number[], fail: (row: number) => Error | null = () => null, wanted = true) {
  const log: string[] = []
  const deps: OutboxDeps<number> = {
    next: () => owed[0] ?? null,
    write: async (row) => {
      log.push(`write ${row}`)
      const error = fail(row)
      if (error) throw error
    },
    written: (row) => {
      owed.shift()
      log.push(`written ${row}`)
    },
    stillWanted: async () => wanted,
    discard: () => {
      owed.length = 0
      log.push('discarded')
    },
    failed: (error) => log.push(`failed: ${error instanceof Error ? error.message : error}`),
  }
  return { deps, log, owed }
}

describe('draining the outbox', () => {
  it('[D26] sends batch after batch in order until nothing is owed', async () => {
    const { deps, log } = makeOutbox([1, 2])
    await drain(deps)
    expect(log).toEqual(['write 1', 'written 1', 'write 2', 'written 2'])
  })

  it('[D26] stops at the first failure, records it and loses nothing', async () => {
    const { deps, log, owed } = makeOutbox([1, 2, 3], (row) => (row === 2 ? new Error('down') : null))
    await drain(deps)
    expect(log).toEqual(['write 1', 'written 1', 'write 2', 'failed: down'])
    expect(owed).toEqual([2, 3])
  })

  it('[D26] discards what nobody wants any more', async () => {
    const { deps, log } = makeOutbox([1, 2], () => new Error('no such session'), false)
    await drain(deps)
    expect(log).toEqual(['write 1', 'discarded'])
  })

  it('[D26] does not discard because it could not ask', async () => {
    const { deps, log, owed } = makeOutbox([1], () => new Error('down'))
    await drain({ ...deps, stillWanted: () => Promise.reject(new Error('down, too')) })
    expect(log).toEqual(['write 1', 'failed: down, too'])
    expect(owed).toEqual([1])
  })

  it('[D26] is bounded: a backlog takes several calls', async () => {
    const { deps, owed } = makeOutbox(Array.from({ length: 50 }, (_, n) => n))
    await drain(deps)
    const left = owed.length
    expect(left).toBeGreaterThan(0)
    await drain(deps)
    expect(owed.length).toBeLessThan(left)
  })
})

describe('the wait after a failure', () => {
  it('[D26] doubles from one second, up to five minutes', () => {
    expect([1, 2, 3, 9].map(retryDelayMs)).toEqual([1000, 2000, 4000, 256_000])
    expect(retryDelayMs(10)).toBe(300_000)
    expect(retryDelayMs(1_000_000)).toBe(300_000)
  })
})

describe('the wait of work that no count is kept of', () => {
  it('[D26] is as long as it has failed so far, from a second to five minutes', () => {
    const waits = [0, 400, 1_000, 30_000, 299_999, 300_000, 86_400_000].map((ago) =>
      retryDelaySinceMs(1_000_000_000 - ago, 1_000_000_000),
    )
    expect(waits).toEqual([1_000, 1_000, 1_000, 30_000, 299_999, 300_000, 300_000])
  })

  it('[D26] is a second when the clock went back', () => {
    expect(retryDelaySinceMs(2_000, 1_000)).toBe(1_000)
  })
})
