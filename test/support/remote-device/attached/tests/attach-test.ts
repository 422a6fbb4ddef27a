import type { Stage } from '../stage.ts'

/** One rule of the contract, seen from outside. */
export type AttachTest = {
  name: string
  /** The words of the contract that this test meets, as `Coverage` notes them. That it does is checked. */
  covers: readonly string[]
  /** Moves megabytes: it belongs into the long tier. */
  long?: true
  run(stage: Stage): Promise<void>
}
