import { MAX_ANSWER_CHARS, MAX_ARGUMENT_CHARS, MAX_CALL_LABEL_CHARS, MAX_CALLS_PER_ANSWER } from './bounds.ts'
import { MalformedAnswer } from './upstream-call.ts'

/**
 * Counts what one answer holds, while it comes. Each method throws MalformedAnswer when the answer outgrows its bounds, so
 * that an endless one ends the call instead of filling the memory.
 */
export class AnswerBounds {
  #chars = 0
  #calls = 0
  /** Arguments that have come so far, by the id of their call within this answer. */
  readonly #argued = new Map<string, number>()
  readonly #issuedIds = new Set<string>()

  /** Text, reasoning, or something that is kept with it. */
  said(chars: number): void {
    this.#chars += chars
    if (this.#chars > MAX_ANSWER_CHARS) throw new MalformedAnswer('its answer has no end')
  }

  /** A piece of the arguments of a call that is not whole yet. */
  argued(call: string, chars: number): void {
    const known = this.#argued.get(call)
    if (known === undefined) this.#countCall()
    const total = (known ?? 0) + chars
    this.#argued.set(call, total)
    if (total > MAX_ARGUMENT_CHARS) throw new MalformedAnswer('the arguments of a call have no end')
    this.said(chars)
  }

  /**
   * A whole call.
   * @param label its name
   * @param call its id within this answer, if pieces of it were counted
   * @param chars what its arguments have, of a call that came at once
   */
  called(call: string | undefined, label: string, chars: number): void {
    const known = call === undefined ? undefined : this.#argued.get(call)
    if (known === undefined) this.#countCall()
    if (label.trim() === '') throw new MalformedAnswer('a call of it has no name')
    if (label.length > MAX_CALL_LABEL_CHARS) throw new MalformedAnswer('a call of it has an endless name')
    if (chars > MAX_ARGUMENT_CHARS) throw new MalformedAnswer('the arguments of a call have no end')
    this.said(Math.max(0, chars - (known ?? 0)))
  }

  /** Whether this id tells its call apart: the second call of an answer under one id would be taken for the first. */
  isFirst(providerCallId: string): boolean {
    if (this.#issuedIds.has(providerCallId) || providerCallId.length > MAX_CALL_LABEL_CHARS) return false
    this.#issuedIds.add(providerCallId)
    return true
  }

  #countCall(): void {
    this.#calls += 1
    if (this.#calls > MAX_CALLS_PER_ANSWER) throw new MalformedAnswer('it makes too many calls at once')
  }
}
