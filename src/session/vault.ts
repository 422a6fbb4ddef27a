import { isOver, type RunState } from '../core/run/state.ts'
import type { ContentRef } from '../protocol/execution/ids.ts'
import type { PlainMap } from '../protocol/execution/sealed.ts'

/**
 * The texts of a sealed session that are in memory while a run goes on: what the client has not sealed yet, and what it
 * has opened. They are stored nowhere, and gone with the object (EC 17.4).
 */
export class Vault {
  readonly #texts = new Map<ContentRef, string>()

  get texts(): ReadonlyMap<ContentRef, string> {
    return this.#texts
  }

  add(contents: PlainMap): void {
    for (const [ref, text] of Object.entries(contents)) this.#texts.set(ref, text)
  }

  /** Forgets what is needed no more: between runs, everything but what still lacks its ciphertext. */
  settle(state: RunState): void {
    if (!isOver(state)) return
    const kept = new Set(state.unsealed?.refs)
    for (const ref of this.#texts.keys()) if (!kept.has(ref)) this.#texts.delete(ref)
  }

  /** Forgets everything else: a long run must not keep what its turns have no use for any more. */
  keepOnly(refs: ReadonlySet<ContentRef>): void {
    for (const ref of this.#texts.keys()) if (!refs.has(ref)) this.#texts.delete(ref)
  }

  drop(refs: Iterable<ContentRef>): void {
    for (const ref of refs) this.#texts.delete(ref)
  }
}
