/**
 * A place where scripted code waits until the test lets it go on. Test and objects share an isolate here, and code that
 * awaits a promise goes on in the context of whoever resolves it: an object would go on as the test, or the test die
 * with an object. So both sides look at a flag, each on its own time.
 */
export class Hold {
  #reached = 0
  #released = false

  /** Called by the script: tells the test that it got here, then waits. */
  readonly wait = async (): Promise<void> => {
    this.#reached++
    await until(() => this.#released)
  }

  get wasReached(): boolean {
    return this.#reached > 0
  }

  /** Resolves when the script has got here. */
  reached(): Promise<void> {
    return until(() => this.wasReached)
  }

  release(): void {
    this.#released = true
  }
}

/** How often a condition is looked at. */
const LOOK_MS = 1

/** Resolves when the condition holds; the test's own time limit ends a wait in vain. Real time, also under fake timers. */
export async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await condition())) await scheduler.wait(LOOK_MS)
}
