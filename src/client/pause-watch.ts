import type { ApprovalDecision } from '../protocol/execution/continue.ts'
import type { RunResponse } from '../protocol/execution/turn.ts'
import type { RemoteEvent } from '../protocol/remote/events.ts'
import type { NewsSource, RemoteNews } from './remote-follower.ts'
import type { TurnEnd } from './turn-stream.ts'

/** A pause at which something is asked or run on this machine. */
export type WatchedPause = Extract<TurnEnd, { status: 'awaiting_tool' | 'awaiting_approval' }>

export type PauseWatchOptions = {
  source: NewsSource
  pause: WatchedPause
  /** Where the run stands now; undefined when that cannot be told. */
  look(): Promise<RunResponse | undefined>
  /** Stops the run: nothing is waited for then. */
  signal: AbortSignal
}

/** What became of a question: its answer here, or that a device was faster. */
export type Asked<T> =
  | { by: 'here'; value: T }
  /** A device has decided it. */
  | { by: 'device'; decision: ApprovalDecision }
  /** A device has given the answer that was asked for, and the router has it. */
  | { by: 'device'; decision: 'answered' }
  /** The run does not wait for this pause any more: it goes on, or it is over. */
  | { by: 'device'; decision: 'moved' }

export type AskOptions = {
  /** Whether this decision of a device ends the asking. */
  accepts(decision: ApprovalDecision): boolean
  /** It is the user who is asked, for an answer: a device that answers a part of it takes the rest over, too. */
  isQuestion?: boolean
}

/** What a device can do about a pause shows in these. Our own doing comes in some of them, and a look tells. */
const TELLING: ReadonlySet<RemoteEvent['type']> = new Set<RemoteEvent['type']>([
  'approval_resolved',
  'approval_decision',
  'question_resolved',
  'tool_finished',
  'turn_finished',
  'turn_cancelled',
])

/**
 * Watches what devices do about a pause while this machine asks about it or works on it (D05). News only says that
 * something happened: what became of the run, the router is asked.
 */
export class PauseWatch {
  readonly #options: PauseWatchOptions
  readonly #over = new AbortController()
  readonly #decided = new Map<string, ApprovalDecision>()
  readonly #answered = new Set<string>()
  readonly #listeners = new Set<() => void>()
  readonly #unsubscribe: () => void
  /** A device has answered one of the questions that are being asked. */
  #isTakenOver = false
  #looking: Promise<void> | undefined
  #lookAgain = false
  #isEnded = false
  #isOver = false

  constructor(options: PauseWatchOptions) {
    this.#options = options
    this.#unsubscribe = options.source.onNews((news) => this.#heard(news))
  }

  /** Fires when the run does not wait for this pause any more. */
  get moved(): AbortSignal {
    return this.#over.signal
  }

  /** The run was stopped: there is nothing to follow. */
  get isOver(): boolean {
    return this.#isOver
  }

  /** From here on nothing is told any more. */
  end(): void {
    this.#isEnded = true
    this.#unsubscribe()
    this.#listeners.clear()
  }

  /**
   * Asks here until there is an answer, or until a device has settled it.
   * @param id the call or the approval
   * @param ask gets a signal that ends it; what it says then is ignored
   */
  async ask<T>(
    id: string,
    ask: (signal: AbortSignal) => Promise<T>,
    { accepts, isQuestion = false }: AskOptions,
  ): Promise<Asked<T>> {
    const stop = new AbortController()
    const settled = (): Asked<T> | undefined => {
      if (this.moved.aborted) return { by: 'device', decision: 'moved' }
      if (this.#answered.has(id)) return { by: 'device', decision: 'answered' }
      const decision = this.#decided.get(id)
      return decision !== undefined && accepts(decision) ? { by: 'device', decision } : undefined
    }
    this.#isTakenOver = false
    const early = settled()
    if (early) return early
    return new Promise((resolve, reject) => {
      const { signal } = this.#options
      const leave = () => {
        this.#listeners.delete(look)
        signal.removeEventListener('abort', stopped)
      }
      const done = (asked: Asked<T>) => {
        leave()
        stop.abort()
        resolve(asked)
      }
      const look = () => {
        const asked = settled()
        if (asked) return done(asked)
        if (!isQuestion || !this.#isTakenOver) return
        // The device goes on with the questions; its last answer ends them.
        stop.abort()
        stopped()
      }
      // Whoever is asked hears of a stop and answers; once nobody is asked here, nobody does.
      const stopped = () => {
        if (signal.aborted && stop.signal.aborted) done({ by: 'device', decision: 'moved' })
      }
      this.#listeners.add(look)
      signal.addEventListener('abort', stopped)
      ask(stop.signal).then(
        (value) => {
          if (!stop.signal.aborted) done({ by: 'here', value })
        },
        (error: unknown) => {
          if (stop.signal.aborted) return
          leave()
          reject(error)
        },
      )
    })
  }

  #heard(news: RemoteNews): void {
    if (news.k === 'event') {
      const { event } = news
      if (!TELLING.has(event.type)) return
      if (event.type === 'tool_finished') this.#answered.add(event.id)
      if (event.type === 'question_resolved') this.#isTakenOver = true
    } else {
      // What a device has answered while nothing could be heard.
      for (const { tool } of news.snapshot.transcript) {
        if (tool?.call_id !== undefined && !tool.pending) this.#answered.add(tool.call_id)
      }
    }
    this.#tell()
    // One look at a time; news that comes meanwhile has another one follow.
    this.#lookAgain = this.#looking !== undefined
    this.#looking ??= this.#look()
  }

  /** Resolves when the router has been asked about all news so far. */
  async quiet(): Promise<void> {
    await this.#looking
  }

  async #look(): Promise<void> {
    do {
      this.#lookAgain = false
      const run = await this.#options.look()
      if (this.#isEnded) return
      if (run !== undefined) this.#compare(run)
    } while (this.#lookAgain && !this.moved.aborted)
    this.#looking = undefined
  }

  #compare(run: RunResponse): void {
    const decided = decidedOf(run, this.#options.pause)
    if (decided === undefined) {
      this.#isOver = run.status === 'idle'
      this.#over.abort()
    }
    for (const [id, decision] of decided ?? []) this.#decided.set(id, decision)
    this.#tell()
  }

  #tell(): void {
    for (const listener of [...this.#listeners]) listener()
  }
}

/** What devices have decided about a pause; undefined when the run does not stand there any more. */
function decidedOf(run: RunResponse, pause: WatchedPause): [string, ApprovalDecision][] | undefined {
  if (run.status === 'awaiting_tool' && pause.status === 'awaiting_tool') {
    const asked = new Set(pause.data.tool_requests.map(({ call_id: id }) => id))
    const same = run.data.tool_requests.filter(({ call_id: id }) => asked.has(id))
    if (same.length === 0) return undefined
    return same.flatMap(({ call_id: id, decision }) => (decision === undefined ? [] : [[id, decision]]))
  }
  if (run.status === 'awaiting_approval' && pause.status === 'awaiting_approval') {
    const { approval_id: id, decision } = run.data.approval
    if (id !== pause.data.approval.approval_id) return undefined
    return decision === undefined ? [] : [[id, decision]]
  }
  return undefined
}
