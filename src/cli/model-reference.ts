import { instanceReference, suggestReference } from '../core/suggest.ts'
import { aboutReference } from '../protocol/execution/unknown-names.ts'

/** What a text that is no model reference is answered with: what is wrong, and what was probably meant (EC 4). */
export const notAModel = (reference: string): string => `"${reference}": ${whyNotAModel(reference)}`

/** The same for a place that shows the text already. */
export function whyNotAModel(reference: string): string {
  const { message } = aboutReference(reference)
  const meant = suggestReference(reference)
  if (meant !== undefined) return `${message}; did you mean ${meant}?`
  const instance = instanceReference(reference)
  if (instance === undefined) return message
  return `${message}; a server of yours is named by openai-compat: did you mean ${instance}?`
}
