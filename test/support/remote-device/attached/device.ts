import { type Fields, isFields } from '../shapes.ts'
import type { Coverage } from './coverage.ts'
import { fieldsOf } from './items.ts'
import { SessionView } from './reducer.ts'
import type { Link, Phone } from './world.ts'

/** What arrives at all arrives long before; only a test that fails waits so long. */
const PATIENCE_MS = 8_000

export type SessionRef = { id: string; epoch: number }

/** The answer to a request. */
export type Outcome = { result: Fields; receipt: string | null; requestId: string }

/** What a request does to the subscription of a session. */
type Effect = { kind: 'attach' | 'detach'; session: SessionRef }
type Pending = { resolve: (frame: Fields) => void; reject: (error: Error) => void; effect: Effect | null }

/**
 * A device that is attached to sessions: it keeps a view of each, built from what it is told alone, over any number of
 * connections. A breach of the contract is thrown by whatever waits next.
 */
export class AttachedDevice {
  readonly phone: Phone
  readonly #coverage: Coverage
  #link: Link | null = null
  readonly #views = new Map<string, SessionView>()
  readonly #epochs = new Map<string, number>()
  /** Sessions that this connection is attached to. */
  readonly #following = new Set<string>()
  /** Sessions that are being attached to again, on the same connection. */
  readonly #replacing = new Set<string>()
  readonly #pending = new Map<string, Pending[]>()
  readonly #watchers = new Set<() => void>()
  #requests = 0
  #breach: Error | null = null
  /** Whether an object may die while it streams. */
  #allowHoles = false
  /** Reads nothing: frames wait, as in a device that is too slow. */
  #paused: Fields[] | null = null
  #cutIn: { events: number; cut: () => void } | null = null
  /** Every frame that came, over all connections. */
  readonly log: Fields[] = []
  /** The live list as last pushed. */
  list: Fields[] | null = null
  readonly #idPrefix: string

  constructor(phone: Phone, coverage: Coverage, idPrefix = 'q') {
    this.phone = phone
    this.#coverage = coverage
    this.#idPrefix = idPrefix
  }

  get #names() {
    return this.phone.names
  }

  get connected(): boolean {
    return this.#link !== null && !this.#link.closed
  }

  /** Lets numbers be lost: an object is going to die while it streams. */
  allowHoles(): void {
    this.#allowHoles = true
    for (const view of this.#views.values()) view.allowHoles = true
  }

  view(session: SessionRef): SessionView {
    const view = this.#views.get(session.id)
    if (view === undefined) throw new Error(`never attached to ${session.id}`)
    return view
  }

  hasView(session: SessionRef): boolean {
    return this.#views.has(session.id)
  }

  isFollowing(session: SessionRef): boolean {
    return this.connected && this.#following.has(session.id)
  }

  async connect(): Promise<void> {
    const link = await this.phone.connect()
    this.#link = link
    // What was not read by then is lost with its connection.
    this.#paused = null
    this.#following.clear()
    this.#replacing.clear()
    link.onFrame = (frame) => {
      if (this.#link === link) this.#arrived(frame)
    }
    link.onClosed = () => {
      if (this.#link !== link) return
      this.#lost('the connection was closed')
    }
  }

  /** Goes away without a word. What it is owed is lost. */
  cut(): void {
    const link = this.#link
    this.#link = null
    link?.hangUp()
    this.#paused = null
    this.#lost('the device went away')
  }

  /** Goes away the moment so many events have come, and resolves then. */
  cutAfter(events: number): Promise<void> {
    return new Promise((resolve) => {
      this.#cutIn = { events, cut: resolve }
    })
  }

  /** Forgets that it was to go away. */
  keep(): void {
    this.#cutIn = null
  }

  /** Stops reading; `resumeReading` takes everything that came meanwhile at once. */
  pauseReading(): void {
    this.#paused ??= []
  }

  resumeReading(): void {
    const frames = this.#paused ?? []
    this.#paused = null
    for (const frame of frames) this.#read(frame)
  }

  /** Attaches without a cursor. */
  attach(session: SessionRef): Promise<Outcome> {
    return this.#attach(session, {})
  }

  /** Attaches with the cursor that this device holds; fields of the cursor may be replaced. */
  resume(session: SessionRef, changes: Fields = {}): Promise<Outcome> {
    const view = this.view(session)
    return this.#attach(session, {
      resume: {
        gateway_id: this.phone.gatewayId,
        instance_id: this.phone.instanceId,
        last_sequence: view.cursor,
        snapshot_id: view.snapshotId,
        ...changes,
      },
    })
  }

  /** Connects again and takes up each session where it was left. */
  async comeBack(session: SessionRef): Promise<Outcome> {
    await this.connect()
    return this.hasView(session) ? this.resume(session) : this.attach(session)
  }

  #attach(session: SessionRef, fields: Fields): Promise<Outcome> {
    const type = this.#names === 'session' ? 'attach_session' : 'attach_thread'
    if (this.#following.has(session.id)) this.#replacing.add(session.id)
    return this.#send({ type, ...fields }, this.#envelope(session), { kind: 'attach', session })
  }

  /** Ends the subscription; what was known stays known. */
  detach(session: SessionRef): Promise<Outcome> {
    const type = this.#names === 'session' ? 'detach_session' : 'detach_thread'
    return this.#send({ type }, this.#envelope(session), { kind: 'detach', session })
  }

  /** An operation on one session, under a fresh request id unless one is given. */
  on(session: SessionRef, operation: Fields, requestId?: string): Promise<Outcome> {
    const envelope = this.#envelope(session)
    return this.#send(
      operation,
      requestId === undefined ? envelope : { ...envelope, request_id: requestId },
      null,
    )
  }

  /** An operation without a session. */
  ask(operation: Fields, envelope: Fields = {}): Promise<Outcome> {
    return this.#send(operation, envelope, null)
  }

  nextRequestId(): string {
    this.#requests++
    return `${this.#idPrefix}-${this.#requests}`
  }

  #envelope({ id, epoch }: SessionRef): Fields {
    return { [this.#names === 'session' ? 'session_id' : 'thread_id']: id, registration_epoch: epoch }
  }

  #send(operation: Fields, envelope: Fields, effect: Effect | null): Promise<Outcome> {
    const link = this.#link
    if (link === null) return Promise.reject(new Error('the device is not connected'))
    const requestId = typeof envelope.request_id === 'string' ? envelope.request_id : this.nextRequestId()
    this.#coverage.sent(operation)
    const answered = new Promise<Fields>((resolve, reject) => {
      const entry: Pending = { resolve, reject, effect }
      const timer = setTimeout(
        () =>
          reject(
            new Error(`no answer came to ${JSON.stringify(operation).slice(0, 200)}; ${this.#lastFrames()}`),
          ),
        PATIENCE_MS,
      )
      const clear = () => clearTimeout(timer)
      entry.resolve = (frame) => {
        clear()
        resolve(frame)
      }
      entry.reject = (error) => {
        clear()
        reject(error)
      }
      this.#pending.set(requestId, [...(this.#pending.get(requestId) ?? []), entry])
    })
    const sent = link.send({ protocol_version: 1, request_id: requestId, ...envelope, operation })
    return Promise.all([answered, sent]).then(([frame]) => ({
      result: fieldsOf(frame.result),
      receipt: typeof frame.receipt === 'string' ? frame.receipt : null,
      requestId,
    }))
  }

  /** Waits until the view of a session is as wanted. */
  async until(
    session: SessionRef,
    wanted: (view: SessionView) => boolean,
    what = 'what was wanted',
  ): Promise<SessionView> {
    await this.#change(
      () => wanted(this.view(session)),
      () => `${what} did not come about`,
    )
    return this.view(session)
  }

  /** Waits until a frame of the log, from `from` on, is as wanted. */
  async untilFrame(wanted: (frame: Fields) => boolean, from = 0): Promise<Fields> {
    let found: Fields | undefined
    await this.#change(
      () => {
        found = this.log.slice(from).find(wanted)
        return found !== undefined
      },
      () => 'no such frame came',
    )
    return fieldsOf(found)
  }

  /** Waits until the pushed list is as wanted. */
  async untilList(wanted: (rows: Fields[]) => boolean): Promise<Fields[]> {
    await this.#change(
      () => this.list !== null && wanted(this.list),
      () => `the list did not become so: ${JSON.stringify(this.list)?.slice(0, 400)}`,
    )
    return this.list ?? []
  }

  /** Everything that the gateway sent before is here by then. */
  async drained(): Promise<void> {
    await this.ask({ type: this.#names === 'session' ? 'list_sessions' : 'list_threads' })
    this.throwBreach()
  }

  throwBreach(): void {
    if (this.#breach !== null) throw this.#breach
  }

  #change(holds: () => boolean, complaint: () => string): Promise<void> {
    return new Promise((resolve, reject) => {
      const end = (settle: () => void) => {
        clearTimeout(timer)
        this.#watchers.delete(look)
        settle()
      }
      const look = () => {
        const breach = this.#breach
        if (breach !== null) return end(() => reject(breach))
        try {
          if (holds()) end(resolve)
        } catch (error) {
          end(() => reject(error))
        }
      }
      const timer = setTimeout(
        () => end(() => reject(new Error(`${complaint()}; ${this.#lastFrames()}`))),
        PATIENCE_MS,
      )
      this.#watchers.add(look)
      look()
    })
  }

  #arrived(frame: Fields): void {
    if (this.#paused !== null) this.#paused.push(frame)
    else this.#read(frame)
  }

  #read(frame: Fields): void {
    this.log.push(frame)
    this.#coverage.received(frame)
    try {
      if (frame.kind === 'response') this.#answered(frame)
      else if (frame.kind === 'event') this.#event(frame)
      else if (frame.kind === `${this.#names}s`) {
        const rows = frame[`${this.#names}s`]
        this.list = Array.isArray(rows) ? rows : []
      }
    } catch (error) {
      this.#breach ??= error instanceof Error ? error : new Error(String(error))
    }
    for (const look of [...this.#watchers]) look()
    if (frame.kind === 'event') this.#countDown()
  }

  #countDown(): void {
    const planned = this.#cutIn
    if (planned === null) return
    planned.events--
    if (planned.events > 0) return
    this.#cutIn = null
    this.cut()
    planned.cut()
  }

  #answered(frame: Fields): void {
    const requestId = String(frame.request_id)
    const waiting = this.#pending.get(requestId) ?? []
    const [entry, ...rest] = waiting
    if (entry === undefined) throw new Error(`an answer came to ${requestId}, which nobody waits for`)
    if (rest.length === 0) this.#pending.delete(requestId)
    else this.#pending.set(requestId, rest)
    const result = fieldsOf(frame.result)
    // Before any event behind it is read.
    if (entry.effect?.kind === 'attach') this.#attached(entry.effect.session, result)
    if (entry.effect?.kind === 'detach') this.#following.delete(entry.effect.session.id)
    entry.resolve(frame)
  }

  #attached(session: SessionRef, result: Fields): void {
    this.#replacing.delete(session.id)
    this.#following.delete(session.id)
    if (result.type === 'attached') {
      const known = this.#epochs.get(session.id) === session.epoch ? this.#views.get(session.id) : undefined
      if (known === undefined) {
        const view = SessionView.from(result.snapshot, this.#names)
        view.allowHoles = this.#allowHoles
        this.#views.set(session.id, view)
      } else known.replaceBy(result.snapshot, this.#names)
      this.#epochs.set(session.id, session.epoch)
      this.#following.add(session.id)
    } else if (result.type === 'resumed') {
      const view = this.view(session)
      if (result.next_sequence !== view.cursor + 1)
        throw new Error(`resumed at ${String(result.next_sequence)} behind ${view.cursor}`)
      this.#following.add(session.id)
    }
  }

  #event(frame: Fields): void {
    const id = String(frame[this.#names === 'session' ? 'session_id' : 'thread_id'])
    const view = this.#views.get(id)
    // The answer to the new attach says where it goes on.
    if (this.#replacing.has(id)) return
    if (view === undefined || !this.#following.has(id))
      throw new Error(`an event came of ${id}, which this connection is not attached to`)
    if (frame.registration_epoch !== this.#epochs.get(id))
      throw new Error('an event came of another registration')
    view.apply(frame, this.#names)
    if (view.closed !== null) {
      this.#following.delete(id)
      this.#views.delete(id)
    }
  }

  #lost(why: string): void {
    this.#following.clear()
    const lost = [...this.#pending.values()].flat()
    this.#pending.clear()
    for (const { reject } of lost) reject(new Error(why))
    for (const look of [...this.#watchers]) look()
  }

  #lastFrames(): string {
    const frames = this.log.slice(-6).map((frame) => JSON.stringify(frame).slice(0, 300))
    return frames.length === 0 ? 'nothing came at all' : `the last frames were\n  ${frames.join('\n  ')}`
  }
}

/** Whether a result is an error of this code. */
export const isError = (result: unknown, code: string): boolean =>
  isFields(result) && result.type === 'error' && result.code === code
