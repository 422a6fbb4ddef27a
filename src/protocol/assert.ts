/** Stops on a broken invariant. The message carries ids and names only, never contents. */
export function assert(condition: unknown, message: string): asserts condition {
  if (!condition) throw new Error(`invariant broken: ${message}`)
}

/** Makes a switch exhaustive at compile time and loud at run time. */
export function assertNever(value: never): never {
  throw new Error(`invariant broken: unexpected value ${JSON.stringify(value)}`)
}
