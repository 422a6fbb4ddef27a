import type { RemoteNews } from '../../client/remote-follower.ts'
import type { RemoteEvent } from '../../protocol/remote/events.ts'
import type { CliIo } from '../io.ts'
import { oneLine, printable } from '../printable.ts'

/** A prompt on one line. */
const MAX_PROMPT_CHARS = 100
/** Lines that wait for the prompt; of more than that the oldest are not told. */
const MAX_WAITING = 20

type Ended = Extract<RemoteEvent, { type: 'turn_finished' | 'turn_cancelled' }>

/**
 * Runs that a device has started in the session of a conversation: each is told in one line, and its end in another,
 * while the prompt waits.
 */
export class DeviceRuns {
  readonly #io: CliIo
  /** Prompts of this machine whose run has not shown yet. */
  #own: string[] = []
  /** Runs whose beginning was told. */
  readonly #told = new Set<string>()
  #waiting: string[] = []
  #isPrompting = false

  constructor(io: CliIo) {
    this.#io = io
  }

  /** A run with this prompt is about to be started from here. */
  expect(prompt: string): void {
    this.#own.push(prompt)
  }

  heard(news: RemoteNews): void {
    if (news.k !== 'event') return
    const { event } = news
    if (event.type === 'turn_started') this.#began(event)
    if (event.type === 'turn_finished' || event.type === 'turn_cancelled') this.#ended(event)
  }

  /** What waits is told before the prompt, and what comes meanwhile above it. */
  async during<T>(prompt: () => Promise<T>): Promise<T> {
    for (const line of this.#waiting.splice(0)) this.#io.err(line)
    this.#isPrompting = true
    try {
      return await prompt()
    } finally {
      this.#isPrompting = false
    }
  }

  #began({ turn_id: turnId, prompt }: Extract<RemoteEvent, { type: 'turn_started' }>): void {
    const own = this.#own.findIndex(
      (text) => text.startsWith(prompt.text) && (prompt.truncated || text.length === prompt.text.length),
    )
    if (own >= 0) {
      // Those before it were refused, or it would not have begun.
      this.#own = this.#own.slice(own + 1)
      return
    }
    if (turnId !== undefined) this.#told.add(turnId)
    this.#tell(`a device started: ${oneLine(prompt.text, MAX_PROMPT_CHARS)}`)
  }

  #ended({ type, turn_id: turnId, timing }: Ended): void {
    if (turnId === undefined || !this.#told.delete(turnId)) return
    const outcome = type === 'turn_cancelled' ? 'cancelled' : (timing?.outcome ?? 'completed')
    this.#tell(`what the device started has ended: ${outcome}`)
  }

  #tell(text: string): void {
    const line = `${this.#io.paint.dim(printable(text))}\n`
    if (this.#isPrompting) this.#io.above(line)
    else this.#waiting = [...this.#waiting, line].slice(-MAX_WAITING)
  }
}
