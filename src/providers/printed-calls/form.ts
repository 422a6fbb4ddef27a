import { type Offered, type PrintedCall, readCalls } from './call-shapes.ts'
import { type Cursor, END, isAhead, literal, type Reading, skipSpace } from './cursor.ts'
import { type KeyTest, readJsonValues } from './json-scanner.ts'

/** A printed form with calls in it. */
export type PrintedForm = {
  calls: PrintedCall[]
  /** Only the end of the text ended it: it counts when the model ended the text, not when it was cut off. */
  byEnd: boolean
}

/** Reads what follows a mark. Undefined when that is no form, at the first character that shows it. */
export type FormReader = (cursor: Cursor, offered: Offered) => Reading<PrintedForm | undefined>

/** Reads the tag that closes a form; it may be missing at the end of the text, and before `nextOpening`. */
export function* readClosing(
  cursor: Cursor,
  calls: PrintedCall[] | undefined,
  closing: string,
  nextOpening?: string,
): Reading<PrintedForm | undefined> {
  if (calls === undefined) return undefined
  yield* skipSpace(cursor)
  if (cursor.isAt(END)) return { calls, byEnd: true }
  if ((yield* literal(cursor, [closing])) !== undefined) return { calls, byEnd: false }
  if (nextOpening !== undefined && (yield* isAhead(cursor, nextOpening))) return { calls, byEnd: false }
  return undefined
}

/** Reads the calls of a form that holds them as JSON. */
export function* readJsonCalls(cursor: Cursor, offered: Offered): Reading<PrintedCall[] | undefined> {
  const values = yield* readJsonValues(cursor)
  return values && readCalls(values, offered, false)
}

/**
 * Reads the values inside a fenced block and the fence that closes it, which may be missing at the end of the text.
 * @param fenceChars how long the opening fence was
 */
export function* readFencedValues(
  cursor: Cursor,
  fenceChars: number,
  isKey?: KeyTest,
): Reading<{ values: unknown[]; byEnd: boolean } | undefined> {
  yield* skipSpace(cursor)
  const values = yield* readJsonValues(cursor, isKey)
  if (values === undefined) return undefined
  if (cursor.isAt(END)) return { values, byEnd: true }
  let closingChars = 0
  for (; cursor.isAt('`'); closingChars += 1) yield
  while (cursor.isAt(' ') || cursor.isAt('\t') || cursor.isAt('\r')) yield
  const isClosed = closingChars >= fenceChars && (cursor.isAt('\n') || cursor.isAt(END))
  return isClosed ? { values, byEnd: false } : undefined
}
