import { env } from 'cloudflare:workers'
import type { EventPush, GatewayRpc } from '../../../src/gateway/rpc.ts'
import type { RemoteEvent } from '../../../src/protocol/remote/events.ts'
import type { RemoteSessionInfo } from '../../../src/protocol/remote/session-info.ts'
import type { RemoteSnapshot } from '../../../src/protocol/remote/snapshot.ts'
import type {
  AttachAnswer,
  AttachRequest,
  HeldSnapshot,
  OperationAnswer,
  OperationRequest,
  PullAnswer,
  ReceiptStatus,
  Replay,
} from '../../../src/session/rpc.ts'
import { Session } from '../../../src/session/session.ts'

/** What a gateway asks of a session's object, as it is scripted here. */
type Asked = 'attach' | 'pull' | 'operate' | 'requestStatus'

const fakes = new Map<string, FakeSession>()
const real = new Map<Asked, PropertyDescriptor | undefined>()

/** From here on, objects of the given ids are played by their fakes; others are as they were. */
function install(): void {
  if (real.size > 0) return
  for (const method of ['attach', 'pull', 'operate', 'requestStatus'] as const) {
    const before = Object.getOwnPropertyDescriptor(Session.prototype, method)
    real.set(method, before)
    const played = async function (this: unknown, ...given: unknown[]): Promise<unknown> {
      const ctx: DurableObjectState = Reflect.get(Object(this), 'ctx')
      const fake = fakes.get(ctx.id.name ?? '')
      if (fake !== undefined) return fake.play(method, given)
      if (before === undefined) throw new Error(`there is no session ${ctx.id.name}`)
      return Reflect.apply(before.value, this, given)
    }
    Object.defineProperty(Session.prototype, method, { configurable: true, writable: true, value: played })
  }
}

/** Ends all fakes. */
export function dropFakeSessions(): void {
  fakes.clear()
  for (const [method, before] of real) {
    if (before === undefined) Reflect.deleteProperty(Session.prototype, method)
    else Object.defineProperty(Session.prototype, method, before)
  }
  real.clear()
}

const EPOCH = 1

export const rowOf = (session_id: string, more: Partial<RemoteSessionInfo> = {}): RemoteSessionInfo => ({
  session_id,
  registration_epoch: EPOCH,
  title: 'a session',
  model: '',
  activity: 'idle',
  attention: { approval: false, question: false },
  health: 'live',
  ...more,
})

export const text = (words: string): string =>
  JSON.stringify({ type: 'text_delta', text: words } satisfies RemoteEvent)

/** The other side of a gateway's calls: a session with events, a newest snapshot, and answers to operations. */
export class FakeSession {
  readonly id: string
  readonly #userId: string
  readonly #events: string[] = []
  /** Events up to this one are not held any more. */
  floor = 0
  title = 'a session'
  cut = { id: 'cut 0', sequence: 0 }
  /** What the session was asked, in order. */
  readonly asked: { method: Asked; given: unknown[] }[] = []
  /** Each call waits for this before it is decided … */
  before: (method: Asked) => Promise<void> = async () => {}
  /** … or for this when its answer is made. */
  after: (method: Asked) => Promise<void> = async () => {}
  pulledAtOnce = 100
  /** Replaces what a pull says. */
  pullAnswer: PullAnswer | null = null
  operate: (request: OperationRequest, actor: unknown) => Promise<OperationAnswer> = async () => ({
    receipt: 'applied',
    result: { type: 'prompt_accepted', disposition: 'started' },
  })
  status: (requestId: string, epoch: number | null) => Promise<ReceiptStatus | null> = async () => null

  constructor(userId: string, id: string) {
    this.#userId = userId
    this.id = id
    fakes.set(id, this)
    install()
  }

  get last(): number {
    return this.#events.length
  }

  get #gateway(): GatewayRpc {
    return env.GATEWAY.getByName(this.#userId) as unknown as GatewayRpc
  }

  list(more: Partial<RemoteSessionInfo> = {}): Promise<boolean> {
    return this.#gateway.putRow(this.#userId, rowOf(this.id, more))
  }

  unlist(reason: 'sharing_disabled' | 'owner_exited'): Promise<void> {
    return this.#gateway.removeRow(this.#userId, { sessionId: this.id, registrationEpoch: EPOCH, reason })
  }

  /** Something happens that nobody is told of. */
  happen(...events: string[]): void {
    this.#events.push(...events)
  }

  /** Something happens that no event tells. */
  replace(id: string): void {
    this.cut = { id, sequence: this.last }
  }

  /** Tells the gateway of what happens. */
  async tell(...events: string[]): Promise<boolean> {
    const first = this.last + 1
    this.happen(...events)
    return this.push({ first, events, last: this.last })
  }

  async push(push: Partial<EventPush>): Promise<boolean> {
    const { watched } = await this.#gateway.pushEvents(this.#userId, {
      sessionId: this.id,
      registrationEpoch: EPOCH,
      first: this.last + 1,
      events: [],
      last: this.last,
      snapshot: null,
      ...push,
    })
    return watched
  }

  snapshot(): HeldSnapshot {
    const body: RemoteSnapshot = {
      session: rowOf(this.id, { title: this.title }),
      snapshot_id: this.cut.id,
      sequence: this.last,
      generation: 0,
      transcript: [],
      history_revision: 'h0',
      pending_prompts: [],
      subagents: [],
      background_tasks: [],
      omitted: { tools: 0, subagents: 0, pending_prompts: 0, background_tasks: 0 },
    }
    return { id: this.cut.id, sequence: this.last, body: JSON.stringify(body) }
  }

  count(method: Asked): number {
    return this.asked.filter((call) => call.method === method).length
  }

  async play(method: Asked, given: unknown[]): Promise<unknown> {
    this.asked.push({ method, given })
    await this.before(method)
    const answer = await this.#answer(method, given)
    await this.after(method)
    return answer
  }

  #answer(method: Asked, given: unknown[]): unknown {
    switch (method) {
      case 'attach':
        return this.#attach(given[1] as AttachRequest)
      case 'pull':
        return this.#pull(given[1] as AttachRequest & { after: number })
      case 'operate':
        return this.operate(given[2] as OperationRequest, given[1])
      case 'requestStatus': {
        const { requestId, registrationEpoch } = given[2] as {
          requestId: string
          registrationEpoch: number | null
        }
        return this.status(requestId, registrationEpoch)
      }
    }
  }

  #attach({ after, snapshotId }: AttachRequest): AttachAnswer {
    const snapshot = this.snapshot()
    if (after === null) return { k: 'attached', snapshot, resync: null }
    if (after > this.last) return { k: 'attached', snapshot, resync: 'sequence_gap' }
    if (after < this.floor) return { k: 'attached', snapshot, resync: 'lagged' }
    if (after === this.cut.sequence && snapshotId !== this.cut.id)
      return { k: 'attached', snapshot, resync: 'sequence_gap' }
    return { k: 'resumed', replay: this.#replay(after) }
  }

  #pull({ after, snapshotId }: AttachRequest & { after: number }): PullAnswer {
    if (this.pullAnswer !== null) return this.pullAnswer
    if (after < this.floor) return { k: 'resync', reason: 'lagged', snapshot: this.snapshot() }
    const replay = this.#replay(after)
    const isReplaced = after === this.cut.sequence && snapshotId !== this.cut.id
    return { k: 'replay', replay: isReplaced ? { ...replay, snapshot: this.snapshot() } : replay }
  }

  #replay(after: number): Replay {
    const events = this.#events.slice(after, after + this.pulledAtOnce)
    const last = after + events.length
    const more = last < this.last
    const snapshot = !more && this.cut.sequence > after ? this.snapshot() : null
    return { first: after + 1, events, last, more, snapshot }
  }
}
