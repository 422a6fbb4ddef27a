import { resultRef } from '../protocol/execution/content-refs.ts'
import type { ApprovalDecision, ContinueRequest, ToolResult } from '../protocol/execution/continue.ts'
import type { ExecuteRequest } from '../protocol/execution/execute.ts'
import type { PlainMap } from '../protocol/execution/sealed.ts'
import type { CompletedTurn, PendingApproval, RunResponse, ToolRequest } from '../protocol/execution/turn.ts'
import { err, ok, type Result } from '../protocol/result.ts'
import { CallRunner, DEVICE_DECISIONS } from './call-runner.ts'
import type { SwitchyardClient } from './client.ts'
import type { Sealer } from './crypto/sealer.ts'
import type { ClientFailure } from './failure.ts'
import { fittingResults } from './fitting-results.ts'
import { graceAfter } from './grace.ts'
import { PauseWatch, type WatchedPause } from './pause-watch.ts'
import type { NewsSource } from './remote-follower.ts'
import { lockedFailure, Sealing, toEncrypt } from './sealing.ts'
import { handIn, sealLeftovers } from './sealing-hand-in.ts'
import type { Approver, Decision, ToolRunner } from './tool-runner.ts'
import { type Opening, TurnFollower } from './turn-follower.ts'
import type { OnReconnect, StreamEvent, TurnEnd } from './turn-stream.ts'
import type { Words } from './words.ts'

/**
 * How a run ended. `stopped` = by our own signal; `elsewhere` = by another device; without both a gate was rejected.
 * `unkept`: why the router does not keep what was said last, since its ciphertext could not be handed in.
 */
export type RunOutcome =
  | { status: 'completed'; turn: CompletedTurn; unkept?: ClientFailure }
  | { status: 'idle'; stopped: boolean; elsewhere?: true; unkept?: ClientFailure }
  | { status: 'error'; failure: ClientFailure }

/** The progress of a run: the wire's own events, what is done on this machine, and exactly one `run_ended` at the end. */
export type RunEvent =
  | Exclude<StreamEvent, { type: 'failed' }>
  | { type: 'tool_started'; call: ToolRequest }
  | { type: 'tool_finished'; call: ToolRequest; result: ToolResult; summary?: string }
  | { type: 'gate_decided'; approval: PendingApproval; decision: Decision }
  /** What was asked here was settled by a device meanwhile (D05). */
  | { type: 'settled_elsewhere'; what: 'call' | 'gate'; decision: ApprovalDecision | 'answered' }
  /** The run went on from there by the doing of another device: what follows is not the answer to what was sent here. */
  | { type: 'moved_elsewhere'; why: 'decision' | 'words' }
  /** The run goes on from these words; `cut`: the answer that was being given ends where it stands. */
  | { type: 'words_sent'; texts: string[]; cut: boolean }
  /** They were taken, but the router refused them, or did not say whether it has them. */
  | { type: 'words_not_sent'; texts: string[]; failure: ClientFailure }
  | { type: 'run_ended'; outcome: RunOutcome }

export type DriveOptions = {
  client: Pick<
    SwitchyardClient,
    'executeStream' | 'continueStream' | 'currentRunStream' | 'currentRun' | 'sessions'
  >
  sessionId: string
  request: ExecuteRequest
  tools: ToolRunner
  approver: Approver
  /** Of an encrypted session: what holds its key. */
  sealer?: Sealer
  /** Tells what devices do meanwhile, so that this machine asks nothing that is settled (D05). */
  devices?: NewsSource
  /** What the user says while the run goes on: it cuts what a model is saying, and waits for a tool and for an answer. */
  words?: Words
  /** Stops the run: the tool at work is ended and the router told to `break`. */
  signal?: AbortSignal
  onReconnect?: OnReconnect
}

/** A router that lost a turn asks for the same answers again; one that never takes them is broken. */
const MAX_RESENDS = 3
/** How long the router may take to confirm a `break`, and then to take ciphertext; stopping must not hang. */
const STOP_TIMEOUT_MS = 10_000

const NO_KEY: ClientFailure = {
  kind: 'unsupported',
  message: 'this session is end-to-end encrypted and this client holds no key for it',
}

/**
 * Carries one prompt to its end (execution protocol, "The turn loop"): starts the run, answers its pauses, and never
 * runs a call twice, whether it comes in an event, in `turn_end` or again after a crash (EC 29.7, U24). In an encrypted
 * session it opens what the router needs and seals what the router writes (EC 17.3, EC 29.4 to 29.6).
 */
export async function* driveRun(options: DriveOptions): AsyncGenerator<RunEvent, void, undefined> {
  const outcome = yield* new Drive(options).run()
  yield { type: 'run_ended', outcome }
}

/** What the driver does after a pause: send a message, end, or see where the run stands that has moved on by itself. */
type Next = { send: ContinueRequest } | { outcome: RunOutcome } | { moved: true }

class Drive {
  readonly #options: DriveOptions
  readonly #signal: AbortSignal
  readonly #sealing: Sealing | undefined
  readonly #calls: CallRunner
  readonly #follower: TurnFollower
  readonly #decisions = new Map<string, Decision>()
  /** What the present pause asked to seal. */
  #unsealed: PlainMap = {}
  /** What the present pause had opened, when it was answered; another kind of pause ends that. */
  #opened: string | undefined
  #resends = 0
  /** A gate was rejected here: a run that ends without an answer ends for that. */
  #declined = false
  /** New words were taken before the prompt was seen to be sealed; false once it was, or once the run has had a pause. */
  #mayLackPrompt: boolean | undefined

  constructor(options: DriveOptions) {
    this.#options = options
    this.#signal = options.signal ?? new AbortController().signal
    this.#sealing = options.sealer && new Sealing(options.sealer)
    this.#calls = new CallRunner(options.tools, options.approver, this.#signal)
    this.#follower = new TurnFollower({
      client: options.client,
      sessionId: options.sessionId,
      words: options.words,
      signal: this.#signal,
      sealed: this.#sealing !== undefined,
      onReconnect: options.onReconnect,
      isRepeatedPause: (end) => this.#isRepeatedPause(end),
      // What follows is another prompt, for which the same may have to be opened again.
      onWordsTaken: () => {
        this.#opened = undefined
        this.#mayLackPrompt = this.#mayLackPrompt ?? true
      },
    })
  }

  async *run(): AsyncGenerator<RunEvent, RunOutcome, undefined> {
    const { client, sessionId, request } = this.#options
    if (this.#signal.aborted) return { status: 'idle', stopped: true }
    let open: Opening = (options) => client.executeStream(sessionId, request, options)
    /** The refusal of a continuation, while the run's present state is being looked up. */
    let refusal: ClientFailure | undefined
    for (let continued = false; ; continued = true) {
      const followed = yield* this.#follower.followOrSpeak(open)
      // A run that is over needs no stopping, whenever the signal came.
      if (this.#signal.aborted && !(followed.ok && isOver(followed.value))) return yield* this.#stop()
      if (!followed.ok) {
        if (!continued || refusal || !maySettle(followed.error)) return this.#failed(followed.error)
        // Another device may have moved the run on: its present state decides, not our refused message (D05).
        refusal = followed.error
        open = (options) => client.currentRunStream(sessionId, options)
        continue
      }
      if (refusal && this.#isRepeatedPause(followed.value)) return failedWith(refusal)
      refusal = undefined
      if (this.#isRepeatedPause(followed.value) && ++this.#resends > MAX_RESENDS)
        return failedWith({
          kind: 'network',
          message: 'the router keeps asking for answers that it was given',
        })
      if (yield* this.#wentOn(followed.value)) {
        open = (options) => client.currentRunStream(sessionId, options)
        continue
      }
      const next = yield* this.#answer(followed.value)
      if (this.#signal.aborted && !('outcome' in next)) return yield* this.#stop()
      if ('outcome' in next) return next.outcome
      if ('moved' in next) {
        yield { type: 'moved_elsewhere', why: 'decision' }
        open = (options) => client.currentRunStream(sessionId, options)
        continue
      }
      open = (options) => client.continueStream(sessionId, next.send, options)
    }
  }

  async *#answer(end: TurnEnd): AsyncGenerator<RunEvent, Next, undefined> {
    const texts = this.#textsOf(end)
    if (!texts.ok) return { outcome: failedWith(texts.error) }
    this.#unsealed = texts.value
    if (this.#lacksPrompt(end.status, texts.value)) {
      yield* this.#stop()
      return { outcome: failedWith({ kind: 'network', message: PROMPT_LOST }) }
    }
    if (end.status !== 'awaiting_decrypt') this.#opened = undefined
    switch (end.status) {
      case 'completed':
        return { outcome: { status: 'completed', turn: end.data, ...(await this.#handIn(texts.value)) } }
      case 'idle':
        return {
          outcome: {
            status: 'idle',
            stopped: this.#signal.aborted,
            ...(this.#isStoppedElsewhere() ? { elsewhere: true as const } : {}),
          },
        }
      case 'error': {
        const { code, message, details } = end.data.error
        return {
          outcome: await this.#failed({ kind: 'turn', code, message, ...(details ? { details } : {}) }),
        }
      }
      case 'awaiting_tool':
        return yield* this.#watching(end, (watch) => this.#runCalls(end.data.tool_requests, watch))
      case 'awaiting_approval':
        return yield* this.#watching(end, (watch) => this.#decideGate(end.data.approval, watch))
      case 'awaiting_decrypt':
        return yield* this.#open(end)
      case 'awaiting_encrypt':
        return {
          outcome: {
            status: 'idle',
            stopped: this.#signal.aborted,
            ...(await this.#handIn(texts.value)),
          },
        }
    }
  }

  /**
   * Texts that nobody has sealed are in the router's memory alone. Words that reach a router which has died are answered, but
   * without the prompt before them: the first end behind them tells.
   */
  #lacksPrompt(status: TurnEnd['status'], texts: PlainMap): boolean {
    const isInDoubt = this.#sealing !== undefined && this.#mayLackPrompt === true
    this.#mayLackPrompt = false
    // Those ask for nothing.
    if (status === 'idle' || status === 'error') return false
    return isInDoubt && !Object.values(texts).includes(this.#options.request.input.text)
  }

  /** What a turn asks to seal; an error when this client cannot. */
  #textsOf(end: TurnEnd): Result<PlainMap, ClientFailure> {
    if (this.#sealing) {
      const texts = this.#sealing.textsOf(end)
      return texts.ok ? texts : err({ kind: 'unsupported', message: LOST })
    }
    if (end.status === 'awaiting_decrypt') {
      const [envelope] = Object.values(end.data.to_decrypt)
      return err(envelope ? lockedFailure(envelope.key_id) : NO_KEY)
    }
    return end.status === 'awaiting_encrypt' || Object.keys(toEncrypt(end)).length > 0 ? err(NO_KEY) : ok({})
  }

  /** The ciphertext that goes with the answer to the present pause; with the results of the client's own calls (EC 29.4). */
  #encrypted(results: readonly ToolResult[] = []) {
    if (!this.#sealing) return {}
    const texts = results.map(({ call_id, content }) => [resultRef(call_id), content] as const)
    return { encrypted: this.#sealing.seal({ ...this.#unsealed, ...Object.fromEntries(texts) }) }
  }

  /** Has the last texts of a run kept; the stop of the user leaves it a little time. */
  async #handIn(texts: PlainMap): Promise<{ unkept?: ClientFailure }> {
    if (!this.#sealing || Object.keys(texts).length === 0) return {}
    const { client, sessionId } = this.#options
    const grace = graceAfter(this.#signal, STOP_TIMEOUT_MS)
    try {
      const place = { client, sessionId, sealing: this.#sealing, signal: grace.signal }
      const unkept = await handIn(place, texts)
      return unkept ? { unkept } : {}
    } finally {
      grace.end()
    }
  }

  /** Answers a pause, and is told meanwhile what devices do about it. */
  async *#watching(
    pause: WatchedPause,
    answer: (watch: PauseWatch | undefined) => AsyncGenerator<RunEvent, Next, undefined>,
  ): AsyncGenerator<RunEvent, Next, undefined> {
    const { devices: source } = this.#options
    if (!source) return yield* answer(undefined)
    const watch = new PauseWatch({ source, pause, look: () => this.#look(), signal: this.#signal })
    try {
      const next = yield* answer(watch)
      if (!watch.moved.aborted) return next
      return watch.isOver ? { outcome: { status: 'idle', stopped: false, elsewhere: true } } : { moved: true }
    } finally {
      watch.end()
    }
  }

  /** Where the run stands, if the router says so: who does not hear goes on as if nothing had happened. */
  async #look(): Promise<RunResponse | undefined> {
    const { client, sessionId } = this.#options
    const run = await client.currentRun(sessionId, { signal: this.#signal })
    return run.ok ? run.value : undefined
  }

  /** A run that ends without an answer, and nothing that was done here explains it. */
  #isStoppedElsewhere(): boolean {
    return this.#options.devices !== undefined && !this.#declined && !this.#signal.aborted
  }

  /** Whether words of another device have cut the turn that was followed: the run then goes on without an answer to it. */
  async *#wentOn(end: TurnEnd): AsyncGenerator<RunEvent, boolean, undefined> {
    if (end.status !== 'idle' || !this.#options.devices || this.#signal.aborted || this.#declined)
      return false
    const run = await this.#look()
    if (run === undefined || run.status === 'idle' || run.status === 'error') return false
    yield { type: 'moved_elsewhere', why: 'words' }
    return true
  }

  async *#runCalls(
    calls: readonly ToolRequest[],
    watch: PauseWatch | undefined,
  ): AsyncGenerator<RunEvent, Next, undefined> {
    const others = this.#sealing && Object.values(this.#unsealed)
    const results = yield* this.#calls.answer(calls, (all) => fittingResults(all, others), watch)
    // The last answer of a device may have set the run going again.
    await watch?.quiet()
    return { send: { type: 'tool_results', data: { results, ...this.#encrypted(results) } } }
  }

  async *#decideGate(
    approval: PendingApproval,
    watch: PauseWatch | undefined,
  ): AsyncGenerator<RunEvent, Next, undefined> {
    const { approver } = this.#options
    const known = this.#decisions.get(approval.approval_id)
    let decision = known ?? (approval.decision && DEVICE_DECISIONS[approval.decision])
    if (!decision) {
      const asked = watch
        ? await watch.ask(
            approval.approval_id,
            (signal) => approver.decideGate(approval, AbortSignal.any([this.#signal, signal])),
            { accepts: () => true },
          )
        : { by: 'here' as const, value: await approver.decideGate(approval, this.#signal) }
      if (asked.by === 'device' && (asked.decision === 'moved' || asked.decision === 'answered'))
        return { moved: true }
      decision = asked.by === 'here' ? asked.value : DEVICE_DECISIONS[asked.decision]
      if (asked.by === 'device') yield { type: 'settled_elsewhere', what: 'gate', decision: asked.decision }
    }
    if (!known && !this.#signal.aborted) {
      this.#decisions.set(approval.approval_id, decision)
      this.#declined ||= decision.decision === 'rejected'
      yield { type: 'gate_decided', approval, decision }
    }
    const decisions = [{ approval_id: approval.approval_id, ...decision }]
    return { send: { type: 'approval_decisions', data: { decisions, ...this.#encrypted() } } }
  }

  /** Opens what the router needs. What it asked to seal goes along in plain text: the turn reads it from there (EC 29.5). */
  async *#open(
    end: Extract<TurnEnd, { status: 'awaiting_decrypt' }>,
  ): AsyncGenerator<RunEvent, Next, undefined> {
    if (!this.#sealing) throw new Error('invariant broken: a pause to be opened without a key')
    const opened = this.#sealing.open(end.data.to_decrypt)
    if (!opened.ok) {
      // Nobody else drives this run: it must not wait for a key that does not come.
      yield* this.#stop()
      return { outcome: failedWith(opened.error) }
    }
    this.#opened = refsOf(end)
    const plaintext = { ...opened.value, ...this.#unsealed }
    return { send: { type: 'decrypted', data: { plaintext, ...this.#encrypted() } } }
  }

  /** Tells the router to stop. A run that it never heard of is stopped as well. */
  async *#stop(): AsyncGenerator<RunEvent, RunOutcome, undefined> {
    let followed = yield* this.#sendBreak(this.#encryptedBreak())
    // The stop counts, whatever became of what it carried.
    if (!followed.ok && isInvalid(followed.error) && Object.keys(this.#unsealed).length > 0)
      followed = yield* this.#sendBreak({ type: 'break' })
    if (followed.ok) {
      const texts = this.#textsOf(followed.value)
      if (!texts.ok) return failedWith(texts.error)
      return { status: 'idle', stopped: true, ...(await this.#handIn(texts.value)) }
    }
    const { error } = followed
    if (isInvalid(error)) return { status: 'idle', stopped: true }
    return failedWith(
      error.kind === 'aborted' ? { kind: 'network', message: 'the router did not confirm the stop' } : error,
    )
  }

  #encryptedBreak(): ContinueRequest {
    if (Object.keys(this.#unsealed).length === 0) return { type: 'break' }
    return { type: 'break', data: this.#encrypted() }
  }

  #sendBreak(message: ContinueRequest) {
    const { client, sessionId } = this.#options
    const signal = AbortSignal.timeout(STOP_TIMEOUT_MS)
    const sealed = this.#sealing ? { sealed: true } : {}
    return this.#follower.follow(client.continueStream(sessionId, message, { signal, ...sealed }))
  }

  /** A turn that failed may have said something before, and an encrypted session keeps only what is sealed. */
  async #failed(failure: ClientFailure): Promise<RunOutcome> {
    if (this.#sealing && endedARun(failure)) {
      const { client, sessionId } = this.#options
      const signal = AbortSignal.timeout(STOP_TIMEOUT_MS)
      await sealLeftovers({ client, sessionId, sealing: this.#sealing, signal })
    }
    return failedWith(failure)
  }

  /**
   * A pause that was answered before: the router lost the turn that followed, or refused the answer and still stands
   * where it stood.
   */
  #isRepeatedPause(end: TurnEnd): boolean {
    if (end.status === 'awaiting_approval') return this.#decisions.has(end.data.approval.approval_id)
    if (end.status === 'awaiting_decrypt') return this.#opened === refsOf(end)
    return end.status === 'awaiting_tool' && this.#calls.hasAnswered(end.data.tool_requests)
  }
}

const LOST =
  'the router does not hold what this run said last any more, and this client has not seen it: send the prompt again'

const PROMPT_LOST =
  'the router died before the prompt was sealed, and has lost it: send it again, with what you said since'

const failedWith = (failure: ClientFailure): RunOutcome => ({ status: 'error', failure })

const isOver = ({ status }: TurnEnd): boolean =>
  status === 'completed' || status === 'idle' || status === 'error'

const isInvalid = (failure: ClientFailure): boolean =>
  failure.kind === 'http' && failure.code === 'invalid_request'

/** Refusals that another device's doing explains: a turn is being served, or the pause was settled. */
const maySettle = (failure: ClientFailure): boolean =>
  failure.kind === 'http' && (failure.code === 'run_in_flight' || failure.code === 'invalid_request')

/** Whether a turn was served and came to this; other refusals come before anything is done. */
const endedARun = (failure: ClientFailure): boolean =>
  failure.kind === 'turn' || (failure.kind === 'http' && failure.status >= 422 && !maySettle(failure))

/** What a pause wants opened, as one word to compare. */
const refsOf = ({ data }: Extract<TurnEnd, { status: 'awaiting_decrypt' }>): string =>
  JSON.stringify(Object.keys(data.to_decrypt).sort())
