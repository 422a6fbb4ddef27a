/** What the shell of a sealed session keeps in memory, and what its client knows: texts by reference. */

import { parseFact } from '../../../src/core/run/contents.ts'
import type { RunInputEvent } from '../../../src/core/run/inputs.ts'
import type { Sealing } from '../../../src/core/run/sealing.ts'
import type { RunState } from '../../../src/core/run/state.ts'
import type { Step } from '../../../src/core/run/step.ts'
import {
  callsRef,
  factRef,
  inputRef,
  messageRef,
  resultRef,
} from '../../../src/protocol/execution/content-refs.ts'
import type { ContinueRequest } from '../../../src/protocol/execution/continue.ts'
import type { ContentRef } from '../../../src/protocol/execution/ids.ts'
import type { EncryptedPayload, PlainMap, SealedMap } from '../../../src/protocol/execution/sealed.ts'
import type { TurnResponse } from '../../../src/protocol/execution/turn.ts'
import { Vault } from '../../../src/session/vault.ts'
import type { RunStore } from './run-store.ts'

/** A sealed session as far as the machine is concerned. */
export type SealedSession = { sessionId: string; keyId: string }

export const SEALED: SealedSession = { sessionId: 'session', keyId: 'kf_test' }
/** A session whose envelopes are bound to their place (D48). */
export const BOUND: SealedSession = { sessionId: 'session', keyId: 'kf2_test' }

/** An envelope that may be kept; which one it is can be told from its ciphertext. */
export const envelopeOf = (ref: ContentRef, keyId: string = SEALED.keyId, mark = ''): EncryptedPayload => ({
  version: keyId.startsWith('kf2_') ? 2 : 1,
  algorithm: 'xchacha20poly1305',
  key_id: keyId,
  nonce: 'n'.repeat(32),
  ciphertext: Buffer.from(`${ref}${mark}`.padEnd(16, '.')).toString('base64url'),
})

export const seal = (refs: readonly ContentRef[], keyId?: string): SealedMap =>
  Object.fromEntries(refs.map((ref) => [ref, envelopeOf(ref, keyId)]))

/** The texts that an outcome asks to seal. */
export const toEncryptOf = (outcome: TurnResponse | null): PlainMap =>
  outcome !== null && outcome.status !== 'idle' && outcome.status !== 'error'
    ? (outcome.data.to_encrypt ?? {})
    : {}

/** The outcome that a step tells; null for one that tells none. */
export function toldBy({ effects, reply }: Step): TurnResponse | null {
  const answer = effects.find((effect) => effect.e === 'answer')
  return answer?.outcome ?? (reply?.by === 'outcome' ? reply.outcome : null)
}

/** Words that came with their ciphertext, and are kept. */
export const isKeptInject = ({ data }: Extract<ContinueRequest, { type: 'inject' }>): boolean =>
  data.messages.length === 1 && data.messages[0]?.ciphertext != null

export class SealedSide {
  readonly session: SealedSession
  readonly #store: RunStore
  readonly #vault = new Vault()
  /** Every text that the client ever saw under a reference. */
  readonly known = new Map<ContentRef, string>()

  constructor(session: SealedSession, store: RunStore) {
    this.session = session
    this.#store = store
  }

  get held(): ReadonlyMap<ContentRef, string> {
    return this.#vault.texts
  }

  /** The object is gone, and its memory with it. */
  evict(): void {
    this.#vault.drop([...this.held.keys()])
  }

  sealing(input: RunInputEvent): Sealing {
    return {
      ...this.session,
      held: this.held,
      isSealed: (ref) => this.#store.sealed.has(ref),
      factOf: (key) => this.#factOf(key),
      bundle: input.type === 'execute_requested' ? JSON.stringify({ version: 1, input: input.text }) : null,
    }
  }

  /** What the shell does after a commit. */
  remember(input: RunInputEvent, step: Step, state: RunState): void {
    for (const write of step.writes) if (write.w === 'dropped') this.#vault.drop(write.refs)
    if (step.contents) this.#vault.add(step.contents)
    this.#vault.settle(state)
    // What an outcome has no place for the client reads from where the run stands.
    for (const [ref, text] of Object.entries(step.contents ?? {})) this.known.set(ref, text)
    if (input.type !== 'continuation_received' || input.message.type !== 'tool_results') return
    for (const { call_id: id, content } of input.message.data.results) {
      const ref = resultRef(id)
      if (!this.known.has(ref)) this.known.set(ref, content)
    }
  }

  /** What a turn would have to have opened: the sealed part of its history that is not in memory. */
  closed(): SealedMap {
    const needed = [
      inputRef(this.session.sessionId),
      ...this.#store.messages.flatMap(({ id, calls }) => [
        messageRef(id),
        callsRef(id),
        ...calls.map((call) => resultRef(call.id)),
      ]),
      ...[...this.#store.facts.keys()].map(factRef),
    ]
    return Object.fromEntries(
      needed.flatMap((ref) => {
        const payload = this.#store.sealed.get(ref)
        return payload === undefined || this.held.has(ref) ? [] : [[ref, payload]]
      }),
    )
  }

  /** What the client opens: everything that was ever sealed it has seen. */
  open(refs: readonly ContentRef[]): PlainMap {
    return Object.fromEntries(refs.map((ref) => [ref, this.known.get(ref) ?? 'opened']))
  }

  #factOf(key: string): string | null {
    const { facts } = this.#store
    const replaced = new Set([...facts.values()].map(({ replaces }) => replaces))
    for (const id of facts.keys()) {
      const text = replaced.has(id) ? undefined : this.held.get(factRef(id))
      if (text !== undefined && parseFact(text).key === key) return id
    }
    return null
  }
}
