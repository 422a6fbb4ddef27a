import type { AnswerClock } from '../core/run/writes.ts'
import type { Thoughts } from './text-gatherer.ts'

/** What is observed of a model's thinking in one call: for how long, and how much of it was shown. */
export type Thinking = { ms: number; sinceMs: number | null; units: number }

export const NO_THINKING: Thinking = { ms: 0, sinceMs: null, units: 0 }

/** Characters that make a token, about: an estimate, and told as one. */
const UNITS_PER_TOKEN = 4

export const thinkMore = ({ ms, sinceMs, units }: Thinking, text: string, nowMs: number): Thinking => ({
  ms,
  sinceMs: sinceMs ?? nowMs,
  units: units + text.length,
})

/** The model speaks: until it thinks again the clock stands. */
export const endThinking = ({ ms, sinceMs, units }: Thinking, nowMs: number): Thinking => ({
  ms: sinceMs === null ? ms : ms + nowMs - sinceMs,
  sinceMs: null,
  units,
})

/** Totals of the call so far; null when nothing of its thinking was shown. */
export function thoughtsOf(thinking: Thinking, nowMs: number): Thoughts | null {
  if (thinking.units === 0) return null
  return { ms: endThinking(thinking, nowMs).ms, tokens: Math.ceil(thinking.units / UNITS_PER_TOKEN) }
}

/** How long a call has taken so far, as it is kept with its answer. */
export function answerClock(calledAtMs: number, thinking: Thinking, nowMs: number): AnswerClock {
  const thoughts = thoughtsOf(thinking, nowMs)
  return {
    responseMs: Math.max(0, nowMs - calledAtMs),
    ...(thoughts === null ? {} : { thoughtMs: thoughts.ms, thoughtTokens: thoughts.tokens }),
  }
}
