/**
 * Places in a transcript as devices see it: each message, and behind it each of the calls that it made. Part 0 is the
 * message itself, part n + 1 its call of ordinal n.
 */
export type Position = { seq: number; part: number }

export const historyRevision = (rewrites: number): string => `h${rewrites}`

/** `m<seq>` for a message, `m<seq>.<ordinal>` for one of its calls: unique within a revision of the history (RF 2). */
export const itemId = ({ seq, part }: Position): string => (part === 0 ? `m${seq}` : `m${seq}.${part - 1}`)

const ITEM_ID = /^m([1-9]\d{0,15})(?:\.(0|[1-9]\d{0,9}))?$/

export function parseItemId(id: string): Position | null {
  const [, seq, ordinal] = ITEM_ID.exec(id) ?? []
  if (seq === undefined) return null
  return { seq: Number(seq), part: ordinal === undefined ? 0 : Number(ordinal) + 1 }
}

/** A cursor of history: it names the first item that is not wanted any more (RF 15). */
export const historyCursor = ({ seq, part }: Position, revision: string): string =>
  `${seq}.${part}@${revision}`

const CURSOR = /^([1-9]\d{0,15})\.(0|[1-9]\d{0,9})@(.+)$/

/** Null for a cursor of another revision, or none at all. */
export function parseHistoryCursor(cursor: string, revision: string): Position | null {
  const [, seq, part, of] = CURSOR.exec(cursor) ?? []
  return seq === undefined || of !== revision ? null : { seq: Number(seq), part: Number(part) }
}
