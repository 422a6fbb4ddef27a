import { runUnits } from './candidates.ts'
import { estimateTokens } from './tokens.ts'
import type { TranscriptCall, TranscriptMessage } from './transcript.ts'
import type { TurnView } from './turn-view.ts'

/**
 * What long results of the newest round take at least, all together: a model whose window has no room for it sees
 * too little of what it asked for, and is passed over. About a hundred lines of code.
 */
const LEAST_ROUND_TOKENS = 1_500
/** What each of them takes at least: the note that stands for what is left out. */
const LEAST_RESULT_TOKENS = 150
/** Of the room for results that have to be cut; the rest is for what was said before. */
const ROOM_SHARE = 0.75
/** Of what is shown of a result; the rest is its end, which tells how a command ended. */
const HEAD_SHARE = 0.75
/** Two halves cost a little more, or less, than the whole that they are cut from. */
const SEAM_TOKENS = 8

/** Stands in a result for what is left out of it. Tells the model how to come by it. */
export const leftOut = (left: number, all: number): string =>
  `[${left} of ${all} characters are left out here, because the result is too long for this prompt. ` +
  'To see more, ask for a part of it: fewer lines, a narrower search, or a command that prints less.]'

/** Results of the newest round of calls, which every prompt of the turn holds. */
const newestCalls = (view: TurnView): readonly TranscriptCall[] => newestRound(view)?.calls ?? []

const newestRound = (view: TurnView): TranscriptMessage | undefined =>
  runUnits(view)
    .fixed.map(({ message }) => message)
    .find(({ role }) => role === 'assistant')

/** What they take as they are. */
export const resultTokens = (view: TurnView): number => sum(tokensOf(newestCalls(view)))

/** Of calls that stay the same objects: a result of megabytes is counted once. */
const KNOWN_TOKENS = new WeakMap<TranscriptCall, number>()

function tokensOf(calls: readonly TranscriptCall[]): number[] {
  return calls.map((call) => {
    if (call.result === undefined) return 0
    const tokens = KNOWN_TOKENS.get(call) ?? estimateTokens(call.result)
    KNOWN_TOKENS.set(call, tokens)
    return tokens
  })
}

/** By how many tokens the results of the newest round can be made shorter for a small window (D27). */
export function sparableTokens(view: TurnView): number {
  const tokens = tokensOf(newestCalls(view))
  return sum(tokens) - sum(shares(tokens, leastRoom(tokens.length)))
}

/**
 * The view with the results of the newest round in `roomTokens`: as they are where they fit, else the longest cut to
 * their beginning and end, with a note between (D27). The room must hold what cannot be spared.
 */
export function withFittingResults(view: TurnView, roomTokens: number): TurnView {
  const newest = newestRound(view)
  if (newest === undefined || newest.calls.length === 0) return view
  const tokens = tokensOf(newest.calls)
  if (sum(tokens) <= roomTokens) return view
  const room = Math.max(Math.floor(roomTokens * ROOM_SHARE), leastRoom(tokens.length))
  const shown = shares(tokens, Math.min(room, roomTokens))
  const calls = newest.calls.map((call, index) => {
    const share = shown[index] ?? 0
    if (call.result === undefined || (tokens[index] ?? 0) <= share) return call
    return { ...call, result: cut(call.result, share) }
  })
  return {
    ...view,
    transcript: view.transcript.map((message) => (message === newest ? { ...message, calls } : message)),
  }
}

/** Calls whose result is shown in part. */
export const shortenedCalls = (view: TurnView, fitting: TurnView): readonly TranscriptCall[] => {
  if (fitting === view) return []
  const whole = new Set(newestCalls(view))
  return newestCalls(fitting).filter((call) => !whole.has(call))
}

const leastRoom = (results: number): number => Math.max(LEAST_ROUND_TOKENS, results * LEAST_RESULT_TOKENS)

/** Divides the room among what wants some: nobody gets more than he wants, and those who want more get the same. */
function shares(wanted: readonly number[], room: number): number[] {
  const given = new Map<number, number>()
  let left = room
  const rising = [...wanted.entries()].sort(([, a], [, b]) => a - b)
  for (const [place, [index, want]] of rising.entries()) {
    const share = Math.min(want, Math.floor(left / (rising.length - place)))
    given.set(index, share)
    left -= share
  }
  return wanted.map((_, index) => given.get(index) ?? 0)
}

/** Beginning and end of a text in about this many tokens, never more. */
function cut(text: string, tokens: number): string {
  const room = Math.max(0, tokens - estimateTokens(leftOut(text.length, text.length)) - SEAM_TOKENS)
  const head = longestStart(text, Math.floor(room * HEAD_SHARE))
  const tail = longestEnd(text.slice(head.length), room - Math.floor(room * HEAD_SHARE))
  return `${head}\n${leftOut(text.length - head.length - tail.length, text.length)}\n${tail}`
}

const longestStart = (text: string, tokens: number): string =>
  text.slice(
    0,
    longestPart(tokens, text.length, (units) => wholeStart(text, units)),
  )

const longestEnd = (text: string, tokens: number): string =>
  text.slice(text.length - longestPart(tokens, text.length, (units) => wholeEnd(text, units)))

/**
 * How many units of a text may be taken in so many tokens. Each try is scaled by what the last one cost, so that few are
 * needed; the first is the most that any text of so many tokens has.
 */
function longestPart(tokens: number, most: number, part: (units: number) => string): number {
  let units = Math.min(most, tokens * UNITS_PER_TOKEN)
  while (units > 0) {
    const taken = part(units)
    const cost = estimateTokens(taken)
    if (cost <= tokens) return taken.length
    units = Math.min(units - 1, Math.floor((taken.length * tokens) / cost))
  }
  return 0
}

/** A token is at most four code points by the estimate, and these at most two units each. */
const UNITS_PER_TOKEN = 8

/** The first units of a text, without half of a pair of surrogates. */
function wholeStart(text: string, units: number): string {
  const part = text.slice(0, units)
  return part.isWellFormed() || units === 0 ? part : part.slice(0, -1)
}

function wholeEnd(text: string, units: number): string {
  const part = text.slice(text.length - units)
  return part.isWellFormed() || units === 0 ? part : part.slice(1)
}

const sum = (numbers: readonly number[]): number => numbers.reduce((total, number) => total + number, 0)
