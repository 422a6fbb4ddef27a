import { CONTENT_KINDS, type ContentKind, type ContentRef } from './ids.ts'

/** The names of sealed contents, `kind:id` (EC 4, EC 17.2): whose id it is depends on the kind. */

const refOf = (kind: ContentKind, id: string): ContentRef => `${kind}:${id}`

export const inputRef = (sessionId: string): ContentRef => refOf('run_input', sessionId)
export const messageRef = (messageId: string): ContentRef => refOf('message', messageId)
/** What an assistant message asked for and what its prompt held; the id is that of the message. */
export const callsRef = (messageId: string): ContentRef => refOf('tool_call', messageId)
/** The result of a call that the client ran; it seals that unasked. */
export const resultRef = (callId: string): ContentRef => refOf('tool_call', callId)
/** The change that a call proposes. */
export const diffRef = (callId: string): ContentRef => refOf('diff', callId)
export const planRef = (planId: string): ContentRef => refOf('plan', planId)
export const factRef = (factId: string): ContentRef => refOf('memory', factId)
export const traceRef = (entryId: string): ContentRef => refOf('trace', entryId)

/** Kind and id of a reference. Throws for a text that is none: references are checked where they come in. */
export function refParts(ref: ContentRef): { kind: ContentKind; id: string } {
  const colon = ref.indexOf(':')
  const kind = CONTENT_KINDS.find((known) => known === ref.slice(0, colon))
  if (kind === undefined) throw new Error('invariant broken: a content reference of no known kind')
  return { kind, id: ref.slice(colon + 1) }
}

export const refKind = (ref: ContentRef): ContentKind => refParts(ref).kind
