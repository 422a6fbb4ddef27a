import { frameFaults, namesOf, type WireNames } from './frame-shapes.ts'
import { type BareCode, handshakeFaults } from './handshake-shapes.ts'
import { byteLength, type Fields, isFields, nulls } from './shapes.ts'

/** No frame in either direction is longer ("Size"). */
const MAX_FRAME_BYTES = 256 * 1024
const MAX_INBOUND_BYTES = 1024 * 1024
const MAX_REQUEST_ID_BYTES = 128
const PING = '{"type":"ping"}'

/** Where a connection stands; `over` after the frame that is the last one. */
type Stage = 'fresh' | 'pending' | 'approved' | 'authenticated' | 'over'

const AFTER_ANY_FIRST: BareCode[] = ['invalid_frame', 'frame_too_large', 'unsupported_version']
const AFTER_PAIR: BareCode[] = [...AFTER_ANY_FIRST, 'pairing_failed', 'rate_limited', 'busy', 'internal']
const AFTER_FIRST: Readonly<Record<string, readonly BareCode[]>> = {
  pair: AFTER_PAIR,
  authenticate: [...AFTER_ANY_FIRST, 'unauthorized', 'access_expired', 'token_replayed', 'busy'],
  connect_request: [...AFTER_ANY_FIRST, 'connect_busy', 'connect_rate_limited'],
}
const AFTER_AUTHENTICATION: BareCode[] = [
  'invalid_frame',
  'revoked',
  'slow_consumer',
  'idle_timeout',
  'frame_too_large',
  'shutting_down',
]

/**
 * Follows one connection from the device's side and notes everything that the contract does not allow the gateway to do.
 * It knows what the device has sent, so that an answer nobody waits for, or a second one, is a fault as well.
 */
export class ProtocolWatch {
  readonly faults: string[] = []
  #stage: Stage = 'fresh'
  #names: WireNames = 'session'
  #askedNames: WireNames = 'session'
  /** The type of the handshake frame that waits for its answer. */
  #asked: string | null = null
  /** Frames sent behind the handshake, before its answer. */
  readonly #early: (string | Uint8Array)[] = []
  /** Requests without an answer: how many under each id. */
  readonly #open = new Map<string, number>()
  /** Frames without a readable request id that wait for their answer. */
  #nameless = 0
  /** What was ever asked under an id. */
  readonly #operations = new Map<string, Set<string | null>>()
  /** Open requests of which a gateway may decline to read even the id: nested too deep, or with half a character. */
  readonly #doubtful = new Set<string>()
  #pings = 0
  #subscribed = false
  #list: string | null = null

  get authenticated(): boolean {
    return this.#stage === 'authenticated'
  }

  get over(): boolean {
    return this.#stage === 'over'
  }

  /** The vocabulary of this connection. */
  get names(): WireNames {
    return this.#names
  }

  /** Whether a request waits for its answer. */
  get waiting(): boolean {
    return !this.over && (this.#open.size > 0 || this.#nameless > 0)
  }

  get unanswered(): string[] {
    return [...this.#open.keys(), ...(this.#nameless > 0 ? [`${this.#nameless} without an id`] : [])]
  }

  /** The device sends this. */
  sent(content: string | Uint8Array): void {
    if (content === PING) {
      this.#pings++
      return
    }
    const frame = typeof content === 'string' ? parsed(content) : undefined
    if (this.#stage !== 'authenticated') {
      if (this.#stage === 'fresh' && this.#asked !== null) {
        this.#early.push(content)
        return
      }
      this.#asked = isFields(frame) ? String(frame.type) : ''
      this.#askedNames = isFields(frame) && frame.wire_names === 'thread' ? 'thread' : 'session'
      return
    }
    // A binary frame and one past the limit end the connection.
    if (typeof content !== 'string' || byteLength(content) > MAX_INBOUND_BYTES) return
    const readable = byteLength(content) <= MAX_FRAME_BYTES && isFields(frame)
    if (readable && frame.type === 'token_ack') return
    const operation = readable && isFields(frame.operation) ? frame.operation : {}
    const type = typeof operation.type === 'string' ? operation.type : null
    const id = readable ? frame.request_id : undefined
    if (typeof id !== 'string' || id === '' || byteLength(id) > MAX_REQUEST_ID_BYTES) this.#nameless++
    else {
      this.#open.set(id, (this.#open.get(id) ?? 0) + 1)
      this.#operations.set(id, (this.#operations.get(id) ?? new Set()).add(type))
      if (isDeep(content) || hasHalfCharacter(frame)) this.#doubtful.add(id)
    }
  }

  /** The gateway sent this. */
  received(content: string | Uint8Array): Fields {
    if (typeof content !== 'string') {
      this.#fault('a binary frame came')
      return {}
    }
    const frame = parsed(content)
    if (!isFields(frame)) {
      this.#fault(`this is no JSON object: ${content.slice(0, 80)}`)
      return {}
    }
    if (this.over) {
      this.#fault(`a frame came after the last one: ${content.slice(0, 200)}`)
      return frame
    }
    if (byteLength(content) > MAX_FRAME_BYTES) this.#fault('a frame is over 256 KiB')
    for (const fault of nulls(frame, 'frame')) this.#fault(fault)
    if (content === '{"type":"pong"}') {
      this.#pings--
      if (this.#pings < 0) this.#fault('a pong came that nobody asked for')
    } else if (this.#stage === 'authenticated' && 'kind' in frame) this.#sessionFrame(frame)
    else this.#handshakeFrame(frame)
    return frame
  }

  /** The gateway closed the connection, with this code: 1005 stands for none, 1006 for a cut. */
  closed(code: number): void {
    if (!this.over) this.#fault(`the connection was closed (${code}) without a word`)
    else if (code !== 1005) this.#fault(`the connection was closed with the code ${code}`)
    this.#stage = 'over'
  }

  #fault(what: string): void {
    this.faults.push(`${what} [while ${this.#stage}]`)
  }

  #handshakeFrame(frame: Fields): void {
    for (const fault of handshakeFaults(frame)) this.#fault(fault)
    const type = String(frame.type)
    switch (type) {
      case 'error':
        this.#bareError(String(frame.code))
        return
      case 'paired':
      case 'authenticated': {
        const wanted = type === 'paired' ? 'pair' : 'authenticate'
        const stages: Stage[] = type === 'paired' ? ['fresh', 'approved'] : ['fresh']
        if (!stages.includes(this.#stage)) this.#fault(`${type} came at the wrong time`)
        if (this.#asked !== wanted) this.#fault(`${type} came after ${this.#asked ?? 'nothing'}`)
        const thread = frame.wire_names === 'thread'
        if (thread && this.#askedNames !== 'thread') this.#fault('thread names were not asked for')
        this.#names = thread ? 'thread' : 'session'
        this.#stage = 'authenticated'
        for (const content of this.#early.splice(0)) this.sent(content)
        return
      }
      case 'connect_pending':
        if (this.#stage !== 'fresh' || this.#asked !== 'connect_request')
          this.#fault(`${type} was not asked for`)
        this.#stage = 'pending'
        return
      case 'connect_approved':
        if (this.#stage !== 'pending') this.#fault(`${type} came at the wrong time`)
        this.#stage = 'approved'
        this.#asked = null
        return
      case 'connect_denied':
        if (this.#stage !== 'pending') this.#fault(`${type} came at the wrong time`)
        this.#stage = 'over'
        return
      case 'connect_expired':
        if (this.#stage !== 'pending' && this.#stage !== 'approved')
          this.#fault(`${type} came at the wrong time`)
        this.#stage = 'over'
    }
  }

  #bareError(code: string): void {
    const allowed = this.#allowedErrors()
    if (!allowed.some((one) => one === code)) {
      this.#fault(`the error ${code} has no place after ${this.#asked ?? 'nothing'}`)
    }
    this.#stage = 'over'
  }

  #allowedErrors(): readonly string[] {
    if (this.#stage === 'authenticated') return AFTER_AUTHENTICATION
    if (this.#asked === null) return this.#stage === 'fresh' ? ['handshake_timeout'] : []
    if (this.#stage === 'approved') return this.#asked === 'pair' ? AFTER_PAIR : AFTER_ANY_FIRST
    if (this.#stage === 'pending') return ['invalid_frame', 'frame_too_large']
    return Object.hasOwn(AFTER_FIRST, this.#asked) ? (AFTER_FIRST[this.#asked] ?? []) : AFTER_ANY_FIRST
  }

  #sessionFrame(frame: Fields): void {
    const faults = frameFaults(frame, this.#names, (id) => this.#operations.get(id) ?? new Set())
    for (const fault of faults) this.#fault(fault)
    const { many } = namesOf(this.#names)
    if (frame.kind === 'response') this.#response(frame)
    if (frame.kind !== many) return
    if (!this.#subscribed) this.#fault('the list was pushed to a connection that did not subscribe')
    const list = JSON.stringify(frame[many])
    if (list === this.#list) this.#fault(`a list was pushed that did not change: ${list.slice(0, 300)}`)
    this.#list = list
  }

  #response(frame: Fields): void {
    const id = String(frame.request_id)
    if (id === '') this.#namelessAnswered()
    else if (!this.#answered(id)) this.#fault(`an answer to ${id} came that nobody waits for`)
    const { many } = namesOf(this.#names)
    if (!isFields(frame.result) || frame.result.type !== many) return
    if (this.#operations.get(id)?.has(namesOf(this.#names).subscribe)) this.#subscribed = true
    if (frame.result.subscribed !== this.#subscribed) {
      this.#fault(`subscribed is ${String(frame.result.subscribed)} on this connection`)
    }
    if (this.#subscribed) this.#list = JSON.stringify(frame.result[many])
  }

  /** Takes one open request off the books; false when there is none under this id. */
  #answered(id: string): boolean {
    const open = this.#open.get(id)
    if (open === undefined) return false
    if (open > 1) this.#open.set(id, open - 1)
    else {
      this.#open.delete(id)
      this.#doubtful.delete(id)
    }
    return true
  }

  #namelessAnswered(): void {
    const [doubtful] = this.#doubtful
    if (this.#nameless > 0) this.#nameless--
    else if (doubtful === undefined) this.#fault('an answer without an id came that nobody waits for')
    else this.#answered(doubtful)
  }
}

/** Deeper than anything that a device has to say. */
const DEEP = 60

function isDeep(content: string): boolean {
  let depth = 0
  for (const letter of content) {
    if (letter === '{' || letter === '[') depth++
    else if (letter === '}' || letter === ']') depth--
    if (depth > DEEP) return true
  }
  return false
}

/** Whether a text in it is no Unicode: JSON can spell what UTF-8 cannot. */
const hasHalfCharacter = (frame: unknown): boolean =>
  typeof frame === 'string'
    ? !frame.isWellFormed()
    : typeof frame === 'object' && frame !== null
      ? Object.entries(frame).some((entry) => entry.some(hasHalfCharacter))
      : false

function parsed(content: string): unknown {
  try {
    return JSON.parse(content)
  } catch {
    return undefined
  }
}
