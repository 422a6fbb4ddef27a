import { parseQuestions } from '../../core/ask-user.ts'
import {
  actionBytes,
  approvalBatch,
  type BatchAction,
  CALL_RISK,
  gateRisk,
} from '../../core/remote/approval-batch.ts'
import { label, toolDetailOfJson } from '../../core/remote/labels.ts'
import { parseCallArguments } from '../../core/run/contents.ts'
import { gateDetail } from '../../core/run/envelope.ts'
import { openQuestion, pendingBatchId } from '../../core/run/pending.ts'
import type { RunPhase, RunState, ToolWait } from '../../core/run/state.ts'
import { callsRef, planRef } from '../../protocol/execution/content-refs.ts'
import type { ContentRef } from '../../protocol/execution/ids.ts'
import { MAX_APPROVAL_BYTES } from '../../protocol/remote/limits.ts'
import type { RemoteApprovalBatch, RemoteDecision, RemoteQuestion } from '../../protocol/remote/question.ts'
import { toWireTime } from '../../protocol/time.ts'
import {
  callArgumentsPlace,
  newestAnswer,
  planPlace,
  readHead,
  type TextHead,
} from '../../storage/session/remote-items.ts'
import type { Sql } from '../../storage/session/sql.ts'
import { readWhole, type TextPlace } from '../../storage/session/text-pieces.ts'
import { lockedSentence } from './locked.ts'

export type WaitingDeps = {
  sql: Sql
  state(): RunState | null
  /** The key of a sealed session; null in a clear one. */
  keyId(): string | null
  /** Of a sealed session: a text that is in memory (D47). */
  textOf(ref: ContentRef): string | undefined
}

type Approval = Extract<RunPhase, { k: 'AwaitingApproval' }>

/** A text of an approval: where it is stored, or the text itself. */
export type ActionText = { place: TextPlace } | { text: string }

/** What the session waits for a person to decide, in its own words (RF 18, RF 19). */
export class WaitingFor {
  readonly #deps: WaitingDeps

  constructor(deps: WaitingDeps) {
    this.#deps = deps
  }

  /** The calls, the gate or the plan that nobody has decided yet; null for none (D02). */
  batch(): RemoteApprovalBatch | null {
    const waiting = this.#undecided()
    if (waiting === null) return null
    if (waiting.k === 'gate') {
      const { phase } = waiting
      return approvalBatch(phase.approvalId, [this.#gateAction(phase)])
    }
    const { batchId, calls } = waiting
    const bytes = actionBytes(calls.length)
    return approvalBatch(
      batchId,
      calls.map((call): BatchAction => {
        const details = this.#head(this.#argumentsOf(call), bytes)
        return {
          toolName: call.toolName,
          target: toolDetailOfJson(details.text),
          details,
          risk: CALL_RISK,
        }
      }),
    )
  }

  /** The details of one action whole; null when this batch does not wait, or has no such action. */
  actionText(batchId: string, index: number): ActionText | null {
    const waiting = this.#undecided()
    if (waiting === null || waiting.batchId !== batchId) return null
    if (waiting.k === 'gate') return index === 0 ? this.#gateText(waiting.phase) : null
    const call = waiting.calls[index]
    return call === undefined ? null : this.#argumentsOf(call)
  }

  /** The question that is asked now; null for none. */
  question(): RemoteQuestion | null {
    const phase = this.#deps.state()?.phase
    const open = phase === undefined ? null : openQuestion(phase)
    if (open === null) return null
    const { call, index, question } = open
    const text = this.#whole(this.#argumentsOf(call))
    const words = text === null ? undefined : parseQuestions(jsonObject(text))?.[index]
    return {
      question_id: question.id,
      ...(words ?? { header: '', text: this.#locked(), options: [], multiple: false }),
      position: index + 1,
      chain_length: call.questions?.length ?? 1,
    }
  }

  /** The newest decision of a device in this run, and how far it has come (D10). */
  decision(): RemoteDecision | null {
    const made = this.#deps.state()?.lastDecision
    if (made === undefined) return null
    const { batchId, decision, storedAtMs, deliveredAtMs, actedOnAtMs } = made
    return {
      batch_id: batchId,
      choice: decision === 'approved' ? 'approve' : 'deny',
      state: actedOnAtMs !== undefined ? 'acted_on' : deliveredAtMs !== undefined ? 'delivered' : 'stored',
      stored_at: toWireTime(storedAtMs),
      ...(deliveredAtMs === undefined ? {} : { delivered_at: toWireTime(deliveredAtMs) }),
      ...(actedOnAtMs === undefined ? {} : { acted_on_at: toWireTime(actedOnAtMs) }),
    }
  }

  #undecided():
    | { k: 'gate'; batchId: string; phase: Approval }
    | { k: 'calls'; batchId: string; calls: ToolWait[] }
    | null {
    const phase = this.#deps.state()?.phase
    const batchId = phase === undefined ? null : pendingBatchId(phase)
    if (batchId === null) return null
    if (phase?.k === 'AwaitingApproval') return { k: 'gate', batchId, phase }
    if (phase?.k !== 'AwaitingTool') return null
    return { k: 'calls', batchId, calls: phase.calls.filter((call) => call.requiresApproval === 'ask') }
  }

  #gateAction(phase: Approval): BatchAction {
    const { kind, disclosure, cost } = phase
    const details = this.#head(this.#gateText(phase), MAX_APPROVAL_BYTES)
    const model = disclosure ?? cost
    return {
      toolName: kind,
      target: kind === 'plan' ? firstLine(details.text) : model && `${model.provider}/${model.model}`,
      details,
      risk: gateRisk(kind, disclosure?.local === true),
    }
  }

  /** What a gate is about, as JSON that a person can read; of a plan its text. */
  #gateText({ planId, disclosure, cost }: Approval): ActionText {
    if (planId !== undefined) {
      if (this.#deps.keyId() === null) return { place: planPlace(planId) }
      return { text: this.#deps.textOf(planRef(planId)) ?? this.#locked() }
    }
    const detail =
      disclosure !== undefined
        ? gateDetail({ kind: 'remote_disclosure', disclosure })
        : cost !== undefined
          ? gateDetail({ kind: 'cost_limit', cost })
          : {}
    return { text: JSON.stringify(detail, null, 2) }
  }

  /** The literal arguments of a call of this pause. */
  #argumentsOf({ callId }: ToolWait): ActionText {
    if (this.#deps.keyId() === null) return { place: callArgumentsPlace(callId) }
    const answer = newestAnswer(this.#deps.sql)
    const calls = answer === null ? undefined : this.#deps.textOf(callsRef(answer.id))
    const found = calls === undefined ? undefined : parseCallArguments(calls).find(([id]) => id === callId)
    return { text: found === undefined ? this.#locked() : JSON.stringify(found[1]) }
  }

  #head(text: ActionText, bytes: number): TextHead | { text: string } {
    if ('text' in text) return text
    return readHead(this.#deps.sql, text.place, bytes) ?? { text: '' }
  }

  #whole(text: ActionText): string | null {
    return 'text' in text ? text.text : readWhole(this.#deps.sql, text.place)
  }

  #locked(): string {
    return lockedSentence(this.#deps.keyId() ?? '')
  }
}

const firstLine = (text: string): string =>
  label(text.split('\n').find((line) => line.trim() !== '') ?? '', 512)

function jsonObject(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? { ...value } : {}
  } catch {
    // The locked sentence of a sealed session: nobody here has the words.
    return {}
  }
}
