import { refKind } from '../protocol/execution/content-refs.ts'
import type { ContentRef } from '../protocol/execution/ids.ts'

const COMMANDS_RAN = 'a command of that run may have been carried out'

/**
 * What to know of an encrypted session whose router stopped before the last texts were sealed (D20).
 * @param lost what it does not hold any more, and nobody has sealed
 * @returns undefined when nothing is missed that somebody said
 */
export function lostNote(lost: readonly ContentRef[]): string | undefined {
  const kinds = new Set(lost.map(refKind))
  if (kinds.has('run_input'))
    return `the last prompt was not sealed before the router stopped, and is gone: send it again; ${COMMANDS_RAN}`
  if ([...kinds].every((kind) => kind === 'trace')) return undefined
  return `what was said last was not sealed before the router stopped, and is gone: ask again; ${COMMANDS_RAN}`
}

/** The same where the router could not be asked. */
export const GIVEN_UP_NOTE = `if the router has stopped, what was said last in this encrypted session was perhaps not sealed, and is gone: send the prompt again; ${COMMANDS_RAN}`
