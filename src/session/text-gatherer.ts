import type { RemoteEvent } from '../protocol/remote/events.ts'
import type { RemoteTurnTiming } from '../protocol/remote/message.ts'

/** A text event is closed at this length, so that no event grows without bound (D33). In units of the text. */
const MAX_DELTA_UNITS = 2 * 1024

type TextDelta = Extract<RemoteEvent, { type: 'text_delta' }>

/** What is known of the thinking in the call under way: totals. */
export type Thoughts = { ms: number; tokens: number }

/** The clocks of the turn, as they stand when a text event is closed. */
export type TextClock = { timing: RemoteTurnTiming | null; thoughts: Thoughts | null }

/**
 * Gathers what a model says into events: text until it is told to close, and clocks at most once a second of the turn (RF
 * 13). What it has closed it has forgotten.
 */
export class TextGatherer {
  #open = ''
  #thought = false
  /** The whole seconds of work and of thinking that were told last. */
  #told = { work: -1, thought: -1 }
  /** Nothing of this segment was told yet: its first words do not wait (D33). */
  #fresh = true

  /** A segment begins: something else happened in between. */
  begin(): void {
    this.#fresh = true
  }

  /** Whether to close now: `first` words of a segment for whoever follows, a `full` event in any case. */
  text(delta: string): 'first' | 'full' | 'later' {
    this.#open += delta
    if (this.#open.length >= MAX_DELTA_UNITS) return 'full'
    return this.#fresh ? 'first' : 'later'
  }

  thought(): void {
    this.#thought = true
  }

  /** What was gathered, with the clocks as they stand, as events; none when nothing was, or only thinking within a second that was told. */
  close(clockNow: () => TextClock): TextDelta[] {
    if (this.#open === '' && !this.#thought) return []
    const { timing, thoughts } = clockNow()
    const work = Math.floor((timing?.elapsed_work_ms ?? 0) / 1000)
    const thought = Math.floor((thoughts?.ms ?? 0) / 1000)
    const ticked = work !== this.#told.work || thought !== this.#told.thought
    if (this.#open === '' && !ticked) return []
    const clock = ticked ? { ...(timing === null ? {} : { timing }), ...thoughtFields(thoughts) } : {}
    if (ticked) this.#told = { work, thought }
    const texts = pieces(this.#open)
    this.#open = ''
    this.#thought = false
    if (texts.length > 0) this.#fresh = false
    return (texts.length === 0 ? [''] : texts).map((text, n) => ({
      type: 'text_delta',
      text,
      ...(n === 0 ? clock : {}),
    }))
  }

  /** Another turn: its seconds are others. */
  forget(): void {
    this.#told = { work: -1, thought: -1 }
    this.#fresh = true
  }
}

export const thoughtFields = (thoughts: Thoughts | null) =>
  thoughts === null || thoughts.tokens === 0
    ? {}
    : {
        thought_time_ms: thoughts.ms,
        thought_tokens: thoughts.tokens,
        thought_tokens_estimated: true,
      }

/** Pieces of about the longest length; no character is cut in two. */
function pieces(text: string): string[] {
  const cut: string[] = []
  let from = 0
  while (from < text.length) {
    let to = from + MAX_DELTA_UNITS
    // Half of a pair of surrogates is no text that every reader accepts.
    if (to < text.length && (text.codePointAt(to - 1) ?? 0) > 0xffff) to--
    cut.push(text.slice(from, to))
    from = to
  }
  return cut
}
