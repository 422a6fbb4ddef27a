import { WebSocket } from 'ws'
import { namesOf } from './frame-shapes.ts'
import { ProtocolWatch } from './protocol-watch.ts'
import { type Fields, isFields } from './shapes.ts'

/** What arrives at all arrives long before; only a test that fails waits so long. */
const PATIENCE_MS = 8_000

export type DialOptions = {
  /** The Origin header; none unless given. */
  origin?: string
  /** The network address that the device seems to have. */
  address?: string
  /** Further headers of the upgrade. */
  headers?: Readonly<Record<string, string>>
  /** Called before each frame that the device sends. */
  beforeFrame?: () => Promise<void>
}

/** The upgrade was answered by something else than a socket. */
export class DialRefused extends Error {
  readonly status: number
  readonly body: string
  constructor(status: number, body: string) {
    super(`the upgrade was answered with HTTP ${status}: ${body.slice(0, 300)}`)
    this.status = status
    this.body = body
  }
}

/** A frame with its place in the order of arrival. */
export type Frame = Fields

const dialed = new Set<RemoteDevice>()

/**
 * For after each test: hangs up on behalf of all devices, and throws what the gateway did to any of them that it must
 * not do.
 */
export async function verifyDevices(): Promise<void> {
  const devices = [...dialed]
  dialed.clear()
  const faults: string[] = []
  for (const device of devices) faults.push(...(await device.verify()))
  if (faults.length > 0) throw new Error(`the gateway broke the contract:\n${faults.join('\n')}`)
}

/** Tells of a close frame at once: the event of `ws` waits for the end of the TCP connection, up to ten seconds later. */
class TellingSocket extends WebSocket {
  onCloseFrame: (code: number) => void = () => {}
  override close(code?: number, data?: string | Buffer): void {
    // `ws` answers the peer's close frame by this method; without a code it stands for 1005.
    this.onCloseFrame(code ?? 1005)
    super.close(code, data)
  }
}

/** As it arrives: half a surrogate pair has no bytes of its own. */
const textOf = (content: object | string): string =>
  Buffer.from(typeof content === 'string' ? content : JSON.stringify(content)).toString()

type Waiter = {
  wanted: (frame: Frame) => boolean
  resolve: (frame: Frame) => void
  reject: (error: Error) => void
}

/** A client of remote protocol v1 on one WebSocket, which believes nothing that the gateway says without checking it. */
export class RemoteDevice {
  /** Every frame that came, in order. */
  readonly log: Frame[] = []
  readonly watch = new ProtocolWatch()
  /** Takes every frame from here on, in place of `next`. */
  onFrame: ((frame: Frame) => void) | null = null
  /** Is told the end of the connection. */
  onClosed: () => void = () => {}
  readonly #socket: TellingSocket
  readonly #beforeFrame: () => Promise<void>
  #unread: Frame[] = []
  readonly #waiters = new Set<Waiter>()
  #closeCode: number | null = null
  #hungUp = false
  #mayBeCut = false
  readonly #closeWaiters = new Set<() => void>()
  #requests = 0
  #sending: Promise<void> = Promise.resolve()

  /** Opens a socket; rejects with `DialRefused` when the upgrade is answered otherwise. */
  static dial(
    url: string,
    { origin, address, headers, beforeFrame }: DialOptions = {},
  ): Promise<RemoteDevice> {
    return new Promise((resolve, reject) => {
      const socket = new TellingSocket(url, {
        perMessageDeflate: false,
        ...(origin === undefined ? {} : { origin }),
        headers: { ...headers, ...(address === undefined ? {} : { 'CF-Connecting-IP': address }) },
      })
      const device = new RemoteDevice(socket, beforeFrame ?? (async () => {}))
      socket.once('open', () => {
        dialed.add(device)
        resolve(device)
      })
      socket.once('unexpected-response', (request, response) => {
        let body = ''
        response.setEncoding('utf8')
        response.on('data', (piece: string) => {
          body += piece
        })
        response.on('end', () => {
          reject(new DialRefused(response.statusCode ?? 0, body))
          request.destroy()
        })
      })
      socket.on('error', reject)
    })
  }

  private constructor(socket: TellingSocket, beforeFrame: () => Promise<void>) {
    this.#socket = socket
    this.#beforeFrame = beforeFrame
    socket.onCloseFrame = (code) => this.#closed(code)
    socket.on('close', (code) => this.#closed(code))
    socket.on('message', (data: Buffer, isBinary: boolean) =>
      this.#arrived(isBinary ? data : data.toString('utf8')),
    )
  }

  /** The code of the close frame that came (1005: without one, 1006: cut off), or null while the socket is open. */
  get closeCode(): number | null {
    return this.#closeCode
  }

  /** Sends a frame, after those that were sent before: an object as JSON, a text or bytes as they are. */
  send(content: object | string | Uint8Array): Promise<void> {
    const bytes = content instanceof Uint8Array ? content : textOf(content)
    const sent = this.#sending.then(() => this.#sendNow(bytes))
    this.#sending = sent.catch(() => undefined)
    return sent
  }

  async #sendNow(bytes: string | Uint8Array): Promise<void> {
    await this.#beforeFrame()
    if (this.#closeCode !== null) throw this.#complaint('the connection is closed')
    this.watch.sent(bytes)
    this.#socket.send(bytes, { binary: bytes instanceof Uint8Array })
  }

  /** The next frame that nobody has taken and that is wanted; later ones wait for their turn. */
  next(wanted: (frame: Frame) => boolean = () => true): Promise<Frame> {
    const index = this.#unread.findIndex(wanted)
    const [found] = index < 0 ? [] : this.#unread.splice(index, 1)
    if (found !== undefined) return Promise.resolve(found)
    if (this.#closeCode !== null) return Promise.reject(this.#complaint('the connection is closed'))
    return new Promise((resolve, reject) => {
      const waiter: Waiter = { wanted, resolve, reject }
      this.#waiters.add(waiter)
      const timer = setTimeout(() => {
        this.#waiters.delete(waiter)
        reject(this.#complaint('no such frame came'))
      }, PATIENCE_MS)
      waiter.resolve = (frame) => {
        clearTimeout(timer)
        resolve(frame)
      }
      waiter.reject = (error) => {
        clearTimeout(timer)
        reject(error)
      }
    })
  }

  /** Sends the first frame, and gives the answer. */
  async handshake(frame: object | string | Uint8Array): Promise<Frame> {
    await this.send(frame)
    return this.next()
  }

  /**
   * Sends a request under a fresh id unless the envelope names one, and gives the `result` of its response, with the
   * receipt beside it when there is one.
   */
  async request(operation: Fields, envelope: Fields = {}): Promise<Fields> {
    const { result, receipt } = await this.response({ operation, ...envelope })
    return { ...(isFields(result) ? result : {}), ...(receipt === undefined ? {} : { receipt }) }
  }

  /** Sends what is given in an envelope, and gives the whole response. */
  async response(envelope: Fields): Promise<Frame> {
    this.#requests++
    const requestId = typeof envelope.request_id === 'string' ? envelope.request_id : `r-${this.#requests}`
    await this.send({ protocol_version: 1, request_id: requestId, ...envelope })
    return this.next((frame) => frame.kind === 'response' && frame.request_id === requestId)
  }

  /** Follows the pushed list until it is as wanted; older pushes are gone by then. */
  async nextList(wanted: (rows: Fields[]) => boolean): Promise<Fields[]> {
    const { many } = namesOf(this.watch.names)
    while (true) {
      const { [many]: rows } = await this.next(({ kind }) => kind === many)
      if (Array.isArray(rows) && wanted(rows)) return rows
    }
  }

  /** Waits for the bare error that ends the connection, and for its end; gives the error. */
  async lastWords(): Promise<Frame> {
    const error = await this.next((frame) => frame.type === 'error' && !('kind' in frame))
    await this.ended()
    return error
  }

  /** Waits until the gateway has closed the connection. */
  ended(): Promise<number> {
    const code = this.#closeCode
    if (code !== null) return Promise.resolve(code)
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.#closeWaiters.delete(told)
        reject(this.#complaint('the connection was not closed'))
      }, PATIENCE_MS)
      const told = () => {
        clearTimeout(timer)
        resolve(this.#closeCode ?? 0)
      }
      this.#closeWaiters.add(told)
    })
  }

  /** Asks for a sign of life and waits for it: whatever the gateway sent before is here by then. */
  async pinged(): Promise<void> {
    await this.send('{"type":"ping"}')
    await this.next((frame) => frame.type === 'pong')
  }

  /** Waits until every request is answered, or the connection is closed, and takes what comes meanwhile. */
  async settled(): Promise<void> {
    const deadline = Date.now() + PATIENCE_MS
    while (this.watch.waiting && this.#closeCode === null && Date.now() < deadline) {
      await this.next().catch(() => undefined)
    }
  }

  /** From now on the connection may be cut: its router is about to be killed. */
  expectCut(): void {
    this.#mayBeCut = true
  }

  /** Closes the connection from this side. */
  hangUp(): void {
    this.#hungUp = true
    this.#socket.close()
  }

  /** Waits for the answers that are owed, hangs up, and tells every fault with the frames that led to it. */
  async verify(): Promise<string[]> {
    await this.settled()
    const unanswered = this.watch.waiting && !this.#mayBeCut && !this.#hungUp ? this.watch.unanswered : []
    this.#hungUp = true
    this.#socket.terminate()
    const faults = [...this.watch.faults, ...unanswered.map((id) => `no answer came to ${id}`)]
    return faults.map((fault) => `${fault}\n    ${this.#lastFrames()}`)
  }

  #arrived(content: string | Uint8Array): void {
    const frame = this.watch.received(content)
    if (this.onFrame !== null) {
      this.onFrame(frame)
      return
    }
    this.log.push(frame)
    for (const waiter of this.#waiters) {
      if (!waiter.wanted(frame)) continue
      this.#waiters.delete(waiter)
      waiter.resolve(frame)
      return
    }
    this.#unread.push(frame)
  }

  #closed(code: number): void {
    if (this.#closeCode !== null) return
    this.#closeCode = code
    if (!this.#hungUp && !(this.#mayBeCut && code === 1006)) this.watch.closed(code)
    for (const told of this.#closeWaiters) told()
    this.#closeWaiters.clear()
    const waiting = [...this.#waiters]
    this.#waiters.clear()
    for (const { reject } of waiting) reject(this.#complaint(`the connection was closed with ${code}`))
    this.onClosed()
  }

  #complaint(what: string): Error {
    return new Error(`${what}; ${this.#lastFrames()}`)
  }

  #lastFrames(): string {
    const frames = this.log.slice(-6).map((frame) => JSON.stringify(frame).slice(0, 400))
    return frames.length === 0
      ? 'nothing came at all'
      : `the last frames were\n      ${frames.join('\n      ')}`
  }
}
