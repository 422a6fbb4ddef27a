import { type AskedUser, checkAnswer, toldOf } from '../../core/ask-user.ts'
import type { Refusal } from '../../core/operations/refusal.ts'
import { deviceDigest } from '../../core/operations/resume.ts'
import { eventTurnId } from '../../core/run/events.ts'
import { isOver } from '../../core/run/state.ts'
import type { ContinueRequest } from '../../protocol/execution/continue.ts'
import type { RemoteQuestion } from '../../protocol/remote/question.ts'
import type { OutrightResult } from '../../protocol/remote/results.ts'
import { settledApprovals, settledOutcome } from '../../storage/session/approvals.ts'
import { findApplied } from '../../storage/session/receipts.ts'
import { refuseOverfull } from '../bounds.ts'
import type { SessionOperation } from '../rpc.ts'
import { type Decision, machineRefusal, refused } from './decision.ts'
import { factsOrNone } from './facts-or-none.ts'
import type { OperationsDeps } from './ports.ts'
import type { Request } from './prompts.ts'

type Of<T extends SessionOperation['type']> = Extract<SessionOperation, { type: T }>

/** What the last answer of a chain does to the run: it may begin another turn. */
const ANSWERED = { type: 'tool_results', data: { results: [] } } as const satisfies ContinueRequest

const NOTHING_BROUGHT = { access: null, facts: [], runInput: null } as const

/**
 * What a person decides from a device about what the run does or asks. Each names what it is about, and the name is checked
 * in the step that makes the change (remote protocol, "Identity").
 */
export class Decisions {
  readonly #deps: OperationsDeps

  constructor(deps: OperationsDeps) {
    this.#deps = deps
  }

  /** Exactly this turn, or nothing (RF 17, U26). */
  cancelTurn({ turn_id: turnId }: Of<'cancel_turn'>): Decision {
    const { engine } = this.#deps
    const { state } = engine
    const stale = { code: 'stale_turn', message: 'the named turn is no longer running' } as const
    if (state === null || isOver(state) || eventTurnId(state.runId) !== turnId) return refused(stale)
    return {
      k: 'step',
      input: {
        type: 'continuation_received',
        digest: turnId,
        message: { type: 'break', data: { run_id: state.runId } },
        partial: engine.turns.partial,
        localOnly: false,
      },
      request: NOTHING_BROUGHT,
      result: { type: 'turn_cancelled', turn_id: turnId },
      refused: (why) => machineRefusal(why, stale.code, stale.message),
    }
  }

  /** What the answer may start is waited for first; the answer itself is looked at afterwards. */
  async prepareAnswer(
    { actor, name }: Request,
    { question_id: questionId, answer }: Of<'answer_question'>,
  ): Promise<() => Decision> {
    if (this.#deps.view.question()?.question_id !== questionId) return () => this.#staleQuestion(questionId)
    const brought = await this.#brought(actor)
    const { engine } = this.#deps
    return () => {
      const question = this.#deps.view.question()
      if (question?.question_id !== questionId) return this.#staleQuestion(questionId)
      const asked = askedUser(question)
      const checked = checkAnswer(asked, answer)
      if ('invalid' in checked) return refused({ code: 'invalid_answer', message: checked.invalid })
      const digest = deviceDigest(name, actor.deploymentProviders)
      const overfull = refuseOverfull(this.#deps.sql, engine.state, engine.counters, {
        digest,
        message: ANSWERED,
      })
      if (overfull !== null) return refused({ code: 'invalid_request', message: overfull.message })
      return {
        k: 'step',
        input: {
          type: 'question_answered',
          digest,
          questionId,
          answer: toldOf(asked, question.chain_length, checked.ok),
        },
        request: brought,
        result: { type: 'question_answered', question_id: questionId },
        refused: (why) => machineRefusal(why, 'stale_question', STALE_QUESTION),
      }
    }
  }

  /** The whole chain, and the turn with it (RF 18). */
  cancelQuestion({ question_id: questionId }: Of<'cancel_question'>): Decision {
    if (this.#deps.view.question()?.question_id !== questionId) return this.#staleQuestion(questionId)
    return {
      k: 'step',
      input: { type: 'question_cancelled', questionId, partial: this.#deps.engine.turns.partial },
      request: NOTHING_BROUGHT,
      result: { type: 'question_cancelled', question_id: questionId },
      refused: (why) => machineRefusal(why, 'stale_question', STALE_QUESTION),
    }
  }

  async prepareApproval(
    { actor, name }: Request,
    { batch_id: batchId, choice }: Of<'resolve_approval'>,
  ): Promise<() => Decision> {
    const brought = await this.#brought(actor)
    return () => ({
      k: 'step',
      input: {
        type: 'device_decided',
        digest: deviceDigest(name, actor.deploymentProviders),
        batchId,
        decision: choice === 'approve' ? 'approved' : 'rejected',
        partial: this.#deps.engine.turns.partial,
      },
      request: brought,
      result: { type: 'approval_resolved', batch_id: batchId, choice },
      refused: (why) => {
        const refusal = machineRefusal(why, 'stale_approval', 'this approval is not pending')
        return refusal.code === 'stale_approval' ? this.#staleApproval(batchId) : refusal
      },
    })
  }

  /** A decision may let the run go on, with no more than the deployment's own keys (D06). */
  async #brought({ deploymentProviders }: Request['actor']) {
    const [access, facts] = await Promise.all([
      this.#deps.access({ deploymentProviders }),
      factsOrNone(this.#deps),
    ])
    return { access, facts, runInput: null }
  }

  /** Beside the code, what became of it (U21). */
  #staleApproval(batchId: string): Refusal {
    const { sql } = this.#deps
    const choice = (choice: 'approve' | 'deny'): OutrightResult => ({
      type: 'approval_resolved',
      batch_id: batchId,
      choice,
    })
    const outcome =
      settledApprovals(sql, [batchId]).get(batchId) ??
      (findApplied(sql, choice('approve'))
        ? 'approved'
        : findApplied(sql, choice('deny'))
          ? 'rejected'
          : settledOutcome(sql, batchId))
    return {
      code: 'stale_approval',
      message:
        outcome === null
          ? 'this approval is not pending: it was settled, or there was none of this id'
          : SETTLED[outcome],
    }
  }

  #staleQuestion(questionId: string): Decision {
    const { sql } = this.#deps
    const message = findApplied(sql, { type: 'question_answered', question_id: questionId })
      ? 'this question was answered already'
      : findApplied(sql, { type: 'question_cancelled', question_id: questionId })
        ? 'this question was dismissed'
        : (SETTLED[settledOutcome(sql, questionId) ?? 'unknown'] ?? STALE_QUESTION)
    return refused({ code: 'stale_question', message })
  }
}

const askedUser = ({ header, text, options, multiple }: RemoteQuestion): AskedUser => ({
  header,
  text,
  options: options.map(({ label, description }) => ({
    label,
    ...(description === undefined ? {} : { description }),
  })),
  multiple,
})

const STALE_QUESTION = 'this question is not asked any more'

const SETTLED = {
  unknown: null,
  answered: 'this question was answered already',
  approved: 'this was approved already',
  rejected: 'this was denied already',
  cancelled: 'the turn that asked for it was cancelled',
  superseded: 'new input took the place of what asked for it',
} as const
