import { env } from 'cloudflare:workers'
import type { OperationAnswer, SessionOperation } from '../../../src/session/rpc.ts'
import type { Session } from '../../../src/session/session.ts'
import type { Client } from './router.ts'

// The binding's type does not know the class behind it.
const stubOf = (id: string) => env.SESSION.getByName(id) as unknown as DurableObjectStub<Session>

let requests = 0

/** A session that is listed live, and asked what devices ask it for, without their gateway. */
export class SharedSession {
  readonly id: string
  /** The registration that devices name. */
  readonly epoch: number
  readonly #userId: string

  private constructor(id: string, userId: string, epoch: number) {
    this.id = id
    this.#userId = userId
    this.epoch = epoch
  }

  /** A new session, or one that the client has made. */
  static async open(client: Client, made?: string): Promise<SharedSession> {
    const id = made ?? (await client.newSession())
    const row = await stubOf(id).share(client.userId)
    if (row === null) throw new Error('not listed')
    return new SharedSession(id, client.userId, row.registration_epoch)
  }

  get stub(): DurableObjectStub<Session> {
    return stubOf(this.id)
  }

  /** A device asks for something, under a new id unless the test says which. */
  async ask(
    operation: SessionOperation,
    { requestId = `request-${++requests}`, device = 'phone' } = {},
  ): Promise<OperationAnswer> {
    const digest = JSON.stringify(operation)
    const actor = { id: device, deploymentProviders: true }
    const request = { requestId, registrationEpoch: this.epoch, digest, operation }
    return (await this.stub.operate(this.#userId, actor, request)) as OperationAnswer
  }
}
