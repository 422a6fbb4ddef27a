import { decodeFrame, type ListedRow, type ReceivedFrame } from '../protocol/remote/decode-frame.ts'
import type { RemoteEvent } from '../protocol/remote/events.ts'
import type { RemoteOperation, ResumeCursor } from '../protocol/remote/operations.ts'
import type { RemoteSnapshot } from '../protocol/remote/snapshot.ts'
import { backoffMs, wait } from './backoff.ts'
import type { GatewaySocket } from './gateway-socket.ts'
import { ReadReports } from './read-reports.ts'

/** What a follower tells: the whole state, or one thing that happened behind it. */
export type RemoteNews = { k: 'snapshot'; snapshot: RemoteSnapshot } | { k: 'event'; event: RemoteEvent }

/** Whoever can be asked to tell what happens to a session. */
export type NewsSource = {
  /** @returns ends that */
  onNews(listener: (news: RemoteNews) => void): () => void
}

/** Devices that see the session, as far as this machine can tell. */
export type DeviceLine = {
  /** Whether the session is followed, and so shown to devices, now or within seconds. */
  reached(signal: AbortSignal): Promise<boolean>
  /** Resolves when nothing will be heard of devices any more. */
  readonly ended: Promise<void>
}

export type FollowerOptions = {
  sessionId: string
  /**
   * Opens a socket on which requests may be sent at once; null when that cannot be done now. `again`: none was opened by
   * the attempt before.
   */
  connect(how: { again: boolean; signal: AbortSignal }): Promise<GatewaySocket | null>
  /** Waits between attempts; they grow, and the last goes on for ever. */
  waits?: { firstMs: number; maxMs: number }
}

/** A laptop that changes networks is back in seconds; one that is offline for hours is not asked for more. */
const WAITS = { firstMs: 500, maxMs: 15_000 }
/** A gateway says nothing by itself, and a connection may be gone without a word: it is asked this often … (D36). */
const PING_MS = 30_000
/** … and given up when it has said nothing for so long. */
const SILENCE_MS = 75_000
const PING = '{"type":"ping"}'
/** A session is listed, and attached to, well within this. */
const REACH_MS = 10_000

/** What it attaches to once the session is listed under it. */
type Subscription = { epoch: number; requestId: string; attached: boolean }

/**
 * Follows one session over the gateway's socket: attaches whenever the session is listed, comes back with its cursor
 * when the connection is lost, and tells everything once, in order, or the whole state where that is not possible (U01).
 * It fails nothing: without a connection there is no news.
 */
export class RemoteFollower implements NewsSource, DeviceLine {
  readonly #options: FollowerOptions
  readonly #listeners = new Set<(news: RemoteNews) => void>()
  readonly #closed = new AbortController()
  #cursor: ResumeCursor | undefined
  #running: Promise<void> | undefined
  #isAttached = false
  /** Each waits to hear whether the session is followed. */
  readonly #asking = new Set<(isAttached: boolean) => void>()

  constructor(options: FollowerOptions) {
    this.#options = options
  }

  get sessionId(): string {
    return this.#options.sessionId
  }

  onNews(listener: (news: RemoteNews) => void): () => void {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }

  /** False as soon as an attempt fails: whoever asks has something to decide. */
  reached(signal: AbortSignal): Promise<boolean> {
    if (this.#isAttached) return Promise.resolve(true)
    const left = AbortSignal.any([signal, this.#closed.signal])
    if (left.aborted) return Promise.resolve(false)
    return new Promise((resolve) => {
      const done = (isAttached: boolean) => {
        clearTimeout(timer)
        left.removeEventListener('abort', giveUp)
        this.#asking.delete(done)
        resolve(isAttached)
      }
      const giveUp = () => done(false)
      const timer = setTimeout(giveUp, REACH_MS)
      left.addEventListener('abort', giveUp, { once: true })
      this.#asking.add(done)
    })
  }

  get ended(): Promise<void> {
    return this.#running ?? Promise.resolve()
  }

  #answer(isAttached: boolean): void {
    for (const done of [...this.#asking]) done(isAttached)
  }

  /** Begins to follow; a second call changes nothing. */
  start(): void {
    this.#running ??= this.#run()
  }

  /** Ends the connection. Resolves when nothing of it is left. */
  async close(): Promise<void> {
    this.#closed.abort()
    await this.#running
  }

  async #run(): Promise<void> {
    const { connect, waits = WAITS } = this.#options
    const { signal } = this.#closed
    let isRefused = false
    for (let failures = 0; !signal.aborted; ) {
      const socket = await connect({ again: isRefused, signal })
      isRefused = socket === null
      if (socket === null) this.#answer(false)
      else {
        const how = await new Connection(socket, this.#options.sessionId, {
          cursor: () => this.#cursor,
          moved: (cursor) => {
            this.#cursor = cursor
          },
          tell: (news) => this.#tell(news),
          attached: (isAttached) => {
            this.#isAttached = isAttached
            if (isAttached) this.#answer(true)
          },
          signal,
        }).ended
        this.#isAttached = false
        if (how !== 'served') this.#answer(false)
        if (how === 'refused') this.#closed.abort()
        if (how === 'served') failures = 0
      }
      failures++
      if (!signal.aborted) await wait(backoffMs({ attempts: 0, openAttempts: 0, ...waits }, failures), signal)
    }
  }

  #tell(news: RemoteNews): void {
    for (const listener of [...this.#listeners]) listener(news)
  }
}

type ConnectionDeps = {
  cursor(): ResumeCursor | undefined
  moved(cursor: ResumeCursor): void
  tell(news: RemoteNews): void
  /** The session is followed from here on, or is not. */
  attached(isAttached: boolean): void
  signal: AbortSignal
}

/** Which gateway a cursor is one of. */
type Place = { gateway_id: string; instance_id?: string | undefined }

/** `served`: the gateway has answered. `refused`: coming back is of no use. */
type ConnectionEnd = 'served' | 'unserved' | 'refused'

/** One socket, from its first request to its end. */
class Connection {
  readonly #socket: GatewaySocket
  readonly #sessionId: string
  readonly #deps: ConnectionDeps
  readonly #reports: ReadReports
  readonly ended: Promise<ConnectionEnd>
  #end: (how: ConnectionEnd) => void = () => undefined
  #requests = 0
  #served = false
  #isRefused = false
  #subscription: Subscription | undefined
  #heardAtMs = Date.now()

  constructor(socket: GatewaySocket, sessionId: string, deps: ConnectionDeps) {
    this.#socket = socket
    this.#sessionId = sessionId
    this.#deps = deps
    this.#reports = new ReadReports((frame) => socket.send(frame))
    const { signal } = deps
    const beat = setInterval(() => this.#beat(), PING_MS)
    const leave = () => {
      socket.close()
      this.#end('served')
    }
    this.ended = new Promise<ConnectionEnd>((resolve) => {
      this.#end = resolve
    }).finally(() => {
      clearInterval(beat)
      this.#reports.end()
      signal.removeEventListener('abort', leave)
    })
    socket.addEventListener('message', ({ data }) => {
      this.#heardAtMs = Date.now()
      if (typeof data !== 'string') return
      this.#received(decodeFrame(data))
      this.#reports.read(data)
    })
    socket.addEventListener('close', () => this.#end(this.#howEnded()))
    signal.addEventListener('abort', leave, { once: true })
    if (signal.aborted) leave()
    else this.#request({ type: 'subscribe_sessions' })
  }

  #howEnded(): ConnectionEnd {
    if (this.#isRefused) return 'refused'
    return this.#served ? 'served' : 'unserved'
  }

  #beat(): void {
    if (Date.now() - this.#heardAtMs < SILENCE_MS) {
      // On a slow line it takes long until there is much to report.
      this.#reports.report()
      this.#socket.send(PING)
      return
    }
    this.#socket.close()
    // Nobody is there to close its end: the platform would wait for that.
    this.#end(this.#howEnded())
  }

  #request(operation: RemoteOperation, epoch?: number): string {
    const requestId = `follow-${++this.#requests}`
    const inSession = epoch === undefined ? {} : { session_id: this.#sessionId, registration_epoch: epoch }
    this.#socket.send(JSON.stringify({ protocol_version: 1, request_id: requestId, ...inSession, operation }))
    return requestId
  }

  #received(frame: ReceivedFrame): void {
    switch (frame.k) {
      case 'error':
        // Whoever signed out, or was signed out, is not let in again.
        this.#isRefused = frame.code === 'revoked' || frame.code === 'unauthorized'
        return
      case 'sessions':
        this.#listed(frame.sessions)
        return
      case 'response':
        this.#served = true
        if (frame.capabilities.includes('flow_ack')) this.#reports.begin()
        if (frame.listed !== null) this.#listed(frame.listed)
        else this.#answered(frame)
        return
      case 'event':
        this.#happened(frame)
        return
      case 'unknown':
        return
    }
  }

  /** The live list: only while the session is on it can it be followed. */
  #listed(rows: readonly ListedRow[]): void {
    const epoch = rows.find(({ session_id: id }) => id === this.#sessionId)?.registration_epoch
    if (epoch === undefined) this.#leave()
    else if (this.#subscription?.epoch !== epoch) this.#attach(epoch)
  }

  #leave(): void {
    this.#subscription = undefined
    this.#deps.attached(false)
  }

  #attach(epoch: number): void {
    const resume = this.#deps.cursor()
    const requestId = this.#request({ type: 'attach_session', ...(resume ? { resume } : {}) }, epoch)
    this.#subscription = { epoch, requestId, attached: false }
  }

  #answered({ requestId, result }: Extract<ReceivedFrame, { k: 'response' }>): void {
    const subscription = this.#subscription
    if (requestId !== subscription?.requestId) return
    if (result?.type === 'resumed' || result?.type === 'attached') {
      subscription.attached = true
      if (result.type === 'attached') this.#replace(result, result.snapshot)
      this.#deps.attached(true)
      return
    }
    // A registration that is over: the list tells of the next. Whatever else it is, a new connection begins anew.
    const isOver =
      result?.type === 'error' && (result.code === 'stale_session' || result.code === 'not_found')
    if (!isOver) this.#socket.close()
  }

  #happened({ sessionId, registrationEpoch, sequence, event }: Extract<ReceivedFrame, { k: 'event' }>): void {
    const subscription = this.#subscription
    const cursor = this.#deps.cursor()
    if (sessionId !== this.#sessionId || registrationEpoch !== subscription?.epoch) return
    if (!subscription.attached || cursor === undefined) return
    switch (event?.type) {
      case 'snapshot':
        this.#replace(cursor, event.snapshot)
        return
      case 'session_closed':
        this.#leave()
        return
      case 'resync_required':
        // The state follows.
        return
      default:
        if (sequence <= cursor.last_sequence) return
        if (sequence === cursor.last_sequence + 1) {
          this.#deps.moved({ ...cursor, last_sequence: sequence })
          if (event) this.#deps.tell({ k: 'event', event })
        } else {
          // A gap that the rules do not explain.
          this.#attach(subscription.epoch)
        }
    }
  }

  #replace({ gateway_id, instance_id }: Place, snapshot: RemoteSnapshot): void {
    const { sequence: last_sequence, snapshot_id } = snapshot
    this.#deps.moved({
      gateway_id,
      ...(instance_id === undefined ? {} : { instance_id }),
      last_sequence,
      ...(snapshot_id === undefined ? {} : { snapshot_id }),
    })
    this.#deps.tell({ k: 'snapshot', snapshot })
  }
}
