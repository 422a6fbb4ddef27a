import { suggestReference } from '../core/suggest.ts'
import { aboutReference } from '../protocol/execution/unknown-names.ts'

/** What a text that is no model reference is answered with: what is wrong, and what was probably meant (EC 4). */
export const notAModel = (reference: string): string => `"${reference}": ${whyNotAModel(reference)}`

/** The same for a place that shows the text already. */
export function whyNotAModel(reference: string): string {
  const meant = suggestReference(reference)
  return `${aboutReference(reference).message}${meant === undefined ? '' : `; did you mean ${meant}?`}`
}
