import { type Failure, failure } from '../protocol/execution/errors.ts'
import { err, ok, type Result } from '../protocol/result.ts'

/** Largest number that a query may hold: beyond any list. */
const MAX_WHOLE = 1_000_000_000

export const badQuery = (message: string): Failure => ({
  ...failure('invalid_request', message),
  status: 400,
})

/** A whole number of the query. */
export function parseWhole(
  text: string | undefined,
  name: string,
  { least, absent }: { least: number; absent: number },
): Result<number, Failure> {
  if (text === undefined) return ok(absent)
  const value = /^\d{1,10}$/.test(text) ? Number(text) : -1
  if (value < least || value > MAX_WHOLE)
    return err(badQuery(`\`${name}\` must be a whole number from ${least}`))
  return ok(value)
}
