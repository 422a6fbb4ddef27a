import { frameBytes, headCut, tailCut } from '../core/remote/bounded-text.ts'
import { REMOTE_COMMANDS } from '../core/remote/command-list.ts'
import { responseContentId } from '../core/remote/content-ids.ts'
import { fittingBatch, fittingPage, fittingSnapshot } from '../core/remote/fit.ts'
import { toolDetailOfJson } from '../core/remote/labels.ts'
import {
  historyCursor,
  historyRevision,
  type Position,
  parseHistoryCursor,
} from '../core/remote/positions.ts'
import type { ProjectionFacts } from '../core/remote/project.ts'
import { eventTurnId } from '../core/run/events.ts'
import { isOver, type RunState } from '../core/run/state.ts'
import type { ContentRef } from '../protocol/execution/ids.ts'
import {
  MAX_LABEL_BYTES,
  MAX_LISTED,
  MAX_LIVE_RESPONSE_BYTES,
  MAX_MESSAGES,
  MAX_SETTINGS_BYTES,
} from '../protocol/remote/limits.ts'
import type { BoundedText, RemoteMessage, RemoteTurnTiming } from '../protocol/remote/message.ts'
import type { RemoteApprovalBatch, RemoteDecision, RemoteQuestion } from '../protocol/remote/question.ts'
import type { OutrightResult } from '../protocol/remote/results.ts'
import type { RemoteSessionInfo } from '../protocol/remote/session-info.ts'
import type { RemoteSessionSettings } from '../protocol/remote/session-settings.ts'
import type {
  RemoteSnapshot,
  RemoteTool,
  RemoteTurn,
  SnapshotCapability,
} from '../protocol/remote/snapshot.ts'
import type { Counters, SnapshotCut } from '../storage/session/checkpoint.ts'
import type { QueuedHead } from '../storage/session/prompt-queue.ts'
import {
  callsOf,
  hasItemsBefore,
  isPlace,
  itemsBefore,
  newestAnswer,
  nextSeq,
  type StoredItem,
} from '../storage/session/remote-items.ts'
import type { SessionRow } from '../storage/session/session-row.ts'
import type { Sql } from '../storage/session/sql.ts'
import { type ContentResult, readContent } from './remote/content.ts'
import { lockedSentence } from './remote/locked.ts'
import { RunTimings } from './remote/run-timings.ts'
import { ITEM_SIZES, shownName, thoughtFields, toRemoteMessage } from './remote/transcript-items.ts'
import { WaitingFor } from './remote/waiting-for.ts'
import type { Thoughts } from './text-gatherer.ts'

export type RemoteViewDeps = {
  sql: Sql
  /** Within the transaction of a step: the state that it leads to. */
  state(): RunState | null
  session(): SessionRow
  /** The session's row of the live list. */
  row(): RemoteSessionInfo
  counters(): Readonly<Counters>
  /** What the model has said so far in the call under way; null between calls. */
  live(): { text: string; thoughts: Thoughts | null } | null
  /** Of a sealed session: a text that is in memory (D47). */
  textOf(ref: ContentRef): string | undefined
  nowMs(): number
  /** Prompts that wait for the run to end, the next one first. */
  pending?(): { queued: QueuedHead[]; total: number }
  /** Null while nobody knows what could be chosen (D09). */
  settings?(): RemoteSessionSettings | null
  /** Whether images can be uploaded for a prompt. */
  takesImages?(): boolean
}

export type HistoryResult = Extract<OutrightResult, { type: 'history' | 'error' }>

/** More of the arguments of a running tool is not read to say what it is about. */
const TOOL_ARGUMENT_BYTES = 4096
/** A prompt in the queue is a label: what has to be escaped may double it, and no more. */
const PENDING_LIMITS = { bytes: MAX_LABEL_BYTES, json: 2 * MAX_LABEL_BYTES }

/**
 * A session as devices see it (remote protocol, "Attaching, ordering and resuming", "Size"). Everything is read from what is
 * stored, a bounded number of rows however long the session is.
 */
export class RemoteView implements ProjectionFacts {
  readonly #deps: RemoteViewDeps
  readonly #timings: RunTimings
  readonly #waiting: WaitingFor

  constructor(deps: RemoteViewDeps) {
    this.#deps = deps
    this.#timings = new RunTimings(deps)
    this.#waiting = new WaitingFor({ ...deps, keyId: () => deps.session().keyId })
  }

  /** The state at the newest event that was given out. `cut` names it (RF 14). */
  snapshot({ id, sequence }: SnapshotCut): RemoteSnapshot {
    const { tools, omittedTools, turn } = this.#turn()
    const { queued, total } = this.#deps.pending?.() ?? { queued: [], total: 0 }
    const settings = this.#settings()
    const lastTurn = this.#timings.newestEnded()
    const question = this.question()
    const approval = this.batch()
    const decision = this.decision()
    const { messages, cursors } = this.#items(null, MAX_MESSAGES)
    const cursor = cursors[0]
    const snapshot: RemoteSnapshot = {
      session: this.#deps.row(),
      snapshot_id: id,
      sequence,
      generation: 0,
      capabilities: this.#capabilities(),
      commands: [...REMOTE_COMMANDS],
      ...(settings === null ? {} : { settings }),
      ...(turn === null ? {} : { turn: { ...turn, tools } }),
      ...(lastTurn === null ? {} : { last_turn: lastTurn }),
      transcript: messages,
      history_revision: this.#revision,
      ...(cursor == null ? {} : { history_cursor: cursor }),
      ...(question === null ? {} : { pending_question: question }),
      ...(approval === null ? {} : { pending_approval: approval }),
      ...(decision === null ? {} : { approval_decision: decision }),
      pending_prompts: queued.map((prompt) => ({ kind: 'queue', text: shownPrompt(prompt) })),
      subagents: [],
      background_tasks: [],
      omitted: {
        tools: omittedTools,
        subagents: 0,
        pending_prompts: total - queued.length,
        background_tasks: 0,
      },
    }
    return fittingSnapshot(snapshot, cursors)
  }

  /** What waits for a decision, as it fits a frame; null for nothing. */
  batch(): RemoteApprovalBatch | null {
    const batch = this.#waiting.batch()
    return batch === null ? null : fittingBatch(batch)
  }

  question(): RemoteQuestion | null {
    return this.#waiting.question()
  }

  decision(): RemoteDecision | null {
    return this.#waiting.decision()
  }

  /** Without an id: of the run that is going on, or was the last one; null before the first. */
  timing(turnId?: string): RemoteTurnTiming | null {
    if (turnId !== undefined) return this.#timings.ofTurn(turnId)
    const state = this.#deps.state()
    return state === null ? null : this.#timings.ofTurn(eventTurnId(state.runId))
  }

  /** A page before a cursor; null: the newest. `stale_cursor` for one that names no place of this transcript (RF 15). */
  history(cursor: string | null, limit: number): HistoryResult {
    const before = cursor === null ? null : parseHistoryCursor(cursor, this.#revision)
    if (cursor !== null && (before === null || !isPlace(this.#deps.sql, before)))
      return {
        type: 'error',
        code: 'stale_cursor',
        message: 'the cursor is not one of this transcript: read its history from the newest page',
      }
    const { messages, cursors } = this.#items(before, Math.min(Math.max(limit, 1), MAX_MESSAGES))
    const page = fittingPage(messages)
    const next = cursors[messages.length - page.length]
    return {
      type: 'history',
      history_revision: this.#revision,
      messages: [...page],
      ...(page.length === 0 || next == null ? {} : { next_cursor: next }),
    }
  }

  /** A piece of a text that was cut (RF 15). */
  content(contentId: string, offset: number, maxBytes: number): ContentResult {
    const { sql } = this.#deps
    const deps = {
      sql,
      rewrites: () => this.#deps.counters().rewrites ?? 0,
      keyId: () => this.#deps.session().keyId,
      response: (turnId: string) => this.#response(turnId),
      actionText: (batchId: string, index: number) => this.#waiting.actionText(batchId, index),
    }
    return readContent(deps, contentId, offset, maxBytes)
  }

  get #revision(): string {
    return historyRevision(this.#deps.counters().rewrites ?? 0)
  }

  #capabilities(): SnapshotCapability[] {
    return [
      'cancel_question',
      'execute_command',
      ...(this.#deps.takesImages?.() ? ['upload_image' as const] : []),
    ]
  }

  /** All of them or none: a catalogue that is too long is never shown in part. */
  #settings(): RemoteSessionSettings | null {
    const settings = this.#deps.settings?.() ?? null
    return settings === null || frameBytes(settings) > MAX_SETTINGS_BYTES ? null : settings
  }

  /** The items before a place as they are sent, and a cursor for each of them and for what is behind the last. */
  #items(before: Position | null, limit: number): { messages: RemoteMessage[]; cursors: (string | null)[] } {
    const { sql, session } = this.#deps
    const items = itemsBefore(sql, before, limit, ITEM_SIZES, session().keyId !== null)
    const context = {
      revision: this.#revision,
      keyId: session().keyId,
      timing: (runId: string, atMs: number) => this.#timings.ofRun(runId, atMs),
    }
    // The newest first: the run before one is found by it.
    const messages = items.toReversed().map((item) => toRemoteMessage(item, context))
    const end = before ?? { seq: nextSeq(sql), part: 0 }
    return { messages: messages.toReversed(), cursors: this.#cursors(items, end) }
  }

  #cursors(items: readonly StoredItem[], end: Position): (string | null)[] {
    return [...items, end].map((place, index) =>
      index > 0 || hasItemsBefore(this.#deps.sql, place) ? historyCursor(place, this.#revision) : null,
    )
  }

  #turn(): { turn: Omit<RemoteTurn, 'tools'> | null; tools: RemoteTool[]; omittedTools: number } {
    const state = this.#deps.state()
    if (state === null || isOver(state)) return { turn: null, tools: [], omittedTools: 0 }
    const turnId = eventTurnId(state.runId)
    const live = this.#deps.live()
    const { tools, total } = this.#tools(state.runId)
    const timing = this.timing()
    return {
      turn: {
        turn_id: turnId,
        live_response: tailCut(live?.text ?? '', MAX_LIVE_RESPONSE_BYTES, responseContentId(turnId)),
        can_steer: state.active !== null,
        ...(timing === null ? {} : { timing }),
        ...thoughtFields(live?.thoughts?.ms, live?.thoughts?.tokens),
      },
      tools,
      omittedTools: total - tools.length,
    }
  }

  /** The calls of what the run's model said last. */
  #tools(runId: string): { tools: RemoteTool[]; total: number } {
    const { sql, session } = this.#deps
    const answer = newestAnswer(sql)
    if (answer === null || answer.runId !== runId) return { tools: [], total: 0 }
    const isSealed = session().keyId !== null
    const { calls, total } = callsOf(sql, answer.seq, MAX_LISTED, TOOL_ARGUMENT_BYTES)
    const tools = calls.map(({ callId, name, status, arguments: args }): RemoteTool => {
      const detail = isSealed ? undefined : toolDetailOfJson(args)
      return {
        id: callId,
        name: shownName(name, isSealed),
        ...(detail === undefined ? {} : { detail }),
        state: status === 'pending' ? 'running' : status === 'completed' ? 'succeeded' : 'failed',
      }
    })
    return { tools, total }
  }

  /** What stands for the texts of a sealed session; null in a clear one (D47). */
  locked(): string | null {
    const { keyId } = this.#deps.session()
    return keyId === null ? null : lockedSentence(keyId)
  }

  #response(turnId: string): string | null {
    const state = this.#deps.state()
    if (state === null || isOver(state) || turnId !== eventTurnId(state.runId)) return null
    return this.#deps.live()?.text ?? ''
  }
}

/** A prompt of the queue, of which only the beginning was read. */
function shownPrompt({ head, totalBytes }: QueuedHead): BoundedText {
  const cut = headCut(head, PENDING_LIMITS)
  return totalBytes > cut.total_bytes ? { ...cut, truncated: true, total_bytes: totalBytes } : cut
}
