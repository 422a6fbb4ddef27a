import { refKind } from '../protocol/execution/content-refs.ts'
import type { ContentRef } from '../protocol/execution/ids.ts'
import type { EncryptedPayload, PlainMap, SealedMap } from '../protocol/execution/sealed.ts'
import { err, ok, type Result } from '../protocol/result.ts'
import { type Sealer, sealProblemText } from './crypto/sealer.ts'
import type { ClientFailure } from './failure.ts'
import type { TurnEnd } from './turn-stream.ts'

/**
 * The texts and envelopes of one run in an encrypted session (EC 17.3). Every text is sealed once: a message that is sent
 * again is the same message, byte for byte (D20).
 */
export class Sealing {
  readonly #sealer: Sealer
  /** What the router has asked to seal in this run; it may lose its own copy (D20). */
  readonly #texts = new Map<ContentRef, string>()
  readonly #envelopes = new Map<ContentRef, { text: string; payload: EncryptedPayload }>()

  constructor(sealer: Sealer) {
    this.#sealer = sealer
  }

  /**
   * Every text that the end of a turn asks to seal, those included that the router has lost and this client still has.
   * An error lists what nobody here has ever seen.
   */
  textsOf(end: TurnEnd): Result<PlainMap, ContentRef[]> {
    const asked = toEncrypt(end)
    for (const [ref, text] of Object.entries(asked)) this.#texts.set(ref, text)
    const texts: PlainMap = { ...asked }
    const unseen: ContentRef[] = []
    for (const ref of end.lost ?? []) {
      const text = this.#texts.get(ref)
      if (text === undefined) unseen.push(ref)
      else texts[ref] = text
    }
    return unseen.length > 0 ? err(unseen) : ok(texts)
  }

  seal(texts: PlainMap): SealedMap {
    return Object.fromEntries(Object.entries(texts).map(([ref, text]) => [ref, this.#envelope(ref, text)]))
  }

  /** Opens everything, or says why that cannot be; the failure names the key that is needed (U35). */
  open(sealed: SealedMap): Result<PlainMap, ClientFailure> {
    const texts: PlainMap = {}
    for (const [ref, payload] of Object.entries(sealed)) {
      const opened = this.#sealer.open(ref, payload)
      if (!opened.ok) {
        if (opened.error.kind === 'other_key') return err(lockedFailure(opened.error.keyId))
        const message = `a part of this session (${ref}) cannot be opened: ${sealProblemText(opened.error)}`
        return err({ kind: 'unsupported', message })
      }
      texts[ref] = opened.value
    }
    return ok(texts)
  }

  #envelope(ref: ContentRef, text: string): EncryptedPayload {
    const known = this.#envelopes.get(ref)
    if (known?.text === text) return known.payload
    // Half of a surrogate pair is no text that UTF-8 can carry: it is kept as the mark for what cannot be shown.
    const payload = this.#sealer.seal(ref, text.toWellFormed())
    this.#envelopes.set(ref, { text, payload })
    return payload
  }
}

/** What the end of a turn asks to seal; nothing where it asks for nothing (EC 29.2). */
export function toEncrypt({ status, data }: TurnEnd): PlainMap {
  if (status === 'idle' || status === 'error') return {}
  return data.to_encrypt ?? {}
}

/**
 * The end of a turn as a person is shown it: a plan's text stands where it stands in a session in plain text.
 */
export function withPlanText(end: TurnEnd): TurnEnd {
  if (end.status !== 'awaiting_approval' || end.data.approval.kind !== 'plan') return end
  const { approval } = end.data
  const [, plan] = Object.entries(toEncrypt(end)).find(([ref]) => refKind(ref) === 'plan') ?? []
  if (plan === undefined || typeof approval.detail?.content === 'string') return end
  const detail = { ...approval.detail, content: plan }
  return { ...end, data: { ...end.data, approval: { ...approval, detail } } }
}

/** The end of a turn without what was sealed and opened for it. */
export function withoutSealing(end: TurnEnd): TurnEnd {
  switch (end.status) {
    case 'completed': {
      const { to_encrypt: _, ...data } = end.data
      return { ...end, data }
    }
    case 'awaiting_tool': {
      const { to_encrypt: _, ...data } = end.data
      return { ...end, data }
    }
    case 'awaiting_approval': {
      const { to_encrypt: _, ...data } = end.data
      return { ...end, data }
    }
    case 'awaiting_decrypt': {
      const { to_encrypt: _, ...data } = end.data
      return { ...end, data: { ...data, to_decrypt: {} } }
    }
    case 'awaiting_encrypt':
      return { ...end, data: { ...end.data, to_encrypt: {} } }
    default:
      return end
  }
}

/** The failure of a client that lacks the key of a session (U35). */
export const lockedFailure = (keyId: string): ClientFailure => ({
  kind: 'locked',
  keyId,
  message: `this session is locked: key ${keyId} is needed`,
})
