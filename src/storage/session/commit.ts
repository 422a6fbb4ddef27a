import { withoutAttachments } from '../../core/run/contents.ts'
import { endedClock } from '../../core/run/run-clock.ts'
import type { Step } from '../../core/run/step.ts'
import type { CallRecord, RunOutcome, Write } from '../../core/run/writes.ts'
import type { RunInput } from '../../core/turn-view.ts'
import { assertNever } from '../../protocol/assert.ts'
import { refKind, refParts, traceRef } from '../../protocol/execution/content-refs.ts'
import { insertApproval, insertSettled } from './approvals.ts'
import {
  type Checkpoint,
  type Counters,
  nextMemoryAtMs,
  type Outbox,
  runsBegun,
  saveCheckpoint,
} from './checkpoint.ts'
import { applyMemory, factSealed } from './memories.ts'
import { insertMessage, keepRunLocal, settleCall, touchMessage } from './messages.ts'
import { savePolicy } from './policies.ts'
import { loadClearInput, loadRunInput, saveClearInput, saveRunInput, stripBundle } from './run-input.ts'
import { dropUnsealed, messageOfContent, newestMessageSeq, saveSealed } from './sealed-contents.ts'
import { listedByRun, loadSession, saveSession } from './session-row.ts'
import type { Sql } from './sql.ts'
import { storeText } from './texts.ts'
import { loadTurn, loadTurns, newestTurnId, type StoredTurn, saveTurn, touchTurns } from './turns.ts'

/** Turns are only named. */
const TURN_ROWS = { traces: false, calls: false, outcomes: false }

/** What a step needs besides itself: the body of the `execute` that it admits. */
export type CommitContext = {
  nowMs: number
  runInput: RunInput | null
  /** The id of a sealed session. */
  sealedId: string | null
  /** The rows of the step are stored: what happened is told, and the counters say so. */
  tell?(counters: Counters): Counters
}

/**
 * Stores a step: its rows, then the checkpoint with what D1 is now owed. Must run inside a transaction; returns the
 * new checkpoint.
 */
export function commitStep(
  sql: Sql,
  before: Checkpoint,
  result: Step,
  { nowMs, runInput, sealedId, tell }: CommitContext,
): Checkpoint {
  const counters = { ...before.counters, rev: before.counters.rev + 1 }
  const outbox: Outbox = { ...before.outbox }
  const turns = new Map<string, StoredTurn>()
  const turnOf = (turnId: string): StoredTurn | null => {
    const known = turns.get(turnId) ?? loadTurn(sql, turnId)
    if (known) turns.set(turnId, known)
    return known
  }
  const owesMessage = (seq: number) => {
    outbox.messagesFrom = Math.min(outbox.messagesFrom ?? seq, seq)
  }
  const runEnds = (turn: StoredTurn, outcome: RunOutcome): void => {
    turn.runOutcome = outcome
    turn.runClock = endedClock(before.state, result.state, turn.runId, nowMs)
  }
  const apply = (write: Write): void => {
    switch (write.w) {
      case 'run_input':
        if (runInput === null) throw new Error('invariant broken: a run without its input')
        counters.runs = runsBegun(sql, counters) + 1
        if (sealedId === null) saveRunInput(sql, runInput)
        else saveClearInput(sql, sealedId, runInput)
        if (result.state.policyDigest != null) savePolicy(sql, result.state.policyDigest, runInput.policy)
        return
      case 'injected_input': {
        counters.runs = runsBegun(sql, counters) + 1
        if (sealedId === null) saveRunInput(sql, withoutAttachments(loadRunInput(sql)))
        else stripBundle(sql)
        const { policy } = sealedId === null ? loadRunInput(sql) : loadClearInput(sql)
        // The traces that named it may be gone since, and it with them.
        if (result.state.policyDigest != null) savePolicy(sql, result.state.policyDigest, policy)
        return
      }
      case 'user_message':
      case 'assistant_message':
        counters.message++
        insertMessage(sql, counters.message, write, nowMs, counters.rev)
        owesMessage(counters.message)
        return
      case 'settle_call': {
        const seq = settleCall(sql, write, nowMs)
        if (seq === null) return
        touchMessage(sql, seq, counters.rev)
        owesMessage(seq)
        return
      }
      case 'approval':
        insertApproval(sql, write, nowMs)
        return
      case 'plan':
        sql.rows(
          `INSERT INTO plans (id, content, status, created_at, updated_at, version) VALUES (?, ?, 'draft', ?, ?, ?)`,
          write.id,
          storeText(sql, `plan:${write.id}`, write.content),
          nowMs,
          nowMs,
          write.version,
        )
        return
      case 'plan_status':
        sql.rows('UPDATE plans SET status = ?, updated_at = ? WHERE id = ?', write.status, nowMs, write.id)
        return
      case 'open_turn':
        counters.turn++
        turns.set(write.turnId, {
          turnId: write.turnId,
          seq: counters.turn,
          runId: write.runId,
          turn: write.turn,
          status: 'running',
          trace: [],
          calls: [],
          outcome: null,
          startedAtMs: nowMs,
          endedAtMs: null,
          ...(result.state.policyDigest == null ? {} : { policyDigest: result.state.policyDigest }),
          rev: counters.rev,
        })
        return
      case 'keep_local':
        for (const seq of keepRunLocal(sql, write.runId, counters.rev)) owesMessage(seq)
        return
      case 'trace': {
        const turn = turnOf(write.turnId)
        turn?.trace.push(...write.entries)
        if (sealedId !== null && turn) tracedTurn ??= turn.seq
        return
      }
      case 'call':
        turnOf(write.turnId)?.calls.push(asKept(write.call))
        return
      case 'call_settled': {
        const calls = turnOf(write.turnId)?.calls
        if (calls) calls[Math.max(0, calls.length - 1)] = asKept(write.call)
        return
      }
      case 'close_turn': {
        const turn = turnOf(write.turnId)
        if (!turn) return
        turn.status = write.status
        turn.outcome = write.outcome
        turn.endedAtMs = nowMs
        if (write.runOutcome !== undefined) runEnds(turn, write.runOutcome)
        return
      }
      case 'run_ended': {
        const last = newestTurnId(sql)
        const turn = last === null ? null : turnOf(last)
        if (turn) runEnds(turn, write.outcome)
        return
      }
      case 'memory':
        counters.memoryAtMs = nextMemoryAtMs(counters, nowMs)
        applyMemory(sql, write, counters.memoryAtMs)
        outbox.memory = true
        return
      case 'sealed':
        sealContent(write)
        return
      case 'dropped':
        dropUnsealed(sql, write.refs)
        counters.message = newestMessageSeq(sql)
        counters.rewrites = (counters.rewrites ?? 0) + 1
        dropTraces(new Set(write.refs))
        return
      default:
        assertNever(write)
    }
  }
  const sealContent = ({ ref, payload, weight }: Extract<Write, { w: 'sealed' }>): void => {
    saveSealed(sql, ref, payload, weight)
    const seq = messageOfContent(sql, ref)
    if (seq !== null) {
      touchMessage(sql, seq, counters.rev)
      owesMessage(seq)
    }
    const { kind, id } = refParts(ref)
    if (kind === 'memory') {
      counters.memoryAtMs = nextMemoryAtMs(counters, nowMs)
      factSealed(sql, id, counters.memoryAtMs)
      outbox.memory = true
    }
    if (kind === 'trace') tracesSealed = true
  }
  /** Trace events that are lost go, and what the calls used that they told of nobody knows any more (U43). */
  const dropTraces = (lost: ReadonlySet<string>): void => {
    if (counters.unsealedTurn === undefined) return
    for (const { turnId } of loadTurns(sql, counters.unsealedTurn, counters.turn, TURN_ROWS)) {
      const turn = turns.get(turnId) ?? loadTurn(sql, turnId)
      const gone = turn?.trace.filter(({ id }) => lost.has(traceRef(id))) ?? []
      if (!turn || gone.length === 0) continue
      turns.set(turnId, turn)
      turn.trace = turn.trace.filter((entry) => !gone.includes(entry))
      if (gone.some(({ payload }) => payload.type === 'sealed' && payload.event_type === 'cost'))
        turn.calls = turn.calls.map(({ sealed: _, ...call }) => call)
    }
  }
  let tracesSealed = false
  let tracedTurn: number | undefined
  for (const write of result.writes) apply(write)
  for (const event of result.events) {
    if (event.type === 'approval_resolved' && event.outcome)
      insertSettled(sql, event.approvalId, event.outcome)
    if (event.type === 'question_resolved' && event.outcome)
      insertSettled(sql, event.questionId, event.outcome)
  }
  if (tracesSealed) {
    const from = counters.unsealedTurn ?? counters.turn
    touchTurns(sql, from, counters.rev)
    outbox.turnsFrom = Math.min(outbox.turnsFrom ?? from, from)
  }
  // What came sealed was all that had been told: left are the events of this step.
  const unsealedTurn = tracesSealed ? tracedTurn : (counters.unsealedTurn ?? tracedTurn)
  if (unsealedTurn === undefined || !result.state.unsealed?.refs.some((ref) => refKind(ref) === 'trace'))
    delete counters.unsealedTurn
  else counters.unsealedTurn = unsealedTurn
  for (const turn of turns.values()) {
    saveTurn(sql, { ...turn, rev: counters.rev })
    // A running turn is copied when it ends: until then its row would only be overwritten.
    if (turn.status !== 'running') outbox.turnsFrom = Math.min(outbox.turnsFrom ?? turn.seq, turn.seq)
  }
  const stored = loadSession(sql)
  if (stored) {
    const session = result.state.active === null ? stored : listedByRun(stored, nowMs)
    const closes = [...turns.values()].some(({ status }) => status !== 'running')
    if (closes || session !== stored) {
      saveSession(sql, { ...session, updatedAtMs: closes ? nowMs : session.updatedAtMs, rev: counters.rev })
      outbox.session = true
    }
    // Whether its row has changed is found out after the commit; until then it may have.
    if (session.listed) outbox.listing ??= nowMs
  }
  const after: Checkpoint = { state: result.state, outbox, counters: tell?.(counters) ?? counters }
  saveCheckpoint(sql, after)
  return after
}

/** What a call had seen, and how long it took, is kept with the message that came of it. */
const asKept = ({ seen: _, clock: __, ...call }: CallRecord): CallRecord => call
