import type { CallRecord } from '../core/run/writes.ts'
import type { Seen, TranscriptCall } from '../core/transcript.ts'
import { sessionUsage } from '../core/usage.ts'
import { factRef, planRef, traceRef } from '../protocol/execution/content-refs.ts'
import type { ExportedToolCall, ExportRecord } from '../protocol/execution/export.ts'
import type { ContentRef } from '../protocol/execution/ids.ts'
import type { EncryptedPayload } from '../protocol/execution/sealed.ts'
import type { MessageContent } from '../protocol/execution/session.ts'
import { toWireTime } from '../protocol/time.ts'
import { eachApproval, eachFact, eachPlan } from '../storage/session/export-rows.ts'
import { loadMessages, type StoredMessage } from '../storage/session/messages.ts'
import { eachPolicy } from '../storage/session/policies.ts'
import { loadSealed } from '../storage/session/sealed-contents.ts'
import { sealedParts } from '../storage/session/sealed-copy.ts'
import { type SessionRow, toSummary } from '../storage/session/session-row.ts'
import type { Sql } from '../storage/session/sql.ts'
import { loadTurns } from '../storage/session/turns.ts'
import { traceEvents } from './traces.ts'

/** Lines are gathered up to this size, so that short ones do not travel each alone. */
const CHUNK_UNITS = 64 * 1024

/**
 * Everything that is kept of a session, in the order of an export: the session, its facts, messages with their calls,
 * plans, approvals, policies, traces, usage. Rows are read one by one as they are asked for; nothing is changed. A sealed
 * session is told in its envelopes; what waits for one is left out.
 */
export function* sessionRecords(sql: Sql, session: SessionRow): Generator<ExportRecord> {
  const inSession = { session_id: session.sessionId }
  const sealed = session.keyId !== null
  const envelopeOf = (ref: ContentRef): EncryptedPayload | undefined =>
    sealed ? loadSealed(sql, [ref])[ref] : undefined
  yield { type: 'session', ...toSummary(session) }
  for (const fact of eachFact(sql)) {
    const encrypted = envelopeOf(factRef(fact.id))
    if (sealed && encrypted === undefined) continue
    yield {
      type: 'memory',
      id: fact.id,
      scope: 'session',
      ...inSession,
      ...(fact.key === null ? {} : { key: fact.key }),
      content: fact.content,
      ...(encrypted === undefined ? {} : { encrypted }),
      ...(fact.localOnly ? { local_only: true } : {}),
      created_at: toWireTime(fact.createdAtMs),
      updated_at: toWireTime(fact.updatedAtMs),
    }
  }
  for (let from = 1; ; ) {
    const [message] = loadMessages(sql, from, 1)
    if (message === undefined) break
    from = message.seq + 1
    const told = sealed ? sealedTexts(sql, message) : clearTexts(message)
    if (told === null) continue
    yield {
      type: 'message',
      ...inSession,
      id: message.id,
      run_id: message.runId,
      role: message.role,
      content: told.content,
      ...(message.provider === undefined ? {} : { provider: message.provider }),
      ...(message.model === undefined ? {} : { model: message.model }),
      ...(message.interrupted ? { interrupted: true } : {}),
      ...(message.localOnly ? { local_only: true } : {}),
      ...(message.seen === undefined ? {} : { seen: exportedSeen(message.seen) }),
      ...(told.calls.length === 0 ? {} : { tool_calls: told.calls }),
      ...(told.encryptedCalls === undefined ? {} : { encrypted_calls: told.encryptedCalls }),
      created_at: toWireTime(message.createdAtMs),
    }
  }
  for (const plan of eachPlan(sql)) {
    const encrypted = envelopeOf(planRef(plan.id))
    if (sealed && encrypted === undefined) continue
    yield {
      type: 'plan',
      ...inSession,
      id: plan.id,
      version: plan.version,
      status: plan.status,
      content: plan.content,
      ...(encrypted === undefined ? {} : { encrypted }),
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
    const envelopes = sealed
      ? loadSealed(
          sql,
          turn.trace.map(({ id }) => traceRef(id)),
        )
      : {}
    const open = (id: string) => {
      const encrypted = envelopes[traceRef(id)]
      return encrypted === undefined ? null : { encrypted }
    }
    for (const entry of turn.trace) {
      for (const event of traceEvents(entry, turn, open)) yield { type: 'trace', ...inSession, event }
    }
  }
  yield { type: 'usage', ...inSession, usage: sessionUsage(calls) }
}

/** What a message says, in clear or as its envelopes. */
type Texts = { content: MessageContent; calls: ExportedToolCall[]; encryptedCalls?: EncryptedPayload }

const clearTexts = ({ text, calls }: StoredMessage): Texts => ({
  content: { plaintext: text },
  calls: calls.map(exportedCall),
})

/** Null while the message has no envelope. */
function sealedTexts(sql: Sql, message: StoredMessage): Texts | null {
  const { text, calls } = sealedParts(sql, message)
  if (text === undefined) return null
  return {
    content: { encrypted: text },
    calls: message.calls.map((call, index) => {
      const { result, ...exported } = exportedCall(call)
      const encrypted = calls.calls[index]?.encrypted
      // An empty result stands where it was: in its own envelope, or in that of the calls.
      return {
        ...exported,
        ...(encrypted === undefined ? (result ? { result } : {}) : { encrypted }),
      }
    }),
    ...(calls.encrypted === undefined ? {} : { encryptedCalls: calls.encrypted }),
  }
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
