import { cutOff, deviceDigest } from '../../core/operations/resume.ts'
import { isOver } from '../../core/run/state.ts'
import { errorTrace } from '../../protocol/error-name.ts'
import { wereInterrupted } from '../../storage/session/interrupted-turns.ts'
import { dropQueued, firstQueued } from '../../storage/session/prompt-queue.ts'
import { factsOrNone } from './facts-or-none.ts'
import type { OperationsDeps } from './ports.ts'
import type { Prompts } from './prompts.ts'

/** A turn that was cut off by a crash so often in a row is given up: it may be what the object dies of (U06). */
const MAX_CRASHES = 3

/**
 * Goes on where nobody else will: a turn that a device had started and a crash cut off is served again, and a prompt that was
 * queued runs when the run before it is over (RF 17). May be woken at any time, and as often as one likes.
 */
export class Successor {
  readonly #deps: OperationsDeps
  readonly #prompts: Prompts
  #isAwake = false
  #wokenAgain = false

  constructor(deps: OperationsDeps, prompts: Prompts) {
    this.#deps = deps
    this.#prompts = prompts
  }

  wake(): void {
    if (this.#isAwake) {
      this.#wokenAgain = true
      return
    }
    if (!this.hasWork()) return
    this.#isAwake = true
    this.#deps.keepAlive(this.#work())
  }

  async #work(): Promise<void> {
    try {
      do {
        this.#wokenAgain = false
        await this.#next()
      } while (this.#wokenAgain)
    } catch (error) {
      console.error('a run that nobody waits for could not be started:', errorTrace(error))
    } finally {
      this.#isAwake = false
    }
  }

  /** Something waits that nobody else will go on with. */
  hasWork(): boolean {
    const { engine, session, sql } = this.#deps
    if (engine.isSealed || session().deletedAtMs !== null || session().archivedAtMs !== null) return false
    const { state } = engine
    if (cutOff(state) !== null) return true
    return (state === null || isOver(state)) && firstQueued(sql) !== null
  }

  async #next(): Promise<void> {
    if (!this.hasWork()) return
    if (cutOff(this.#deps.engine.state) === null) await this.#startQueued()
    else await this.#serveAgain()
  }

  async #startQueued(): Promise<void> {
    const { engine, sql } = this.#deps
    const queued = firstQueued(sql)
    if (queued === null) return
    const digest = deviceDigest(queued.id, queued.actor.deploymentProviders)
    const start = await this.#prompts.prepareRun(queued.actor, queued, digest, () => factsOrNone(this.#deps))
    // Something else may have happened while it was waited for; whatever it was wakes this again when it is over.
    if (
      !this.hasWork() ||
      firstQueued(sql)?.id !== queued.id ||
      (engine.state?.runId ?? null) !== start.runId
    )
      return
    const refusal = this.#prompts.refuseStart(start)
    const dispatched =
      refusal === null && start.k === 'ready'
        ? engine.dispatch(start.step.input, {
            ...start.step.request,
            key: null,
            also: (tables) => dropQueued(tables, queued.id),
          })
        : null
    if (dispatched?.ok) return
    // It would be refused every time, and nothing behind it would ever run.
    console.warn('a queued prompt cannot be run and is given up')
    engine.change((tables) => dropQueued(tables, queued.id), { cut: true })
    this.#wokenAgain = true
  }

  async #serveAgain(): Promise<void> {
    const { engine, sql } = this.#deps
    const before = cutOff(engine.state)
    if (before === null) return
    const [access, facts] = await Promise.all([this.#deps.access(before), factsOrNone(this.#deps)])
    const { state } = engine
    const again = cutOff(state)
    if (again === null || state === null || state.unsettled?.digest !== digestIn(before.input)) return
    if (wereInterrupted(sql, state.runId, MAX_CRASHES)) {
      console.warn('a turn was cut off too often and is given up')
      engine.dispatch(
        {
          type: 'continuation_received',
          digest: 'given-up',
          message: { type: 'break', data: { run_id: state.runId } },
          partial: null,
          localOnly: false,
        },
        { access: null, facts: [], runInput: null, key: null },
      )
      return
    }
    const served = engine.dispatch(again.input, { access, facts, runInput: null, key: null })
    if (!served.ok) console.warn('a turn that was cut off cannot be served again')
  }
}

const digestIn = (input: object): string | null => ('digest' in input ? String(input.digest) : null)
