import { CommandStop } from '../command-context.ts'
import { EXIT } from '../exit-code.ts'
import { oneLine } from '../printable.ts'

/** Fewer characters are typed by mistake too easily. */
const MIN_PREFIX_CHARS = 4
/** What a message shows of what was typed. */
const MAX_SHOWN_CHARS = 64

/** Where the ids of something are listed. */
const LISTED_BY = { device: 'switchyard devices', request: 'switchyard requests' } as const

/** What a typed id, or the beginning of one, means; else the end of the command. */
export function requireByPrefix<T>(
  typed: string,
  all: readonly T[],
  what: keyof typeof LISTED_BY,
  idOf: (one: T) => string,
): T {
  const text = typed.trim().toLowerCase()
  const shown = oneLine(typed, MAX_SHOWN_CHARS)
  const exact = all.find((one) => idOf(one) === text)
  if (exact !== undefined) return exact
  if (text.length < MIN_PREFIX_CHARS)
    throw new CommandStop(EXIT.usage, `"${shown}" is too short: type at least 4 characters of the id`)
  const meant = all.filter((one) => idOf(one).startsWith(text))
  const [first, ...others] = meant
  if (first === undefined)
    throw new CommandStop(EXIT.failed, `there is no ${what} "${shown}"; \`${LISTED_BY[what]}\` shows them`)
  if (others.length > 0) {
    const ids = meant.map(idOf).join('\n  ')
    throw new CommandStop(EXIT.usage, `"${shown}" begins ${meant.length} ids: type more of it\n  ${ids}`)
  }
  return first
}

/** So much of an id as has to be typed for it to be meant. */
export function shortestPrefix(id: string, ids: readonly string[]): string {
  const others = ids.filter((other) => other !== id)
  for (let chars = MIN_PREFIX_CHARS; chars < id.length; chars++) {
    const prefix = id.slice(0, chars)
    if (!others.some((other) => other.startsWith(prefix))) return prefix
  }
  return id
}
