import { env } from 'cloudflare:workers'
import { Host, type HostDeps } from '../../../src/gateway/host/host.ts'
import type { RemoteOperation } from '../../../src/protocol/remote/operations.ts'
import type { ReceiptState, RemoteResult } from '../../../src/protocol/remote/results.ts'
import type { RemoteSessionInfo } from '../../../src/protocol/remote/session-info.ts'
import { newId } from '../../../src/storage/ids.ts'
import { openPairing } from './gateway-device.ts'
import { insideGateway } from './gateway-object.ts'
import type { Client } from './router.ts'

export type HostReply = { receipt: ReceiptState | null; result: RemoteResult }

/** The row of a session that is listed. */
export const listedRow = (session_id: string, registration_epoch = 7): RemoteSessionInfo => ({
  session_id,
  registration_epoch,
  title: 'a title',
  model: '',
  harness: 'switchyard',
  activity: 'idle',
  attention: { approval: false, question: false },
  health: 'live',
})

/** The host-wide operations of one user, on the real storage, with a live list and sessions of the test's own. */
export class HostRig {
  readonly #userId: string
  readonly rows = new Map<string, RemoteSessionInfo>()
  /** Registrations that ended, and whose sessions do not know. */
  readonly ended = new Set<string>()
  session: HostDeps['session'] = () => {
    throw new Error('no session is asked')
  }

  private constructor(userId: string) {
    this.#userId = userId
  }

  static async make(owner: Client): Promise<HostRig> {
    // The gateway makes its tables when it is used for the first time.
    await openPairing(owner)
    return new HostRig(owner.userId)
  }

  /** Works with the operations; those of another call know nothing of what these have in memory. */
  within<T>(work: (host: Host) => T | Promise<T>): Promise<T> {
    return insideGateway(this.#userId, (sql, state) =>
      work(
        new Host({
          sql,
          db: env.DB,
          userId: () => this.#userId,
          list: {
            row: (id) => this.rows.get(id) ?? null,
            put: (row) => {
              if (this.ended.has(`${row.session_id} ${row.registration_epoch}`)) return false
              this.rows.set(row.session_id, row)
              return true
            },
          },
          session: (id) => this.session(id),
          keepAlive: (promise) => state.waitUntil(promise),
        }),
      ),
    )
  }

  ask(operation: RemoteOperation, requestId: string = newId(), id = 'd1'): Promise<HostReply> {
    const request = { requestId, sessionId: null, registrationEpoch: null, operation }
    return this.within((host) => host.serve({ id, deploymentProviders: false }, request))
  }
}
