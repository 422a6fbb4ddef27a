import type { TurnPlace } from './turn-stream.ts'

/** What the user types while a run goes on, until somebody takes it. What is never taken is still there after the run. */
export type Words = {
  /** Whether there is anything to take. */
  readonly waiting: boolean
  /** Everything that has come so far, oldest first; it counts as given. */
  take(): string[]
  /** Told of each arrival. @returns ends that */
  onArrival(listener: () => void): () => void
}

/** Words as they are put in. */
export class WordQueue implements Words {
  readonly #listeners = new Set<() => void>()
  #texts: string[] = []

  get waiting(): boolean {
    return this.#texts.length > 0
  }

  push(text: string): void {
    this.#texts.push(text)
    for (const listener of [...this.#listeners]) listener()
  }

  take(): string[] {
    const texts = this.#texts
    this.#texts = []
    return texts
  }

  onArrival(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }
}

/**
 * Listens for new words while one stream is followed. They cut the stream when the router is known to serve the request that
 * it answers: said before, they would come ahead of that request, or replace it, and in an encrypted session a router that
 * has died has lost it (EC 15, D20).
 */
export class Interruption {
  readonly #words: Words | undefined
  readonly #cut = new AbortController()
  readonly #taken = Promise.withResolvers<void>()
  readonly #unsubscribe: () => void
  #place: TurnPlace | null = null

  constructor(words: Words | undefined) {
    this.#words = words
    this.#unsubscribe = words?.onArrival(() => this.#look()) ?? (() => undefined)
  }

  /** Fires when the stream is to be let go of. */
  get signal(): AbortSignal {
    return this.#cut.signal
  }

  /** How far the stream was followed; null while the router is not known to serve the request. */
  get place(): TurnPlace | null {
    return this.#place
  }

  /** Settles when the router has taken the request for the first time. */
  get taken(): Promise<void> {
    return this.#taken.promise
  }

  moved(place: TurnPlace | null): void {
    this.#place = place
    if (place !== null) this.#taken.resolve()
    this.#look()
  }

  end(): void {
    this.#unsubscribe()
  }

  #look(): void {
    if (this.#place !== null && this.#words?.waiting) this.#cut.abort()
  }
}
