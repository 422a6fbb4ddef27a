import type { CallRecord } from '../core/run/writes.ts'
import type { Seen, TranscriptCall } from '../core/transcript.ts'
import { sessionUsage } from '../core/usage.ts'
import type { ExportedToolCall, ExportRecord } from '../protocol/execution/export.ts'
import { toWireTime } from '../protocol/time.ts'
import { eachApproval, eachFact, eachPlan } from '../storage/session/export-rows.ts'
import { loadMessages } from '../storage/session/messages.ts'
import { eachPolicy } from '../storage/session/policies.ts'
import { type SessionRow, toSummary } from '../storage/session/session-row.ts'
import type { Sql } from '../storage/session/sql.ts'
import { loadTurns } from '../storage/session/turns.ts'
import { traceEvents } from './traces.ts'

/** Lines are gathered up to this size, so that short ones do not travel each alone. */
const CHUNK_UNITS = 64 * 1024

/**
 * Everything that is kept of a session, in the order of an export: the session, its facts, messages with their calls,
 * plans, approvals, policies, traces, usage. Rows are read one by one as they are asked for; nothing is changed.
 */
export function* sessionRecords(sql: Sql, session: SessionRow): Generator<ExportRecord> {
  const inSession = { session_id: session.sessionId }
  yield { type: 'session', ...toSummary(session) }
  for (const fact of eachFact(sql)) {
    yield {
      type: 'memory',
      id: fact.id,
      scope: 'session',
      ...inSession,
      ...(fact.key === null ? {} : { key: fact.key }),
      content: fact.content,
      ...(fact.localOnly ? { local_only: true } : {}),
      created_at: toWireTime(fact.createdAtMs),
      updated_at: toWireTime(fact.updatedAtMs),
    }
  }
  for (let from = 1; ; ) {
    const [message] = loadMessages(sql, from, 1)
    if (message === undefined) break
    from = message.seq + 1
    yield {
      type: 'message',
      ...inSession,
      id: message.id,
      run_id: message.runId,
      role: message.role,
      content: { plaintext: message.text },
      ...(message.provider === undefined ? {} : { provider: message.provider }),
      ...(message.model === undefined ? {} : { model: message.model }),
      ...(message.interrupted ? { interrupted: true } : {}),
      ...(message.localOnly ? { local_only: true } : {}),
      ...(message.seen === undefined ? {} : { seen: exportedSeen(message.seen) }),
      ...(message.calls.length === 0 ? {} : { tool_calls: message.calls.map(exportedCall) }),
      created_at: toWireTime(message.createdAtMs),
    }
  }
  for (const plan of eachPlan(sql)) {
    yield {
      type: 'plan',
      ...inSession,
      id: plan.id,
      version: plan.version,
      status: plan.status,
      content: plan.content,
      created_at: toWireTime(plan.createdAtMs),
      updated_at: toWireTime(plan.updatedAtMs),
    }
  }
  for (const approval of eachApproval(sql)) {
    yield {
      type: 'approval',
      ...inSession,
      id: approval.id,
      target_type: approval.targetType,
      target_id: approval.targetId,
      decision: approval.decision,
      ...(approval.outcome === null ? {} : { outcome: approval.outcome }),
      ...(approval.reason === null ? {} : { reason: approval.reason }),
      created_at: toWireTime(approval.createdAtMs),
    }
  }
  for (const { digest, policy } of eachPolicy(sql))
    yield { type: 'policy', ...inSession, key: digest, policy }
  const calls: CallRecord[] = []
  for (let from = 1; ; ) {
    const [turn] = loadTurns(sql, from, 1, { outcomes: false })
    if (turn === undefined) break
    from = turn.seq + 1
    calls.push(...turn.calls)
    for (const entry of turn.trace) {
      for (const event of traceEvents(entry, turn)) yield { type: 'trace', ...inSession, event }
    }
  }
  yield { type: 'usage', ...inSession, usage: sessionUsage(calls) }
}

const exportedCall = ({ id, name, arguments: args, result, isError }: TranscriptCall): ExportedToolCall => ({
  id,
  name,
  arguments: args,
  status: result === undefined ? 'pending' : isError ? 'failed' : 'completed',
  ...(result === undefined ? {} : { result }),
})

const exportedSeen = ({ under, root, files, readings, messages }: Seen) => ({
  under,
  root,
  ...(files === undefined ? {} : { files: [...files] }),
  ...(readings === undefined ? {} : { readings: [...readings] }),
  ...(messages === undefined ? {} : { messages }),
})

/** Records as JSON lines in bytes. The next records are made when the reader asks for more, and not before. */
export function lineStream(records: Iterable<ExportRecord>): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder()
  const rest = records[Symbol.iterator]()
  return new ReadableStream({
    type: 'bytes',
    pull: (controller) => {
      let lines = ''
      while (lines.length < CHUNK_UNITS) {
        const next = rest.next()
        if (next.done) break
        lines += `${JSON.stringify(next.value)}\n`
      }
      if (lines === '') controller.close()
      else controller.enqueue(encoder.encode(lines))
    },
    cancel: () => {
      rest.return?.()
    },
  })
}
