import type { MemoryFact } from '../../core/memory.ts'
import type { Refusal } from '../../core/operations/refusal.ts'
import type { ClearInput } from '../../core/run/contents.ts'
import type { Partial, RunInputEvent } from '../../core/run/inputs.ts'
import type { RunState } from '../../core/run/state.ts'
import type { RunInput } from '../../core/turn-view.ts'
import type { Failure } from '../../protocol/execution/errors.ts'
import type { LocalPreferences } from '../../protocol/execution/execute.ts'
import type { ExecutePolicy } from '../../protocol/execution/policy.ts'
import type { RemoteErrorCode } from '../../protocol/remote/errors.ts'
import type { RemoteQuestion } from '../../protocol/remote/question.ts'
import type { OutrightResult } from '../../protocol/remote/results.ts'
import type { RemoteSessionInfo } from '../../protocol/remote/session-info.ts'
import type { Result } from '../../protocol/result.ts'
import type { Access } from '../../providers/access.ts'
import type { Counters } from '../../storage/session/checkpoint.ts'
import type { StoredReceipt } from '../../storage/session/receipts.ts'
import type { SessionRow } from '../../storage/session/session-row.ts'
import type { Sql } from '../../storage/session/sql.ts'
import type { LiveTurn } from '../live-turn.ts'
import type { Actor, SessionOperation } from '../rpc.ts'

/** What a step is taken with. */
export type StepRequest = {
  access: Access | null
  facts: readonly MemoryFact[]
  runInput: RunInput | null
  key: null
  /** Stored with the step, if it is taken. */
  receipt?: StoredReceipt
  /** What else is changed in the transaction of the step. */
  also?: (sql: Sql) => void
}

/** Whether a step was taken; `remote`: how a device is told why not, where its protocol has a word for it. */
export type StepTaken =
  | { ok: true }
  | { ok: false; failure: Failure; remote?: RemoteErrorCode }
  | { ok: false; dropped: true }

/** `cut`: no event tells of the change. `receipt`: of whoever asked for it. */
export type ChangeOptions = {
  /** Of whoever asked for it; what it says may be known only when the change is made. */
  receipt?: StoredReceipt | (() => StoredReceipt)
  /** No event tells of the change. */
  cut?: boolean
}

/** What operations need of the engine. */
export interface OperationsEngine {
  readonly state: RunState | null
  readonly counters: Readonly<Counters>
  readonly isSealed: boolean
  readonly startedWith: ClearInput | null
  /** The session's row of the live list, as it is now. */
  readonly row: RemoteSessionInfo
  readonly turns: {
    readonly partial: Partial | null
    turn(turnId: string): LiveTurn | null
  }
  dispatch(input: RunInputEvent, request: StepRequest): StepTaken
  change(work: (sql: Sql) => void, how: ChangeOptions): void
  saveSession(session: SessionRow, how?: ChangeOptions): SessionRow
}

/** What devices read of the session. */
export interface ReadableSession {
  question(): RemoteQuestion | null
  history(cursor: string | null, limit: number): OutrightResult
  content(contentId: string, offset: number, maxBytes: number): OutrightResult
}

/** Images of prompts. */
export interface PromptImages {
  /** Takes one chunk, or says why not. Waits for nothing: what it stores stands in one transaction with its receipt. */
  put(actorId: string, upload: Extract<SessionOperation, { type: 'upload_image' }>): OutrightResult
  /** The images that a prompt refers to are there, and this actor's. */
  check(actorId: string, text: string): Result<unknown, Refusal>
}

export type OperationsDeps = {
  sql: Sql
  engine: OperationsEngine
  view: ReadableSession
  uploads: PromptImages
  session(): SessionRow
  /** What an actor's runs may use: no keys but those of the deployment, and those only where they serve this user (D14). */
  access(actor: Pick<Actor, 'deploymentProviders'>): Promise<Access>
  /** What is remembered of the user, as D1 tells it. */
  facts(): Promise<MemoryFact[]>
  /** The policy of a session that has none of its own yet (D07); null where the user has not set one. */
  defaultPolicy(): Promise<{ policy: ExecutePolicy; localPreferences: LocalPreferences } | null>
  /** Resolves when everything written so far is durable. */
  sync(): Promise<void>
  keepAlive(work: Promise<unknown>): void
  nowMs(): number
  newId(): string
}
