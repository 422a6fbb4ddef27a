import type { MemoryFact } from '../../core/memory.ts'
import { errorName } from '../../protocol/error-name.ts'
import { withDeadline } from '../../storage/d1/deadline.ts'
import type { OperationsDeps } from './ports.ts'

/** A decision is not held up any longer by what it may not need at all. */
const FACTS_WAIT_MS = 2_000

/**
 * What is remembered of the user; nothing where D1 does not tell it in time. What a person has decided, or queued before,
 * must not be lost to a fault of D1.
 */
export async function factsOrNone({ facts }: Pick<OperationsDeps, 'facts'>): Promise<MemoryFact[]> {
  try {
    return await withDeadline(facts(), FACTS_WAIT_MS)
  } catch (error) {
    console.warn(`what is remembered of the user could not be read: ${errorName(error)}`)
    return []
  }
}
