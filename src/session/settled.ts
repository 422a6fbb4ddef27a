import type { RunState } from '../core/run/state.ts'
import type { ContinueRequest } from '../protocol/execution/continue.ts'
import type { Failure } from '../protocol/execution/errors.ts'
import { settledApprovals } from '../storage/session/approvals.ts'
import { callStandings } from '../storage/session/call-status.ts'
import type { Sql } from '../storage/session/sql.ts'

/** Our ids are UUIDs; what is longer was never one of them. */
const ID_CHARS = 36
/** More than a pause asks for at once; whoever names more is told of the first. */
const MAX_NAMED = 100

/**
 * A refused answer learns what became of what it names (U21, U22): `details.settled` holds, for approvals,
 * `{approval_id, outcome, decision?}`, and for calls `{call_id, status, outcome?, decision?}`, where `outcome` is
 * `cancelled` or `superseded` if the run went on without a result. Where it names nothing that the session knows, the
 * message says so. Nothing reopens.
 */
export function withSettled(
  sql: Sql,
  state: RunState | null,
  message: ContinueRequest,
  refused: Failure,
): Failure {
  if (state === null) return refused
  if (message.type === 'approval_decisions') {
    const asked = distinct(message.data.decisions.map(({ approval_id: id }) => id))
    const outcomes = settledApprovals(sql, possible(asked))
    const settled = [...outcomes].map(([id, outcome]) => ({
      approval_id: id,
      outcome,
      ...(outcome === 'approved' || outcome === 'rejected' ? { decision: outcome } : {}),
    }))
    const { phase } = state
    const pending = phase.k === 'AwaitingApproval' && asked.includes(phase.approvalId)
    return told(
      refused,
      settled,
      isUnknown(asked, pending ? 1 : 0) ? 'this session has no such approval' : null,
    )
  }
  if (message.type === 'tool_results') {
    const asked = distinct(message.data.results.map(({ call_id: id }) => id))
    const known = callStandings(sql, possible(asked))
    const settled = [...known].flatMap(([id, standing]) =>
      standing.status === 'pending' ? [] : [{ call_id: id, ...standing }],
    )
    return told(refused, settled, isUnknown(asked, known.size) ? 'this session has no such call' : null)
  }
  return refused
}

/**
 * Whether a refused answer is one to a gate or a question that a device has settled meanwhile, and that the run has gone on
 * from: whoever sends it learns where the run stands, and no error (D05).
 */
export function isSettledByDevice(state: RunState | null, message: ContinueRequest): boolean {
  const settled = new Set(state?.deviceSettled)
  if (settled.size === 0) return false
  if (message.type === 'approval_decisions')
    return message.data.decisions.some(({ approval_id: id }) => settled.has(id))
  if (message.type !== 'tool_results' || message.data.results.length === 0) return false
  return message.data.results.every(({ call_id: id }) => settled.has(id))
}

function told(refused: Failure, settled: readonly unknown[], unknown: string | null): Failure {
  if (settled.length > 0) return { ...refused, details: { ...refused.details, settled } }
  // A turn that is being served is the whole reason for a refusal: the ids were not looked at.
  if (unknown === null || refused.code !== 'invalid_request') return refused
  return { ...refused, message: `${refused.message}; ${unknown}` }
}

const distinct = (ids: readonly string[]): string[] => [...new Set(ids)]

/** Those that can be ids of ours. */
const possible = (asked: readonly string[]): string[] =>
  asked.filter((id) => id.length <= ID_CHARS).slice(0, MAX_NAMED)

/** All of them were looked for, and none was found. */
const isUnknown = (asked: readonly string[], found: number): boolean =>
  asked.length > 0 && asked.length <= MAX_NAMED && found === 0
