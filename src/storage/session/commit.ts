import type { Step } from '../../core/run/step.ts'
import type { CallRecord, Write } from '../../core/run/writes.ts'
import type { RunInput } from '../../core/turn-view.ts'
import { assertNever } from '../../protocol/assert.ts'
import { insertApproval } from './approvals.ts'
import { type Checkpoint, nextMemoryAtMs, type Outbox, saveCheckpoint } from './checkpoint.ts'
import { applyMemory } from './memories.ts'
import { insertMessage, keepRunLocal, settleCall, touchMessage } from './messages.ts'
import { savePolicy } from './policies.ts'
import { loadRunInput, saveRunInput } from './run-input.ts'
import { loadSession, saveSession } from './session-row.ts'
import type { Sql } from './sql.ts'
import { storeText } from './texts.ts'
import { loadTurn, type StoredTurn, saveTurn } from './turns.ts'

/** What a step needs besides itself: the body of the `execute` that it admits. */
export type CommitContext = { nowMs: number; runInput: RunInput | null }

/**
 * Stores a step: its rows, then the checkpoint with what D1 is now owed. Must run inside a transaction; returns the
 * new checkpoint.
 */
export function commitStep(
  sql: Sql,
  before: Checkpoint,
  result: Step,
  { nowMs, runInput }: CommitContext,
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
  const apply = (write: Write): void => {
    switch (write.w) {
      case 'run_input':
        if (runInput === null) throw new Error('invariant broken: a run without its input')
        saveRunInput(sql, runInput)
        if (result.state.policyDigest != null) savePolicy(sql, result.state.policyDigest, runInput.policy)
        return
      case 'injected_input': {
        const input = withoutAttachments(loadRunInput(sql))
        saveRunInput(sql, input)
        // The traces that named it may be gone since, and it with them.
        if (result.state.policyDigest != null) savePolicy(sql, result.state.policyDigest, input.policy)
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
      case 'trace':
        turnOf(write.turnId)?.trace.push(...write.entries)
        return
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
        return
      }
      case 'memory':
        counters.memoryAtMs = nextMemoryAtMs(counters, nowMs)
        applyMemory(sql, write, counters.memoryAtMs)
        outbox.memory = true
        return
      case 'sealed':
        throw new Error('invariant broken: sealed content in a plaintext session')
      default:
        assertNever(write)
    }
  }
  for (const write of result.writes) apply(write)
  for (const turn of turns.values()) {
    saveTurn(sql, { ...turn, rev: counters.rev })
    // A running turn is copied when it ends: until then its row would only be overwritten.
    if (turn.status !== 'running') outbox.turnsFrom = Math.min(outbox.turnsFrom ?? turn.seq, turn.seq)
  }
  const session = loadSession(sql)
  if (session && [...turns.values()].some(({ status }) => status !== 'running')) {
    saveSession(sql, { ...session, updatedAtMs: nowMs, rev: counters.rev })
    outbox.session = true
  }
  const after: Checkpoint = { state: result.state, outbox, counters }
  saveCheckpoint(sql, after)
  return after
}

/** What a call had seen is kept with the message that came of it. */
const asKept = ({ seen: _, ...call }: CallRecord): CallRecord => call

/** The input of a turn that starts from injected text alone (EC 15). The client can still run the tools it declared. */
const withoutAttachments = (input: RunInput): RunInput => ({
  ...input,
  input: { text: input.input.text },
  workspace: { ...input.workspace, git_diff: null },
  attachments: {
    ...input.attachments,
    files: [],
    instructions: [],
    invoked_skills: [],
    available_skills: [],
  },
})
