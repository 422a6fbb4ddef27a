import { D1_DEADLINE_MS, withDeadline } from './deadline.ts'

/** D1 did not do what it was asked: nothing that the request was wrong about. */
export class StorageFault extends Error {
  override readonly name = 'StorageFault'
}

/** Passes on what D1 answers; its failure, and its silence, are told apart from every other. */
export async function orFault<T>(work: PromiseLike<T>): Promise<T> {
  try {
    return await withDeadline(work, D1_DEADLINE_MS)
  } catch (cause) {
    throw new StorageFault('D1 failed', { cause })
  }
}
