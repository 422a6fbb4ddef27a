import type {
  LanguageModelV4Content,
  LanguageModelV4ReasoningPart,
  LanguageModelV4StreamPart,
} from '@ai-sdk/provider'
import { z } from 'zod'

const KeptBlock = z.object({
  text: z.string(),
  /** What proves the block to its provider: a signature, or the thoughts in sealed form. */
  proof: z.record(z.string(), z.string()),
  /** How many characters of the answer's text came after it, so that it goes back to its place. */
  textAfter: z.int().nonnegative(),
})
type KeptBlock = z.infer<typeof KeptBlock>
const Opaque = z.object({ reasoning: z.array(KeptBlock) })

/**
 * Collects the reasoning of one answer for providers that want it back with the calls that came of it (U40). Each block
 * is kept with the first call after it; reasoning that leads to no call is not needed again.
 */
export class ReasoningKeeper {
  readonly #sdkName: string
  readonly #byCall = new Map<string, { block: KeptBlock; textBefore: number }[]>()
  #open = new Map<string, { block: KeptBlock; textBefore: number }>()
  #textChars = 0

  /** @param sdkName the name under which the SDK puts the provider's own fields */
  constructor(sdkName: string) {
    this.#sdkName = sdkName
  }

  /** Takes a part of the answer, streamed or whole. */
  note(part: LanguageModelV4StreamPart | LanguageModelV4Content): void {
    switch (part.type) {
      case 'text':
        this.#textChars += part.text.length
        break
      case 'text-delta':
        this.#textChars += part.delta.length
        break
      case 'reasoning':
        this.#add(`whole:${this.#open.size}`, part.text, part.providerMetadata)
        break
      case 'reasoning-start':
      case 'reasoning-end':
        this.#add(part.id, '', part.providerMetadata)
        break
      case 'reasoning-delta':
        this.#add(part.id, part.delta, part.providerMetadata)
        break
      case 'tool-call':
        this.#byCall.set(part.toolCallId, [...this.#open.values()])
        this.#open = new Map()
    }
  }

  /** What to keep with a call. Ask only when the answer is complete. */
  opaqueOf(callId: string): Record<string, unknown> | undefined {
    const kept = this.#byCall.get(callId)?.filter(({ block }) => Object.keys(block.proof).length > 0)
    if (kept === undefined || kept.length === 0) return undefined
    return {
      reasoning: kept.map(({ block, textBefore }) => ({ ...block, textAfter: this.#textChars - textBefore })),
    }
  }

  #add(id: string, text: string, metadata: LanguageModelV4ReasoningPart['providerOptions']): void {
    const entry = this.#open.get(id) ?? {
      block: { text: '', proof: {}, textAfter: 0 },
      textBefore: this.#textChars,
    }
    this.#open.set(id, entry)
    entry.block.text += text
    for (const [name, value] of Object.entries(metadata?.[this.#sdkName] ?? {})) {
      if (typeof value === 'string' && value !== '') entry.block.proof[name] = value
    }
  }
}

/** A block that goes back to its provider, and its place: so many characters before the end of the message's text. */
export type RestoredReasoning = { part: LanguageModelV4ReasoningPart; textAfter: number }

/** The blocks kept with a call. What cannot be read is left out: it must never make a request fail. */
export function restoreReasoning(
  opaque: Record<string, unknown> | undefined,
  sdkName: string,
): RestoredReasoning[] {
  const parsed = Opaque.safeParse(opaque)
  if (!parsed.success) return []
  return parsed.data.reasoning.map(({ text, proof, textAfter }) => ({
    part: { type: 'reasoning', text, providerOptions: { [sdkName]: proof } },
    textAfter,
  }))
}
