import type { Refusal } from '../../core/operations/refusal.ts'
import { assertNever } from '../../protocol/assert.ts'
import { errorTrace } from '../../protocol/error-name.ts'
import { isMutation } from '../../protocol/remote/operation-kinds.ts'
import type { OutrightResult } from '../../protocol/remote/results.ts'
import type { RemoteSessionSettings } from '../../protocol/remote/session-settings.ts'
import type { StoredReceipt } from '../../storage/session/receipts.ts'
import type { Actor, OperationAnswer, OperationRequest, ReceiptStatus, SessionOperation } from '../rpc.ts'
import { Commands } from './commands.ts'
import type { Decision } from './decision.ts'
import { Decisions } from './decisions.ts'
import type { OperationsDeps } from './ports.ts'
import { Prompts, type Request } from './prompts.ts'
import { type Asked, answerOf, ReceiptDesk, rejected } from './receipt-desk.ts'
import { Successor } from './successor.ts'

const STALE: Refusal = {
  code: 'stale_session',
  message: 'the session is not listed under this registration any more',
}
const GONE: Refusal = { code: 'not_found', message: 'the session was deleted' }
const INTERNAL: Refusal = { code: 'internal', message: 'the router failed; nothing was applied' }

/**
 * What devices ask of a session (remote protocol, "Operations"). A mutation is done at most once: what it changes and its
 * receipt are one transaction, and nothing is waited for between the look at the session and that (RF 10, D29).
 */
export class Operations {
  readonly #deps: OperationsDeps
  readonly #desk: ReceiptDesk
  readonly #prompts: Prompts
  readonly #decisions: Decisions
  readonly #commands: Commands
  readonly #successor: Successor

  constructor(deps: OperationsDeps) {
    this.#deps = deps
    this.#desk = new ReceiptDesk(deps.sql)
    this.#prompts = new Prompts(deps)
    this.#decisions = new Decisions(deps)
    this.#commands = new Commands(deps)
    this.#successor = new Successor(deps, this.#prompts)
  }

  /** Answers an operation, once what the answer says is durable (U03). */
  async serve(actor: Actor, request: OperationRequest): Promise<OperationAnswer> {
    const { operation, registrationEpoch: epoch, requestId, digest } = request
    const changes = isMutation(operation.type)
    if (!this.#isListedUnder(epoch)) return changes ? rejected(STALE) : { receipt: null, result: told(STALE) }
    if (!changes) return { receipt: null, result: this.#read(operation) }
    const asked = { deviceId: actor.id, epoch, requestId, digest }
    const answer = await this.#desk.once(asked, () => this.#apply(actor, asked, operation))
    await this.#deps.sync()
    // A prompt that was queued may find that nothing goes on any more.
    if (operation.type === 'queue') this.runNext()
    return answer
  }

  /** What became of an earlier mutation of this actor; null when it is not known here. */
  status(
    actorId: string,
    target: { requestId: string; registrationEpoch: number | null },
  ): ReceiptStatus | null {
    return this.#desk.status(actorId, target)
  }

  /** The settings for devices; null before the first run (D09). */
  settings(): RemoteSessionSettings | null {
    return this.#commands.settings()
  }

  /** Goes on with what nobody else will: a prompt that was queued, or a turn of a device that a crash cut off. */
  runNext(): void {
    this.#successor.wake()
  }

  /** A prompt waits in the queue of a run that is over, or a turn of a device was cut off. */
  hasSuccessor(): boolean {
    return this.#successor.hasWork()
  }

  #isThere(): boolean {
    try {
      return this.#deps.session().deletedAtMs === null
    } catch {
      // There is nothing left to read it from.
      return false
    }
  }

  #isListedUnder(epoch: number): boolean {
    const session = this.#deps.session()
    return session.listed && session.epoch === epoch && session.deletedAtMs === null
  }

  #read(operation: SessionOperation): OperationAnswer['result'] {
    const { view } = this.#deps
    switch (operation.type) {
      case 'get_history':
        return view.history(operation.cursor ?? null, operation.limit)
      case 'get_content':
        return view.content(operation.content_id, operation.offset, operation.max_bytes)
      default:
        return told({
          code: 'unsupported_operation',
          message: 'no computer is connected whose workspace could be read',
        })
    }
  }

  async #apply(actor: Actor, asked: Asked, operation: SessionOperation): Promise<OperationAnswer> {
    try {
      const name = JSON.stringify([asked.deviceId, asked.epoch, asked.requestId, asked.digest])
      const decide = await this.#prepare({ actor, name }, operation)
      // It may have left the list while it was waited for.
      if (!this.#isListedUnder(asked.epoch)) return rejected(STALE)
      return this.#carryOut(decide(), asked)
    } catch (error) {
      // An error may quote what it stumbled over: only where it happened is logged.
      console.error(`${operation.type} failed inside the router:`, errorTrace(error))
      // It may have been deleted while it was waited for, and its tables with it.
      if (!this.#isThere()) return rejected(GONE)
      const stored = this.#desk.known(asked)
      return stored === null ? rejected(INTERNAL) : answerOf(stored)
    }
  }

  /** Everything that has to be waited for; the decision itself waits for nothing. */
  async #prepare(request: Request, operation: SessionOperation): Promise<() => Decision> {
    switch (operation.type) {
      case 'submit_prompt':
      case 'steer':
      case 'queue':
        return this.#prompts.prepare(request, operation)
      case 'cancel_turn':
        return () => this.#decisions.cancelTurn(operation)
      case 'answer_question':
        return this.#decisions.prepareAnswer(request, operation)
      case 'cancel_question':
        return () => this.#decisions.cancelQuestion(operation)
      case 'resolve_approval':
        return this.#decisions.prepareApproval(request, operation)
      case 'set_session_settings':
        return () => this.#commands.setSettings(operation)
      case 'execute_command':
        return () => this.#commands.execute(operation)
      case 'upload_image':
        return () => ({ k: 'attempt', work: () => this.#deps.uploads.put(request.actor.id, operation) })
      default:
        throw new Error(`invariant broken: ${operation.type} changes nothing`)
    }
  }

  /** Stores a decision and its receipt, together. */
  #carryOut(decision: Decision, { digest, deviceId, epoch, requestId }: Asked): OperationAnswer {
    const { engine } = this.#deps
    const receiptOf = (result: OutrightResult): StoredReceipt => ({
      deviceId,
      epoch,
      requestId,
      digest,
      receipt: result.type === 'error' ? 'rejected' : 'applied',
      result,
    })
    const refuse = (refusal: Refusal): OperationAnswer => {
      const receipt = receiptOf(told(refusal))
      engine.change(() => {}, { receipt })
      return answerOf(receipt)
    }
    switch (decision.k) {
      case 'refused':
        return decision.isKept ? refuse(decision.refusal) : rejected(decision.refusal)
      case 'step': {
        const receipt = receiptOf(decision.result)
        const dispatched = engine.dispatch(decision.input, { ...decision.request, key: null, receipt })
        return dispatched.ok ? answerOf(receipt) : refuse(decision.refused(dispatched))
      }
      case 'change': {
        const receipt = receiptOf(decision.result)
        engine.change(decision.work, {
          receipt: engine.isSealed ? withoutOutput(receipt) : receipt,
          cut: decision.cut,
        })
        return answerOf(receipt)
      }
      case 'attempt':
        return this.#attempt(decision.work, receiptOf)
      case 'session': {
        const receipt = receiptOf(decision.result)
        engine.saveSession(decision.session, { receipt })
        return answerOf(receipt)
      }
      default:
        return assertNever(decision)
    }
  }

  /** What it came to is known only when it is done, and so is its receipt. */
  #attempt(
    work: () => OutrightResult,
    receiptOf: (result: OutrightResult) => StoredReceipt,
  ): OperationAnswer {
    const made: StoredReceipt[] = []
    const receipt = (): StoredReceipt => {
      const [first] = made
      if (first === undefined) throw new Error('invariant broken: a change that was not made')
      return first
    }
    this.#deps.engine.change(() => void made.push(receiptOf(work())), { receipt })
    return answerOf(receipt())
  }
}

/** What a command shows of an encrypted session is not kept with its receipt (D47). */
const withoutOutput = (receipt: StoredReceipt): StoredReceipt =>
  receipt.result.type === 'command_executed'
    ? { ...receipt, result: { ...receipt.result, output: NOT_KEPT } }
    : receipt

const NOT_KEPT = 'What a command showed of an encrypted session is not kept. Send it again under another id.'

const told = ({ code, message }: Refusal) => ({ type: 'error', code, message }) as const
