import { err, ok, type Result } from '../protocol/result.ts'
import type { StreamOptions, SwitchyardClient } from './client.ts'
import type { RunEvent } from './drive.ts'
import type { ClientFailure } from './failure.ts'
import { withPlanText } from './sealing.ts'
import type { OnReconnect, StreamEvent, TurnEnd, TurnPlace } from './turn-stream.ts'
import { Interruption, type Words } from './words.ts'

/** Begins a stream; the idempotency key of its request is made with it. */
export type Opening = (options: StreamOptions) => AsyncGenerator<StreamEvent>

/** The events of one stream, and how it ended. */
export type Following = AsyncGenerator<RunEvent, Result<TurnEnd, ClientFailure>, undefined>

export type FollowerOptions = {
  client: Pick<SwitchyardClient, 'continueStream' | 'currentRunStream'>
  sessionId: string
  words: Words | undefined
  /** Ends the following. */
  signal: AbortSignal
  sealed: boolean
  onReconnect: OnReconnect | undefined
  /** Whether a pause was answered before. */
  isRepeatedPause: (end: TurnEnd) => boolean
  /** The run goes on from new words. */
  onWordsTaken: () => void
}

/** Follows the streams of one run, and lets new words cut them (EC 15). */
export class TurnFollower {
  readonly #options: FollowerOptions
  /** Whether text was shown since the last `turn_end`. */
  #midText = false

  constructor(options: FollowerOptions) {
    this.#options = options
  }

  /** A stream to its end, or those of the new words that cut it and one another. */
  async *followOrSpeak(first: Opening): Following {
    const { client, sessionId, words, signal: stopped } = this.#options
    let open = first
    /** The words that the present stream answers, and where the one before was left for them. */
    let said: { texts: string[]; left: TurnPlace } | undefined
    for (;;) {
      const interruption = new Interruption(words)
      const followed = said
        ? yield* this.#speak(open, interruption, said.texts)
        : yield* this.#listen(open, interruption)
      if (followed.ok || stopped.aborted) return followed
      const { place, signal } = interruption
      if (words && place !== null && signal.aborted) {
        const texts = words.take()
        // The router makes one message of them in the same way; how many lines there may be is then no question.
        const messages = [{ text: texts.join('\n') }]
        said = { texts, left: place }
        open = (options) => client.continueStream(sessionId, { type: 'inject', data: { messages } }, options)
        continue
      }
      if (said === undefined || place !== null || followed.error.kind !== 'http') return followed
      // Refused words change nothing: the turn that was let go of is served on.
      const { left } = said
      said = undefined
      open = (options) => client.currentRunStream(sessionId, { ...options, ...left })
    }
  }

  /** One stream, which nothing cuts. */
  async *follow(stream: AsyncGenerator<StreamEvent>): Following {
    for await (const event of stream) {
      if (event.type === 'failed') return err(event.failure)
      if (event.type === 'text_delta' || event.type === 'reasoning_delta') this.#midText = true
      if (event.type === 'turn_restarted') this.#midText = false
      if (event.type === 'turn_end') {
        if (this.#midText && this.#options.isRepeatedPause(event)) yield { type: 'turn_restarted' }
        this.#midText = false
        const end = withPlanText(event)
        yield end
        return ok(end)
      }
      yield event
    }
    return err({ kind: 'network', message: 'the stream ended without turn_end' })
  }

  async *#listen(open: Opening, interruption: Interruption): Following {
    const { signal, sealed, onReconnect } = this.#options
    const stream = open({
      signal: AbortSignal.any([signal, interruption.signal]),
      ...(sealed ? { sealed } : {}),
      ...(onReconnect ? { onReconnect } : {}),
      onPlace: (place) => interruption.moved(place),
    })
    try {
      return yield* this.follow(stream)
    } finally {
      interruption.end()
    }
  }

  /** The stream of an `inject`; its words are told of as soon as the router has taken them. */
  async *#speak(open: Opening, interruption: Interruption, texts: string[]): Following {
    const cut = this.#midText
    this.#midText = false
    const events = this.#listen(open, interruption)
    const first = events.next()
    await Promise.race([first, interruption.taken])
    let isTold = false
    if (interruption.place !== null) {
      isTold = true
      this.#options.onWordsTaken()
      yield { type: 'words_sent', texts, cut }
    }
    const next = await first
    if (next.done && !next.value.ok) {
      if (!isTold) {
        this.#midText = cut
        yield { type: 'words_not_sent', texts, failure: next.value.error }
      }
      return next.value
    }
    if (!isTold) {
      // The answer came in one piece.
      this.#options.onWordsTaken()
      yield { type: 'words_sent', texts, cut }
    }
    if (next.done) return next.value
    yield next.value
    return yield* events
  }
}
