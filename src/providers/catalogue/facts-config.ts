import { z } from 'zod'
import { ModelReference, type Provider, splitModelReference } from '../../protocol/execution/ids.ts'
import { FACT_FIELDS, type FactEntry, NamePattern } from './model-facts.ts'

const Entry = z.strictObject({ model: z.string(), ...FACT_FIELDS })

/**
 * Reads `MODEL_FACTS`: a JSON list of `{model: "provider/name"}`, `provider/beginning*` or `provider/*`, with the
 * facts that it overrides or adds (EC 21). An entry that cannot be read is left out and the others stay.
 * @returns the entries by provider, and each fault as a sentence that repeats no value
 */
export function parseModelFacts(text: string | undefined): {
  facts: ReadonlyMap<Provider, FactEntry[]>
  faults: string[]
} {
  const facts = new Map<Provider, FactEntry[]>()
  if (!text?.trim()) return { facts, faults: [] }
  const entries = parseList(text)
  if (entries === undefined)
    return { facts, faults: ['MODEL_FACTS must be a JSON list of facts about models'] }
  const faults: string[] = []
  for (const [index, value] of entries.entries()) {
    const at = `MODEL_FACTS[${index}]`
    const entry = Entry.safeParse(value)
    if (!entry.success) {
      faults.push(...entry.error.issues.map(({ path, message }) => `${[at, ...path].join('.')}: ${message}`))
      continue
    }
    const { model: written, ...given } = entry.data
    const reference = ModelReference.safeParse(written)
    const named = reference.success ? splitModelReference(reference.data) : undefined
    if (named === undefined) faults.push(`${at}.model must be provider/name or provider/beginning*`)
    else if (!NamePattern.safeParse(named.model).success) {
      faults.push(`${at}.model may have one * only, at its end`)
    } else {
      facts.set(named.provider, [
        ...(facts.get(named.provider) ?? []),
        { match: [named.model], facts: given },
      ])
    }
  }
  return { facts, faults }
}

function parseList(text: string): unknown[] | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return Array.isArray(value) ? value : undefined
  } catch {
    return undefined
  }
}
