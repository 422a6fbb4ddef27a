/** What carries rows from an object to D1. Rows are read at the last moment, so a flush always sends the newest state. */
export type OutboxDeps<Batch> = {
  /** The oldest rows that are still owed, at most one batch of them; null when nothing is. */
  next(): Batch | null
  write(batch: Batch): Promise<void>
  /** Records that D1 has the batch. */
  written(batch: Batch): void
  /** False once the session is gone from D1: its late rows have nowhere to go. */
  stillWanted(): Promise<boolean>
  discard(): void
  /** Records a failed attempt; the caller decides when to try again. */
  failed(error: unknown): void
}

/** A backlog is drained over several calls rather than in one endless one. */
const MAX_BATCHES_PER_DRAIN = 20

/** Sends what is owed. Never throws: a failure is recorded and nothing is lost (D26). */
export async function drain<Batch>(deps: OutboxDeps<Batch>): Promise<void> {
  try {
    for (let sent = 0; sent < MAX_BATCHES_PER_DRAIN; sent++) {
      const batch = deps.next()
      if (batch === null) return
      try {
        await deps.write(batch)
      } catch (error) {
        // A row of a session that D1 no longer has cannot be stored, however often it is tried.
        if (await deps.stillWanted()) throw error
        deps.discard()
        return
      }
      deps.written(batch)
    }
  } catch (error) {
    deps.failed(error)
  }
}

/** First wait after a failed flush. */
const FIRST_RETRY_MS = 1_000
/** Longest wait between flushes while D1 is down. */
const LONGEST_RETRY_MS = 5 * 60_000

/**
 * The wait of work that has failed since this time: as long again as it has taken so far, bounded. It needs no count,
 * which an object that is put away between two attempts would forget.
 */
export const retryDelaySinceMs = (sinceMs: number, nowMs: number): number =>
  Math.min(LONGEST_RETRY_MS, Math.max(FIRST_RETRY_MS, nowMs - sinceMs))

/** Doubling waits, bounded. `failures` counts from 1. */
export const retryDelayMs = (failures: number): number =>
  Math.min(LONGEST_RETRY_MS, FIRST_RETRY_MS * 2 ** Math.min(failures - 1, 20))
