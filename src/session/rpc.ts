import type { ContinueRequest } from '../protocol/execution/continue.ts'
import type { Failure } from '../protocol/execution/errors.ts'
import type { ExecuteRequest } from '../protocol/execution/execute.ts'
import type { MemoryRecord } from '../protocol/execution/memory.ts'
import type { PreviewResponse } from '../protocol/execution/preview.ts'
import type { SessionDetail, SessionSummary, UpdateSessionRequest } from '../protocol/execution/session.ts'
import type { Trace } from '../protocol/execution/trace.ts'
import type { RunResponse } from '../protocol/execution/turn.ts'
import type { SessionUsageResponse } from '../protocol/execution/usage.ts'
import type { ResyncReason } from '../protocol/remote/events.ts'
import type { SESSION_OPERATIONS } from '../protocol/remote/operation-kinds.ts'
import type { RemoteOperation } from '../protocol/remote/operations.ts'
import type { OutrightResult } from '../protocol/remote/results.ts'
import type { RemoteSessionInfo } from '../protocol/remote/session-info.ts'
import type { Result } from '../protocol/result.ts'
import type { Caller } from '../providers/access.ts'
import type { SessionCutoffs } from '../storage/d1/session-cutoffs.ts'
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

/** Who acts on a session through the gateway: a device, or a program with the owner's token (D38). */
export type Actor = {
  /** Receipts are kept under it. */
  id: string
  /** Whether the deployment's own keys and endpoints serve this user (D14). */
  deploymentProviders: boolean
}

/** A snapshot as it is sent: `body` is the JSON of a `RemoteSnapshot`. */
export type HeldSnapshot = { id: string; sequence: number; body: string }

/**
 * Events without a gap from `first` to `last` (`first - 1` when there are none), each the JSON of a `RemoteEvent`. `more`:
 * pull again behind `last`. `snapshot` replaces what they led to and is sent after them.
 */
export type Replay = {
  first: number
  events: string[]
  last: number
  more: boolean
  snapshot: HeldSnapshot | null
}

/** `after`: the last sequence that the device has applied; null attaches without a cursor. */
export type AttachRequest = { registrationEpoch: number; after: number | null; snapshotId: string | null }

/** `stale`: the session is not listed under this registration any more. */
export type AttachAnswer =
  | { k: 'attached'; snapshot: HeldSnapshot; resync: ResyncReason | null }
  | { k: 'resumed'; replay: Replay }
  | { k: 'stale' }

/** What a follower lacks after a sequence. `resync`: that cannot be told any more, and a snapshot stands for it. */
export type PullAnswer =
  | { k: 'replay'; replay: Replay }
  | { k: 'resync'; reason: ResyncReason; snapshot: HeldSnapshot }
  | { k: 'stale' }

export type SessionOperation = Exclude<
  Extract<RemoteOperation, { type: (typeof SESSION_OPERATIONS)[number] }>,
  { type: 'attach_session' | 'detach_session' }
>

export type OperationRequest = {
  requestId: string
  registrationEpoch: number
  /** SHA-256 of what is asked, however it was spelled (RF 28). */
  digest: string
  operation: SessionOperation
}

/** `receipt` is null for what changes nothing. */
export type OperationAnswer = { receipt: 'applied' | 'rejected' | null; result: OutrightResult }

/** `received`: it is being decided. */
export type ReceiptStatus = { receipt: 'applied' | 'rejected' | 'received'; result?: OutrightResult }

/** Where a program that follows the events stopped reading; `snapshotId` is that of the newest snapshot it has. */
export type EventCursor = { after: number; snapshotId: string | null }

/** `page`: one JSON text, waited for as long as `waitMs` while there is nothing. */
export type EventsView = { cursor: EventCursor | null } & (
  | { stream: true }
  | { stream: false; waitMs: number }
)

export type EventsAnswer =
  | { kind: 'page'; body: string }
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
  /** Where a device begins to follow the session: one cut of its state and its events (D34). Whoever attaches is told of events. */
  attach(userId: string, request: AttachRequest): Promise<AttachAnswer>
  /** What a follower that has missed something lacks (D34). */
  pull(userId: string, request: AttachRequest & { after: number }): Promise<PullAnswer>
  /** An operation of a device on this session (remote protocol, "Operations"). */
  operate(userId: string, actor: Actor, request: OperationRequest): Promise<OperationAnswer>
  /** What became of an earlier mutation of this actor; null when it is not known here. `registrationEpoch` null: any. */
  requestStatus(
    userId: string,
    actorId: string,
    target: { requestId: string; registrationEpoch: number | null },
  ): Promise<ReceiptStatus | null>
  /** What happens in the session, for programs: listed live or not (D38). */
  events(userId: string, view: EventsView): Promise<EventsAnswer>
  /** Lists the session live, where it is not yet; its row. Null: there is no such session, or it is archived. */
  share(userId: string): Promise<RemoteSessionInfo | null>
}
