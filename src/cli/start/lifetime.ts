import { constants } from 'node:os'
import { EXIT } from '../exit-code.ts'
import type { RouterProcess } from './router-process.ts'

/** What this process started, to be stopped when it ends. */
export type Started = {
  router?: RouterProcess
  demo?: { close(): Promise<void> }
  door?: { close(): Promise<void> }
}

/**
 * Signals. Before the conversation they give the start up, in order; during it Ctrl-C belongs to whoever shows the run
 * or the prompt, and the others end everything at once. The router ends by itself after a signal, even when nobody
 * waits for it.
 */
export class Lifetime {
  readonly #started: Started
  readonly #ended = new AbortController()
  #conversing = false
  /** Set once a signal came outside the conversation. */
  exitCode: number | undefined

  constructor(started: Started) {
    this.#started = started
    process.on('exit', () => started.router?.stopNow())
    process.on('SIGINT', () => {
      const handledElsewhere = this.#conversing && process.listenerCount('SIGINT') > 1
      if (!handledElsewhere) this.#end(EXIT.interrupted)
    })
    for (const signal of ['SIGTERM', 'SIGHUP'] as const) {
      process.on(signal, () => this.#end(128 + constants.signals[signal]))
    }
  }

  get signal(): AbortSignal {
    return this.#ended.signal
  }

  handOverInterrupts(): void {
    this.#conversing = true
  }

  /**
   * Waits for a signal while others than the user are served, once the conversation is over.
   * @returns what to end with; undefined: the router has ended by itself
   */
  async untilStopped(): Promise<number | undefined> {
    this.#conversing = false
    const signalled = new Promise<void>((resolve) =>
      this.signal.addEventListener('abort', () => resolve(), { once: true }),
    )
    await Promise.race([signalled, this.#started.router?.ended])
    return this.exitCode
  }

  #end(exitCode: number): void {
    if (this.#conversing) void stopAll(this.#started).finally(() => process.exit(exitCode))
    else if (this.exitCode !== undefined) process.exit(exitCode)
    else {
      this.exitCode = exitCode
      this.#ended.abort()
    }
  }
}

/** The router goes first: it says goodbye to its devices, through the door. */
export async function stopAll({ router, demo, door }: Started): Promise<void> {
  await Promise.all([router?.stop(), demo?.close()])
  await door?.close()
}
