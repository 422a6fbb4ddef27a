import type { Fields } from '../shapes.ts'

/**
 * What the suites of attached devices need of the place they run in: a router, an account on it, devices, a model that
 * says what a test wants. Only HTTP and WebSockets reach the router; `faults` are what happens to it from outside.
 */

/** One answer of the model. */
export type ModelReply = {
  pieces?: string[]
  /** Called after the pieces; the answer goes on when it resolves. */
  hold?: () => Promise<void>
  /** Pieces after the pause. */
  after?: string[]
  calls?: { name: string; arguments: Record<string, unknown> }[]
  status?: number
  error?: string
}

/** A place where the scripted model waits for the test. */
export type ModelHold = {
  wait: () => Promise<void>
  /** Resolves when it was reached so many times in all. */
  reached(times?: number): Promise<void>
  /** Lets everyone on, now and later. */
  release(): void
}

export type HttpAnswer = { status: number; body: Fields }

/** An account of its own: what one test does there touches no other. */
export type Account = {
  userId: string
  call(method: string, path: string, body?: object): Promise<HttpAnswer>
}

/** One socket of a device after its handshake. */
export type Link = {
  /** Sends one frame. Rejects once the connection is closed. */
  send(frame: Fields): Promise<void>
  /** Is told each frame behind the handshake as it comes, in order. */
  onFrame: (frame: Fields) => void
  /** Is told the end of the connection. */
  onClosed: () => void
  readonly closed: boolean
  /** The device goes away without a word. */
  hangUp(): void
}

/** A paired device, which can connect any number of times. */
export type Phone = {
  deviceId: string
  gatewayId: string
  instanceId: string
  /** The vocabulary of its connections. */
  names: 'session' | 'thread'
  connect(): Promise<Link>
}

export type Faults = {
  /** The gateway's object sleeps: its memory is gone, its sockets stay. */
  hibernate(userId: string): Promise<void>
  /** The gateway's object ends as in a deploy: memory and sockets are gone. */
  closeGateway(userId: string): Promise<void>
  /** The session's object is taken out of memory at a moment when nothing runs in it. */
  evictSession(sessionId: string): Promise<void>
  /** The session's object dies where it stands. */
  crashSession(sessionId: string): Promise<void>
}

export type World = {
  account(): Promise<Account>
  pair(account: Account, names?: 'session' | 'thread'): Promise<Phone>
  /**
   * What the model says to prompts that hold this word: one reply per call, the last one again and again. A newer script
   * for the same word replaces the older.
   */
  script(word: string, ...lines: ModelLine[]): void
  hold(): ModelHold
  /** The model that answers, as a policy names it. */
  model: string
  /** A model that takes images, and says the same. */
  seeingModel: string
  /** Null where nothing but the wire reaches the router. */
  faults: Faults | null
  /** What the gateway did to any device that it must not do; empties the list. */
  takeBreaches(): Promise<string[]>
}

/** What the model was asked, as far as scripts look at it. */
export type ModelAsked = { messages: { role: string; content: string }[]; tools: string[] }

export type ModelLine = ModelReply | ((asked: ModelAsked) => ModelReply)
