/** D1 did not do what it was asked: nothing that the request was wrong about. */
export class StorageFault extends Error {
  override readonly name = 'StorageFault'
}

/** Passes on what D1 answers; its failure is told apart from every other. */
export async function orFault<T>(work: PromiseLike<T>): Promise<T> {
  try {
    return await work
  } catch (cause) {
    throw new StorageFault('D1 failed', { cause })
  }
}
