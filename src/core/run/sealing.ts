import {
  callsRef,
  diffRef,
  factRef,
  inputRef,
  messageRef,
  planRef,
  traceRef,
} from '../../protocol/execution/content-refs.ts'
import type { ContinueRequest } from '../../protocol/execution/continue.ts'
import type { ContentRef } from '../../protocol/execution/ids.ts'
import type { PlainMap, SealedMap } from '../../protocol/execution/sealed.ts'
import type { TurnResponse } from '../../protocol/execution/turn.ts'
import { callsText, factText, proposedDiff } from './contents.ts'
import { awaitingEncrypt, withToEncrypt } from './envelope.ts'
import type { RunInputEvent } from './inputs.ts'
import { jsonBytes } from './json-bytes.ts'
import { incoming, injectedCiphertext, isTooMuch, isTrace } from './seal-admission.ts'
import { openedRefs, repeated, textsOf } from './seal-repeats.ts'
import { NOTHING_UNSEALED, type RunState, type Unsealed } from './state.ts'
import type { Refusal, Step, StepContext } from './step.ts'
import type { CallRecord, TraceEntry, Write } from './writes.ts'

/** What the machine has to know in a sealed session besides its state. */
export type Sealing = {
  sessionId: string
  keyId: string
  /** The texts that are in memory, by reference: those not sealed yet, and those that the client has opened. */
  held: ReadonlyMap<ContentRef, string>
  /** The session has the ciphertext. */
  isSealed(ref: ContentRef): boolean
  /** The fact of the session that bears this key, as far as facts are open; null for none. */
  factOf(key: string): string | null
  /** The sealable part of the input that comes with an `execute`; null with anything else. */
  bundle: string | null
}

type Plain = (
  state: RunState | null,
  input: RunInputEvent,
  context: StepContext,
) => Step | Refusal | { dropped: true }

/**
 * The machine of a sealed session (EC 17): that of a clear one, and between it and storage everything that is content is
 * taken out of what is stored. Where the clear machine tells an outcome, the texts that lack their ciphertext go with it;
 * where a message answers one, the ciphertext has to come along, all of it or nothing changes.
 */
export function sealedStep(
  plain: Plain,
  state: RunState | null,
  input: RunInputEvent,
  context: StepContext,
  sealing: Sealing,
): Step | Refusal | { dropped: true } {
  const before = state?.unsealed ?? NOTHING_UNSEALED
  const again = state === null ? null : repeated(state, input, context, sealing)
  if (again !== null) return again
  const result = plain(state, input, context)
  if (!('state' in result)) return result
  const seals = incoming(state, input, result, sealing)
  if ('refused' in seals) return seals
  return new Sealer(state, before, input, result, context, sealing, seals.taken).run()
}

/** Takes the content out of one accepted step. */
class Sealer {
  readonly #before: RunState | null
  readonly #unsealed: Unsealed
  readonly #input: RunInputEvent
  readonly #result: Step
  readonly #context: StepContext
  readonly #sealing: Sealing
  /** Ciphertext that came with the input. */
  readonly #taken: SealedMap
  /** New texts, and texts that the input brought. */
  readonly #contents: PlainMap = {}
  /** Facts recorded in this step, by key: a later one replaces an earlier one. */
  readonly #facts = new Map<string, string>()
  #refs: ContentRef[]
  /** The user's words that came with this request, unsealed. */
  #words: ContentRef | null = null

  constructor(
    before: RunState | null,
    unsealed: Unsealed,
    input: RunInputEvent,
    result: Step,
    context: StepContext,
    sealing: Sealing,
    taken: SealedMap,
  ) {
    this.#before = before
    this.#unsealed = unsealed
    this.#input = input
    this.#result = result
    this.#context = context
    this.#sealing = sealing
    this.#taken = taken
    this.#refs = unsealed.refs.filter((ref) => taken[ref] === undefined)
  }

  run(): Step {
    const input = this.#input
    const message = input.type === 'continuation_received' ? input.message : null
    if (message) {
      // A result that was settled before stands as it was sealed, unless this is the very request that brought it.
      const isSameRequest = this.#isResend()
      const settled = new Set(
        this.#result.writes.flatMap((write) => (write.w === 'settle_call' ? [write.callId] : [])),
      )
      Object.assign(this.#contents, textsOf(message, isSameRequest ? null : settled, this.#askedFor(message)))
    }
    const gone = this.#gone()
    const sealed: Write[] = Object.entries(this.#taken).map(([ref, payload]) => {
      const text = this.#contents[ref] ?? this.#sealing.held.get(ref)
      return { w: 'sealed', ref, payload, ...(text === undefined ? {} : { weight: jsonBytes(text) }) }
    })
    const writes: Write[] = [
      ...(gone.length === 0 ? [] : [{ w: 'dropped' as const, refs: gone }]),
      ...sealed,
      ...this.#result.writes.flatMap((write) => this.#strip(write)),
    ]
    const result = this.#told({ ...this.#result, writes }, gone)
    return { ...result, contents: this.#contents }
  }

  /**
   * What the client may give the text of: what it was asked to seal, and whatever it has sealed; of that the pause asked for
   * some, and the first of two equal requests has brought the rest (EC 17.3).
   */
  #askedFor(message: ContinueRequest): ContentRef[] {
    return [...this.#unsealed.refs, ...openedRefs(message).filter(this.#sealing.isSealed)]
  }

  /** Unsealed content whose text is in nobody's hands any more; what a second stop gives up. */
  #gone(): ContentRef[] {
    const { type } = this.#input
    if (!this.#isRequest() && type !== 'object_started') return []
    const phase = this.#before?.phase
    const givesUp = this.#isStop() && phase?.k === 'AwaitingEncrypt' && phase.stopped === true
    const isHeld = (ref: ContentRef) => this.#contents[ref] !== undefined || this.#sealing.held.has(ref)
    const gone = this.#refs.filter((ref) => givesUp || !isHeld(ref))
    if (this.#bringsWords()) gone.push(...this.#tooMuch(gone))
    const left = new Set(gone)
    this.#refs = this.#refs.filter((ref) => !left.has(ref))
    return gone
  }

  /** New words begin a run, or go on with one. */
  #bringsWords(): boolean {
    const input = this.#input
    return (
      input.type === 'execute_requested' ||
      (input.type === 'continuation_received' && input.message.type === 'inject')
    )
  }

  /** What is given up so that a client that never seals does not fill the memory of the object, nor its own request. */
  #tooMuch(gone: readonly ContentRef[]): ContentRef[] {
    const dead = new Set(gone)
    const kept = this.#refs.filter((ref) => !dead.has(ref))
    const textOf = (ref: ContentRef) => this.#contents[ref] ?? this.#sealing.held.get(ref)
    if (!isTooMuch(kept, textOf)) return []
    const begins = this.#input.type === 'execute_requested'
    const others = kept.filter((ref) => !isTrace(ref))
    return begins && isTooMuch(others, textOf) ? kept : kept.filter(isTrace)
  }

  #isRequest(): boolean {
    const { type } = this.#input
    return type === 'execute_requested' || type === 'continuation_received' || this.#endsByDevice()
  }

  /** A device has ended the run, as a stop would have: what is left to seal is told. */
  #endsByDevice(): boolean {
    const { type } = this.#input
    return (type === 'device_decided' || type === 'question_cancelled') && this.#result.reply !== undefined
  }

  /** The request that was being served, once more. */
  #isResend(): boolean {
    const input = this.#input
    return 'digest' in input && this.#before?.unsettled?.digest === input.digest
  }

  #isStop(): boolean {
    return this.#input.type === 'continuation_received' && this.#input.message.type === 'break'
  }

  /** New content: its text is kept in memory, and the client is asked to seal it. */
  #content(ref: ContentRef, text: string): void {
    // Half of a surrogate pair has no UTF-8, and so no ciphertext.
    this.#contents[ref] = text.toWellFormed()
    this.#refs.push(ref)
  }

  #strip(write: Write): Write[] {
    switch (write.w) {
      case 'run_input': {
        const { bundle, sessionId } = this.#sealing
        if (bundle === null) throw new Error('invariant broken: a sealed run without its bundle')
        // That of the run before was not sealed, and is not wanted any more.
        this.#refs = this.#refs.filter((ref) => ref !== inputRef(sessionId))
        this.#content(inputRef(sessionId), bundle)
        return [write]
      }
      case 'user_message': {
        const input = this.#input
        const ciphertext = input.type === 'continuation_received' ? injectedCiphertext(input.message) : null
        const ref = messageRef(write.id)
        this.#content(ref, write.text)
        if (ciphertext === null) this.#words = ref
        else this.#refs.pop()
        return [
          { ...write, text: '' },
          ...(ciphertext === null
            ? []
            : [{ w: 'sealed' as const, ref, payload: ciphertext, weight: jsonBytes(write.text) }]),
        ]
      }
      case 'assistant_message': {
        this.#content(messageRef(write.id), write.text)
        const calls = callsText(write)
        if (calls !== null) this.#content(callsRef(write.id), calls)
        for (const { id, arguments: args, recordsDiff } of write.calls)
          if (recordsDiff) this.#content(diffRef(id), proposedDiff(args))
        const { seen: _, ...rest } = write
        return [
          {
            ...rest,
            text: '',
            calls: write.calls.map(({ id, name, recordsDiff, answer }) => ({
              id,
              // What the router answered itself may be a name that the model made up, or that of a skill: both are content.
              name: answer === undefined ? name : '',
              arguments: {},
              recordsDiff,
              ...(answer === undefined ? {} : { answer: { ...answer, result: '' } }),
            })),
          },
        ]
      }
      case 'settle_call':
        // What cancels a call is the router's own note, and no content.
        return [this.#isResults() ? { ...write, content: '' } : write]
      case 'memory':
        return [this.#stripMemory(write)]
      case 'plan':
        this.#content(planRef(write.id), write.content)
        return [{ ...write, content: '' }]
      case 'approval': {
        const { reason: _, ...rest } = write
        return [rest]
      }
      case 'trace':
        return [{ ...write, entries: write.entries.flatMap((entry) => this.#stripTrace(entry)) }]
      case 'call':
      case 'call_settled':
        return [{ ...write, call: stripCall(write.call) }]
      case 'close_turn':
        return [{ ...write, outcome: bareFailure(write.outcome) }]
      default:
        return [write]
    }
  }

  #isResults(): boolean {
    return this.#input.type === 'continuation_received' && this.#input.message.type === 'tool_results'
  }

  #stripMemory(write: Extract<Write, { w: 'memory' }>): Write {
    const { id, op } = write
    if (op.scope === 'user') return write
    const known = this.#facts.get(op.key) ?? this.#sealing.factOf(op.key)
    if (op.op === 'forget') {
      this.#facts.delete(op.key)
      if (known !== null) this.#refs = this.#refs.filter((ref) => ref !== factRef(known))
      return {
        w: 'memory',
        id,
        op: {
          op: 'forget',
          scope: 'session',
          key: '',
          sealed: true,
          ...(known === null ? {} : { factId: known }),
        },
      }
    }
    this.#facts.set(op.key, id)
    this.#content(factRef(id), factText(op.key, op.content))
    const { localOnly } = op
    return {
      w: 'memory',
      id,
      op: {
        op: 'record',
        scope: 'session',
        key: '',
        content: '',
        localOnly,
        sealed: true,
        ...(known === null ? {} : { replaces: known }),
      },
    }
  }

  /** Each candidate is an event of its own: clients open each as one payload (D28). */
  #stripTrace(entry: TraceEntry): TraceEntry[] {
    const { payload } = entry
    if (payload.type === 'sealed') return [entry]
    const payloads =
      payload.type === 'context_selection_list'
        ? payload.items.map((item) => ({ type: 'context_selection' as const, ...item }))
        : [payload]
    return payloads.map((single, index) => {
      const id = index === 0 ? entry.id : this.#context.newId()
      this.#content(traceRef(id), JSON.stringify(single))
      return { ...entry, id, payload: { type: 'sealed', event_type: single.type } }
    })
  }

  /** Puts what has to be sealed into the outcome that is told, and notes that it was (EC 5.5). */
  #told(step: Step, gone: readonly ContentRef[]): Step {
    const answer = step.effects.find((effect) => effect.e === 'answer')
    const outcome = answer?.outcome ?? (step.reply?.by === 'outcome' ? step.reply.outcome : null)
    if (outcome === null) return this.#silent(step, gone)
    const refs = this.#refs
    const texts = Object.fromEntries(refs.map((ref) => [ref, this.#textOf(ref)]))
    // Traces alone hold nothing up: they ride on the next outcome.
    const ends = outcome.status === 'idle' || outcome.status === 'error'
    const isAsked = refs.length > 0 && (!ends || refs.some((ref) => !isTrace(ref)))
    const told =
      isAsked && outcome.status === 'idle'
        ? awaitingEncrypt(texts, outcome.data.trace_id, outcome.data.ended)
        : isAsked
          ? withToEncrypt(outcome, texts)
          : outcome
    const waits = isAsked && (ends || outcome.status === 'completed')
    const stopped = this.#isStop() ? { stopped: true as const } : {}
    return {
      ...step,
      state: {
        ...step.state,
        ...(waits ? { phase: { k: 'AwaitingEncrypt', ...stopped, resume: 'Finalize' } } : {}),
        unsealed: {
          refs,
          told: isAsked ? refs.length : 0,
          answered: this.#answered(answer !== undefined),
          words: null,
        },
      },
      effects: step.effects.map((effect) => (effect.e === 'answer' ? { ...effect, outcome: told } : effect)),
      ...(step.reply?.by === 'outcome' ? { reply: { by: 'outcome' as const, outcome: told } } : {}),
    }
  }

  /** A step that tells no outcome: a turn begins or goes on, or something changes beside it. */
  #silent(step: Step, gone: readonly ContentRef[]): Step {
    const before = this.#unsealed
    const unsealed: Unsealed = this.#isRequest()
      ? {
          refs: this.#refs,
          told: 0,
          answered: null,
          words: this.#words ?? (this.#isResend() ? before.words : null),
        }
      : { ...before, refs: this.#refs }
    // Sent again, a request whose words went with the memory begins anew: nothing of it was kept. Its run was cut off all
    // the same, and is not over.
    const wordsGone = before.words !== null && gone.includes(before.words)
    const { unsettled } = step.state
    const cut =
      wordsGone && !this.#isRequest() && unsettled ? { unsettled: { ...unsettled, digest: '' } } : {}
    return { ...step, state: { ...step.state, ...cut, unsealed } }
  }

  #answered(byTurn: boolean): Unsealed['answered'] {
    const { unsettled = null, planning = false } = this.#before ?? {}
    if (byTurn) return unsettled && { ...unsettled, ...(planning ? { planning } : {}) }
    const input = this.#input
    if (input.type !== 'continuation_received' || input.message.type !== 'sealed') return null
    return { digest: input.digest, kind: 'sealed' }
  }

  #textOf(ref: ContentRef): string {
    const text = this.#contents[ref] ?? this.#sealing.held.get(ref)
    if (text === undefined) throw new Error('invariant broken: content to seal that nobody holds')
    return text
  }
}

/** Of what a turn came to only the code of a failure is kept; its words may quote what was said (D20). */
const bareFailure = (outcome: TurnResponse | null): TurnResponse | null =>
  outcome?.status === 'error'
    ? { status: 'error', data: { error: { code: outcome.data.error.code, message: 'the run has failed' } } }
    : null

/** What a call used is told by its trace, which is sealed (EC 20.2); what nobody knows is told nowhere, and so marked. */
const stripCall = ({ seen: _, cost: __, usage, ...call }: CallRecord): CallRecord => ({
  ...call,
  usage: null,
  ...(usage === null ? {} : { sealed: true as const }),
})
