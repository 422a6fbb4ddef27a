import { takesImages } from '../core/images/takes-images.ts'
import { MAX_FACTS_PER_SCOPE } from '../core/memory.ts'
import { AUTO_PROFILE } from '../core/operations/session-settings.ts'
import type { Provider } from '../protocol/execution/ids.ts'
import type { RemoteSessionSettings } from '../protocol/remote/session-settings.ts'
import { keylessAccess } from '../providers/access.ts'
import type { Database } from '../storage/d1/database.ts'
import { loadUserFacts } from '../storage/d1/memory.ts'
import { loadDefaultPolicy } from '../storage/d1/settings.ts'
import { newId } from '../storage/ids.ts'
import { loadSession, type SessionRow } from '../storage/session/session-row.ts'
import type { Sql } from '../storage/session/sql.ts'
import type { RunEngine } from './engine.ts'
import { Operations } from './operations/operations.ts'
import type {
  Actor,
  AttachAnswer,
  AttachRequest,
  OperationAnswer,
  OperationRequest,
  PullAnswer,
  ReceiptStatus,
} from './rpc.ts'
import { Uploads } from './uploads.ts'

export type SessionDevicesDeps = {
  sql: Sql
  engine: RunEngine
  /** The deployment's own keys (D14). */
  secrets: ReadonlyMap<Provider, string>
  database(): Database
  /** Resolves when everything written so far is durable. */
  sync(): Promise<void>
  keepAlive(work: Promise<unknown>): void
}

/** A session as its devices have it: followed, acted on, and going on by itself where they are the only ones there. */
export class SessionDevices {
  readonly #deps: SessionDevicesDeps
  readonly #operations: Operations
  /** Whether the deployment's own providers serve the user, as the gateway said last (D14). */
  #servesDeployment = true

  constructor(deps: SessionDevicesDeps) {
    this.#deps = deps
    const { sql, engine, secrets, database } = deps
    this.#operations = new Operations({
      sql,
      engine,
      view: engine.remote,
      uploads: new Uploads({
        sql,
        nowMs: () => Date.now(),
        takesImages: () => engine.takesImages && this.takesImages() !== false,
      }),
      session: () => this.#session(),
      access: async ({ deploymentProviders }) => keylessAccess(deploymentProviders, secrets),
      facts: () => loadUserFacts(database(), this.#session().userId, MAX_FACTS_PER_SCOPE),
      defaultPolicy: () => loadDefaultPolicy(database(), this.#session().userId),
      sync: deps.sync,
      keepAlive: deps.keepAlive,
      nowMs: () => Date.now(),
      newId,
    })
  }

  /** What devices can choose from; null before the first run (D09). */
  settings(): RemoteSessionSettings | null {
    return this.#operations.settings()
  }

  /** A prompt with a picture could be served, by what the runs of devices may use; null where that is not known yet. */
  takesImages(): boolean | null {
    const { engine, secrets } = this.#deps
    const { startedWith } = engine
    if (engine.isSealed || startedWith === null) return false
    const chosen = this.settings()?.selected_model ?? AUTO_PROFILE
    return takesImages(
      startedWith.policy.routing,
      chosen === AUTO_PROFILE ? null : chosen,
      engine.catalogue.view(keylessAccess(this.#servesDeployment, secrets), Date.now()),
    )
  }

  /** Something waits that nobody will ask for (U06). */
  hasSuccessor(): boolean {
    return this.#operations.hasSuccessor()
  }

  /** Something may be left to do that nobody else will. Cheap, and may be called at any time. */
  wake(): void {
    this.#operations.runNext()
  }

  attach({ registrationEpoch, after, snapshotId }: AttachRequest): AttachAnswer {
    const { engine } = this.#deps
    if (!this.#isListedUnder(registrationEpoch)) return { k: 'stale' }
    engine.watch()
    if (after === null) return { k: 'attached', snapshot: engine.feed.attach(), resync: null }
    const answer = engine.feed.pull(after, snapshotId)
    return answer.k === 'replay'
      ? { k: 'resumed', replay: answer.replay }
      : { k: 'attached', snapshot: answer.snapshot, resync: answer.reason }
  }

  pull({ registrationEpoch, after, snapshotId }: AttachRequest & { after: number }): PullAnswer {
    const { engine } = this.#deps
    if (!this.#isListedUnder(registrationEpoch)) return { k: 'stale' }
    engine.watch()
    return engine.feed.pull(after, snapshotId)
  }

  operate(actor: Actor, request: OperationRequest): Promise<OperationAnswer> {
    this.#servesDeployment = actor.deploymentProviders
    return this.#operations.serve(actor, request)
  }

  status(
    actorId: string,
    target: { requestId: string; registrationEpoch: number | null },
  ): ReceiptStatus | null {
    return this.#operations.status(actorId, target)
  }

  #isListedUnder(epoch: number): boolean {
    const session = this.#session()
    return session.listed && session.epoch === epoch
  }

  #session(): SessionRow {
    const row = loadSession(this.#deps.sql)
    if (row === null) throw new Error('invariant broken: devices of no session')
    return row
  }
}
