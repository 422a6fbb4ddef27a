import type { ContentRef } from '../../../src/protocol/execution/ids.ts'
import type { EncryptedPayload, PlainMap, SealedMap } from '../../../src/protocol/execution/sealed.ts'
import type { RunResponse, TurnResponse } from '../../../src/protocol/execution/turn.ts'
import { openOne, type SealedSession, toEncrypt } from './sealed-client.ts'

/**
 * What a client of a sealed session remembers of it: the texts that it was shown, and the envelopes it has made of them,
 * so that a message which is sent again is the same, byte for byte (D20).
 */
export class CrashSealing {
  readonly session: SealedSession
  readonly #texts = new Map<ContentRef, string>()
  readonly #envelopes = new Map<ContentRef, { text: string; payload: EncryptedPayload }>()

  constructor(session: SealedSession) {
    this.session = session
  }

  /** True: the run stands where texts are missing that nobody here has seen. What led there has to be sent again. */
  isUnseen(run: RunResponse): boolean {
    this.#learn(run)
    return lostOf(run).some((ref) => !this.#texts.has(ref))
  }

  /** The ciphertext of everything that an outcome asks to seal, and of what comes with the answer to it. */
  sealFor(turn: TurnResponse, own: PlainMap = {}): SealedMap {
    this.#learn(turn)
    const texts = { ...this.#asked(turn), ...own }
    return Object.fromEntries(Object.entries(texts).map(([ref, text]) => [ref, this.#seal(ref, text)]))
  }

  /** What a decrypt pause asks to open, and the texts that it asks to seal (EC 29.5). */
  plaintextFor(turn: Extract<TurnResponse, { status: 'awaiting_decrypt' }>): PlainMap {
    this.#learn(turn)
    const opened = Object.entries(turn.data.to_decrypt).map(([ref, payload]) => [
      ref,
      openOne(this.session, ref, payload),
    ])
    return { ...Object.fromEntries(opened), ...this.#asked(turn) }
  }

  asksToSeal(turn: TurnResponse): boolean {
    return Object.keys(this.#asked(turn)).length > 0
  }

  #learn(turn: TurnResponse | RunResponse): void {
    if (turn.status === 'running') return
    for (const [ref, text] of Object.entries(toEncrypt(turn))) this.#texts.set(ref, text)
  }

  #asked(turn: TurnResponse): PlainMap {
    const lost = lostOf(turn).map((ref) => [ref, this.#texts.get(ref) ?? ''])
    return { ...toEncrypt(turn), ...Object.fromEntries(lost) }
  }

  #seal(ref: ContentRef, text: string): EncryptedPayload {
    const known = this.#envelopes.get(ref)
    if (known?.text === text) return known.payload
    const payload = this.session.sealer.seal(ref, text)
    this.#envelopes.set(ref, { text, payload })
    return payload
  }
}

/** What the router has asked to seal and does not hold any more (D20). */
const lostOf = (turn: TurnResponse | RunResponse): ContentRef[] => ('lost' in turn ? (turn.lost ?? []) : [])
