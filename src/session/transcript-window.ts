import type { TranscriptCall } from '../core/transcript.ts'
import type { TurnView } from '../core/turn-view.ts'
import { resultRef } from '../protocol/execution/content-refs.ts'
import { MAX_HISTORY_BYTES, MAX_SEALED_HISTORY_BYTES } from '../storage/limits.ts'
import {
  type MessageSize,
  messageBytes,
  runStart,
  sealedAnswers,
  sizesBackFrom,
  wordSizes,
} from '../storage/session/message-sizes.ts'
import { loadMessages, type StoredMessage } from '../storage/session/messages.ts'
import { eachPastCall } from '../storage/session/past-calls.ts'
import { sealedBytes } from '../storage/session/sealed-contents.ts'
import type { Sql } from '../storage/session/sql.ts'
import { loadText, textBytes } from '../storage/session/texts.ts'
import { uploadedImages } from './uploaded-images.ts'

/** What of the transcript takes part in a turn. */
export type History = Pick<TurnView, 'olderMessages'> & {
  transcript: readonly StoredMessage[]
  pastCalls: readonly TranscriptCall[]
  /** In their place in a sealed session: the answers that made them, whose calls are to be opened. */
  pastAnswers: readonly StoredMessage[]
}

/** History that takes part in a turn (D28). */
export const MAX_HISTORY_MESSAGES = 1000
/** More text than this is read anew for each turn rather than kept: many objects share one memory. */
const MAX_KEPT_BYTES = 2 * 1024 * 1024
/** Sizes asked for at once: a long text in one of the first makes those of the others of no interest. */
const SIZES_PER_READ = 100
/** Paths and command lines of calls that are left out: more than any run names. */
const MAX_PAST_UNITS = 8 * 1024 * 1024

/** Of a sealed run: answers that are left out, and what their calls may take to be opened beside the history. */
const MAX_PAST_ANSWERS = 2_000
const MAX_SEALED_PAST_BYTES = 512 * 1024

/** Stands for a result that no prompt could hold beside what has to be in it. */
const tooLong = (bytes: number): string => `This result is left out: its ${bytes} bytes are too many.`

type Kept = { size: MessageSize; message: StoredMessage }
type PastCalls = { runId: string; beforeSeq: number; calls: TranscriptCall[]; units: number }

/** What is known of the calls of a run that stand before its recent messages; not `whole`: not of all of them. */
type Past = { runId: string; calls: TranscriptCall[]; answers: StoredMessage[]; whole: boolean }

/** `sealed`: the texts of the session are in envelopes, and what is read of it is without them. */
type WindowOptions = { messages?: number; bytes?: number; pastBytes?: number; sealed?: boolean }

/**
 * The newest messages of a session, up to a number of them and up to a size of all their texts (D28), and what is kept
 * of them from turn to turn: to read a thousand rows takes longer than all the rest of a decision. What is kept is always
 * a row of what is stored; whoever stores says what has changed.
 *
 * In a sealed session envelopes are measured in place of texts, and the calls of a run that are left out are not known.
 */
export class TranscriptWindow {
  readonly #sql: Sql
  readonly #maxMessages: number
  readonly #maxBytes: number
  readonly #sealed: boolean
  readonly #maxPastBytes: number
  #kept = new Map<number, Kept>()
  #past: PastCalls | null = null

  constructor(
    sql: Sql,
    {
      messages = MAX_HISTORY_MESSAGES,
      bytes,
      pastBytes = MAX_SEALED_PAST_BYTES,
      sealed = false,
    }: WindowOptions = {},
  ) {
    this.#sql = sql
    this.#maxMessages = messages
    this.#maxBytes = bytes ?? (sealed ? MAX_SEALED_HISTORY_BYTES : MAX_HISTORY_BYTES)
    this.#sealed = sealed
    this.#maxPastBytes = pastBytes
  }

  /**
   * The history of a turn in a session of `total` messages. Of the run `runId` what the user said is always part, and so
   * is the newest message; its older rounds are history like any other. Null: the turn begins a run.
   */
  read(total: number, runId: string | null): History {
    const { words, recent } = this.#choose(total, runId)
    const sizes = [...words, ...recent]
    const bytes = sizes.reduce((sum, size) => sum + messageBytes(size), 0)
    const transcript = bytes <= this.#maxBytes ? this.#load(sizes) : this.#loadTight(sizes, bytes)
    // Of a sealed message nothing long is kept.
    const maxKept = this.#sealed ? this.#maxBytes : Math.min(MAX_KEPT_BYTES, this.#maxBytes)
    this.#kept = new Map(
      bytes > maxKept
        ? []
        : sizes.flatMap((size, index) => {
            const message = transcript[index]
            return message === undefined ? [] : [[size.seq, { size, message }] as const]
          }),
    )
    const [first] = recent
    const past = first === undefined ? null : this.#sealed ? this.#sealedPast(first) : this.#pastCalls(first)
    return {
      transcript: past?.whole === false ? withoutTrust(transcript, past.runId) : transcript,
      olderMessages: total - transcript.length,
      pastCalls: past?.calls ?? [],
      pastAnswers: past?.answers ?? [],
    }
  }

  /** Messages from this one on were stored or changed; null: none was. */
  changed(fromSeq: number | null): void {
    if (fromSeq === null) return
    for (const seq of this.#kept.keys()) if (seq >= fromSeq) this.#kept.delete(seq)
    if (this.#past !== null && this.#past.beforeSeq > fromSeq) this.#past = null
  }

  /** `recent`: the newest messages without a gap; `words`: what the user said in the run before them. Oldest first. */
  #choose(total: number, runId: string | null): { words: MessageSize[]; recent: MessageSize[] } {
    const recent: MessageSize[] = []
    let bytes = 0
    for (const size of this.#sizes(total)) {
      const grown = bytes + messageBytes(size)
      if (recent.length > 0 && grown > this.#maxBytes) break
      recent.push(size)
      bytes = grown
      if (recent.length === this.#maxMessages) break
    }
    const oldest = recent.at(-1)
    const words =
      oldest === undefined || oldest.runId !== runId || oldest.seq === 1
        ? []
        : wordSizes(this.#sql, runStart(this.#sql, runId, oldest.seq), oldest.seq, this.#sealed)
    bytes += words.reduce((sum, size) => sum + messageBytes(size), 0)
    // What the user said in the run has its place; the oldest of the rest makes room for it.
    while (bytes > this.#maxBytes && recent.length > 1) {
      const left = recent.pop()
      if (left?.role === 'user' && left.runId === runId) words.push(left)
      else if (left !== undefined) bytes -= messageBytes(left)
    }
    return { words, recent: recent.reverse() }
  }

  /** Sizes from the newest message backwards; those of kept messages are known. */
  *#sizes(total: number): Generator<MessageSize, void> {
    const newestKept = Math.max(0, ...this.#kept.keys())
    for (let seq = total; seq > 0; ) {
      const kept = this.#kept.get(seq)
      if (kept !== undefined) {
        yield kept.size
        seq--
        continue
      }
      const unknown = seq > newestKept ? seq - newestKept : seq
      const sizes = sizesBackFrom(this.#sql, seq, Math.min(SIZES_PER_READ, unknown), this.#sealed)
      yield* sizes
      const last = sizes.at(-1)
      if (last === undefined) return
      seq = last.seq - 1
    }
  }

  /** The messages of these sizes, in their order; neighbours that are not kept are read together. */
  #load(sizes: readonly MessageSize[]): StoredMessage[] {
    const messages: StoredMessage[] = []
    for (let at = 0; at < sizes.length; ) {
      const size = sizes[at]
      if (size === undefined) break
      const kept = this.#kept.get(size.seq)
      let count = 1
      if (kept === undefined) {
        const isMissing = (seq: number) => sizes[at + count]?.seq === seq && !this.#kept.has(seq)
        while (isMissing(size.seq + count)) count++
        messages.push(...this.#withImages(loadMessages(this.#sql, size.seq, count)))
      } else messages.push(kept.message)
      at += count
    }
    return messages
  }

  /** The same where even what has to be there is too much: of the newest message, results give way (D27). */
  #loadTight(sizes: readonly MessageSize[], bytes: number): StoredMessage[] {
    const newest = sizes.at(-1)
    if (newest === undefined) return []
    let room = this.#maxBytes - (bytes - newest.callBytes)
    const readResult = (stored: string, callId: string): string => {
      // What the router notes of a call that it ended is in clear in any session.
      const sealed = this.#sealed ? sealedBytes(this.#sql, resultRef(callId)) : null
      const size = sealed ?? textBytes(this.#sql, stored)
      if (size > room) return tooLong(size)
      room -= size
      return loadText(this.#sql, stored)
    }
    const last = this.#withImages(loadMessages(this.#sql, newest.seq, 1, { readResult }))
    return [...this.#load(sizes.slice(0, -1)), ...last]
  }

  /** With the pictures that the user refers to, whose content stays where it is. A sealed session has none. */
  #withImages(messages: StoredMessage[]): StoredMessage[] {
    if (this.#sealed) return messages
    return messages.map((message) => {
      const images = message.role === 'user' ? uploadedImages(this.#sql, message.text) : []
      return images.length === 0 ? message : { ...message, images }
    })
  }

  /** What a sealed run called before its oldest recent message, as far as that can be opened with the rest. */
  #sealedPast({ runId, seq }: MessageSize): Past {
    const from = runStart(this.#sql, runId, seq)
    const { count, bytes } = sealedAnswers(this.#sql, from, seq)
    if (count === 0) return { runId, calls: [], answers: [], whole: true }
    if (count > MAX_PAST_ANSWERS || bytes > this.#maxPastBytes)
      return { runId, calls: [], answers: [], whole: false }
    const answers = loadMessages(this.#sql, from, seq - from, { texts: false }).filter(
      ({ role, calls }) => role === 'assistant' && calls.length > 0,
    )
    return { runId, calls: [], answers, whole: true }
  }

  /** What the run of the oldest recent message called before it. What was found for an earlier turn is built upon. */
  #pastCalls({ runId, seq: beforeSeq }: MessageSize): Past {
    const known = this.#past?.runId === runId && this.#past.beforeSeq <= beforeSeq ? this.#past : null
    const past = known ?? { runId, beforeSeq: runStart(this.#sql, runId, beforeSeq), calls: [], units: 0 }
    if (past.beforeSeq < beforeSeq) {
      for (const call of eachPastCall(this.#sql, past.beforeSeq, beforeSeq)) {
        past.units += JSON.stringify(call.arguments).length
        if (past.units > MAX_PAST_UNITS) break
        past.calls.push(call)
      }
      past.beforeSeq = beforeSeq
    }
    this.#past = past
    return { runId, calls: [...past.calls], answers: [], whole: past.units <= MAX_PAST_UNITS }
  }
}

/** Of a run whose calls are not all known, any word may repeat what only local models may see: it fails closed (U37). */
const withoutTrust = (messages: readonly StoredMessage[], runId: string): StoredMessage[] =>
  messages.map((message) =>
    message.runId === runId && message.role === 'assistant' ? { ...message, localOnly: true } : message,
  )
