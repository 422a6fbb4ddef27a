import type http from 'node:http'
import { type WebSocket, WebSocketServer } from 'ws'
import type { RemoteEvent, ResyncReason } from '../../../src/protocol/remote/events.ts'
import type { RemoteSnapshot } from '../../../src/protocol/remote/snapshot.ts'
import type { ScriptedRouter } from './scripted-router.ts'
import { SESSION } from './scripted-router-turns.ts'

type Frame = Record<string, unknown>

const EPOCH = 7
export const GATEWAY_ID = '0123456789abcdef0123456789abcdef'

/** The state of a session in which nothing has happened. */
export const snapshotAt = (
  sequence: number,
  id: string,
  changes: Partial<RemoteSnapshot> = {},
): RemoteSnapshot => ({
  session: {
    session_id: SESSION,
    registration_epoch: EPOCH,
    title: 'a title',
    model: '',
    activity: 'idle',
    attention: { approval: false, question: false },
    health: 'live',
  },
  snapshot_id: id,
  sequence,
  generation: 0,
  transcript: [],
  history_revision: 'h0',
  pending_prompts: [],
  subagents: [],
  background_tasks: [],
  omitted: { tools: 0, subagents: 0, pending_prompts: 0, background_tasks: 0 },
  ...changes,
})

/** The gateway of a scripted router: it lists one session, and tells what a test has happen in it. */
export class ScriptedGateway {
  readonly #server = new WebSocketServer({ noServer: true })
  /** The requests of all connections, in their order. */
  readonly asked: Frame[] = []
  /** The headers of each upgrade. */
  readonly upgrades: http.IncomingHttpHeaders[] = []
  /** Whether the session is on the live list. */
  listed = true
  /** What it says that it can do; absent: nothing. */
  capabilities: string[] | undefined
  /** UTF-8 bytes that were sent on the present connection. */
  sentBytes = 0
  /** What clients said they have read. */
  readonly acknowledged: number[] = []
  /** How attaching is answered; absent: with the state, or by going on where the cursor is the newest. */
  resync: ResyncReason | undefined
  #sequence = 10
  #held: { sequence: number; event: RemoteEvent }[] = []
  #socket: WebSocket | undefined
  #attached = false
  #wake: (() => void)[] = []

  constructor(router: ScriptedRouter) {
    router.upgraded = (request, socket, head) => {
      this.upgrades.push(request.headers)
      this.#server.handleUpgrade(request, socket, head, (opened) => this.#opened(opened))
    }
  }

  /** Resolves when the session is attached to. */
  async attached(): Promise<void> {
    await this.#until(() => this.#attached)
  }

  /** Resolves when a client has said that it has read all that was sent. */
  async allRead(): Promise<void> {
    await this.#until(() => this.acknowledged.at(-1) === this.sentBytes)
  }

  async #until(holds: () => boolean): Promise<void> {
    while (!holds()) await new Promise<void>((resolve) => this.#wake.push(resolve))
  }

  /** An event of the session: told to whoever is attached, and held for whoever comes back. */
  tell(event: RemoteEvent): void {
    this.#held.push({ sequence: ++this.#sequence, event })
    if (this.#attached) this.#event(this.#sequence, event)
  }

  /** The state replaces everything. */
  replace(id: string, changes: Partial<RemoteSnapshot> = {}): void {
    if (this.#attached)
      this.#event(this.#sequence, { type: 'snapshot', snapshot: snapshotAt(this.#sequence, id, changes) })
  }

  /** The session leaves the list. */
  close(): void {
    this.listed = false
    this.#event(this.#sequence, { type: 'session_closed', reason: 'owner_exited' })
    this.#attached = false
    this.list()
  }

  /** Sends any frame. */
  send(frame: Frame): void {
    const text = JSON.stringify(frame)
    this.sentBytes += Buffer.byteLength(text)
    this.#socket?.send(text)
  }

  list(): void {
    const sessions = this.listed ? [snapshotAt(0, '').session] : []
    this.send({ kind: 'sessions', protocol_version: 1, gateway_id: GATEWAY_ID, sessions })
  }

  /** Loses the connection without a word. */
  drop(): void {
    this.#attached = false
    this.#socket?.terminate()
  }

  #opened(socket: WebSocket): void {
    this.#socket = socket
    this.#attached = false
    this.sentBytes = 0
    socket.on('message', (data) => {
      const text = String(data)
      if (text === '{"type":"ping"}') return socket.send('{"type":"pong"}')
      const frame = JSON.parse(text)
      if (frame.type === 'flow_ack') this.acknowledged.push(frame.bytes)
      else this.#serve(frame)
      this.#awake()
    })
  }

  #serve(request: Frame): void {
    this.asked.push(request)
    const operation = request.operation as Frame
    const respond = (result: Frame) =>
      this.send({ kind: 'response', protocol_version: 1, request_id: request.request_id, result })
    if (operation.type === 'subscribe_sessions') {
      const sessions = this.listed ? [snapshotAt(0, '').session] : []
      const { capabilities } = this
      const can = capabilities ? { capabilities } : {}
      respond({ type: 'sessions', gateway_id: GATEWAY_ID, sessions, subscribed: true, ...can })
      return
    }
    if (operation.type !== 'attach_session') return
    const resume = operation.resume as { last_sequence: number } | undefined
    this.#attached = true
    if (resume && !this.resync) {
      respond({ type: 'resumed', gateway_id: GATEWAY_ID, next_sequence: resume.last_sequence + 1 })
      for (const { sequence, event } of this.#held)
        if (sequence > resume.last_sequence) this.#event(sequence, event)
    } else {
      const resync = this.resync && resume ? { resync: this.resync } : {}
      const snapshot = snapshotAt(this.#sequence, `s${this.#sequence}`)
      respond({ type: 'attached', gateway_id: GATEWAY_ID, ...resync, snapshot })
    }
  }

  #awake(): void {
    for (const wake of this.#wake.splice(0)) wake()
  }

  #event(sequence: number, event: RemoteEvent): void {
    this.send({
      kind: 'event',
      protocol_version: 1,
      session_id: SESSION,
      registration_epoch: EPOCH,
      sequence,
      generation: 0,
      event,
    })
  }
}
