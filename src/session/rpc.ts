import type { ContinueRequest } from '../protocol/execution/continue.ts'
import type { Failure } from '../protocol/execution/errors.ts'
import type { ExecuteRequest } from '../protocol/execution/execute.ts'
import type { MemoryRecord } from '../protocol/execution/memory.ts'
import type { PreviewResponse } from '../protocol/execution/preview.ts'
import type { SessionDetail, SessionSummary, UpdateSessionRequest } from '../protocol/execution/session.ts'
import type { Trace } from '../protocol/execution/trace.ts'
import type { RunResponse } from '../protocol/execution/turn.ts'
import type { SessionUsageResponse } from '../protocol/execution/usage.ts'
import type { Result } from '../protocol/result.ts'
import type { Caller } from '../providers/access.ts'
import type { SessionCutoffs } from '../storage/d1/retention.ts'
import type { FactPatch } from '../storage/session/memories.ts'

/**
 * What the Worker and the session's object say to each other. It is a wire: for a release, methods and fields are only
 * added (D32). Failures are data.
 */

/** A new session. */
export type NewSession = {
  sessionId: string
  userId: string
  title: string
  scope: string | null
  keyId: string | null
}

/** How a turn is to be answered. */
export type TurnOptions = {
  stream: boolean
  /** SHA-256 of operation and body: tells a repeat from another request (D20). */
  digest: string
  idempotencyKey: string | null
}

export type TurnAnswer =
  | { kind: 'json'; body: RunResponse }
  | { kind: 'stream'; stream: ReadableStream<Uint8Array> }
  | { kind: 'failure'; failure: Failure }

export interface SessionRpc {
  create(session: NewSession): Promise<SessionSummary>
  detail(userId: string): Promise<Result<SessionDetail, Failure>>
  update(userId: string, patch: UpdateSessionRequest): Promise<Result<SessionSummary, Failure>>
  /** Deletes the session. `unmade`: nobody was told of it, so that the key that made it may make another (D20). */
  remove(userId: string, how?: { unmade?: boolean }): Promise<Result<true, Failure>>
  execute(caller: Caller, body: ExecuteRequest, options: TurnOptions): Promise<TurnAnswer>
  continueRun(caller: Caller, body: ContinueRequest, options: TurnOptions): Promise<TurnAnswer>
  currentRun(userId: string, view: { stream: boolean; lastEventId: string | null }): Promise<TurnAnswer>
  /** Takes back what the user allowed for the rest of the run (U23); without such a grant a failure of status 404. */
  revokeGrant(userId: string, grantId: string): Promise<Result<true, Failure>>
  preview(caller: Caller, body: ExecuteRequest): Promise<Result<PreviewResponse, Failure>>
  traces(userId: string, window: { limit: number; offset: number }): Promise<Result<Trace, Failure>>
  usage(userId: string): Promise<Result<SessionUsageResponse, Failure>>
  /** The facts of the session, the newest first; of archived ones, too (D50). */
  facts(userId: string): Promise<Result<MemoryRecord[], Failure>>
  /** Makes or replaces a fact of the session (D50). */
  putMemory(userId: string, fact: FactPatch): Promise<Result<MemoryRecord, Failure>>
  /** Forgets a fact of the session; `false`: there is none of that id. */
  deleteMemory(userId: string, memoryId: string): Promise<Result<boolean, Failure>>
  /** The session whole, as JSON lines; archived ones, too. A stream that breaks is not whole. */
  exportLines(userId: string): Promise<Result<ReadableStream<Uint8Array>, Failure>>
  /** Removes the session if its time is over; says whether it did (D31). */
  expire(userId: string, cutoffs: SessionCutoffs): Promise<Result<boolean, Failure>>
  /** Drops the traces of turns that ended before this time, here and in D1; says from when on there are any (D31). */
  expireTraces(userId: string, beforeMs: number): Promise<Result<number, Failure>>
  /** The user's gateway took this registration off the live list by itself (D03). Says nothing of others. */
  delisted(userId: string, epoch: number): Promise<void>
  /** The gateway asks for the row of a session that it has not heard of for long. False: there is no such session. */
  relist(userId: string): Promise<boolean>
}
