import { z } from 'zod'
import type { SwitchyardClient } from '../client/client.ts'
import { factRef } from '../protocol/execution/content-refs.ts'
import type { MemoryRecord } from '../protocol/execution/memory.ts'
import type { SessionKeys } from './session-keys.ts'

/** A fact as far as it can be opened here; `locked` says why it cannot (U35). */
export type OpenedFact = { fact: MemoryRecord; locked?: string }

/** What the envelope of a session fact holds: its key, if it has one, and its text. */
const FactText = z.object({ key: z.string().nullish(), content: z.string() })

/** Opens the facts of encrypted sessions, as far as their keys are here. */
export const openFacts = (
  client: SwitchyardClient,
  keys: SessionKeys,
  facts: readonly MemoryRecord[],
): Promise<OpenedFact[]> => Promise.all(facts.map((fact) => openFact(client, keys, fact)))

async function openFact(
  client: SwitchyardClient,
  keys: SessionKeys,
  fact: MemoryRecord,
): Promise<OpenedFact> {
  const { encrypted, ...clear } = fact
  if (encrypted === undefined) return { fact }
  const text = await keys.open(client, fact.session_id ?? '', factRef(fact.id), encrypted)
  if (!text.ok) return { fact, locked: text.error }
  const read = FactText.safeParse(parseJson(text.value))
  if (!read.success) return { fact, locked: 'damaged: it is no fact' }
  const { key, content } = read.data
  return { fact: { ...clear, ...(key ? { key } : {}), content } }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
