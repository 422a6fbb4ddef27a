import type { RunOutcome } from '../client/drive.ts'
import type { ClientFailure } from '../client/failure.ts'

/** What the process ends with; part of the command's interface, listed in its help. */
export const EXIT = {
  ok: 0,
  /** The run failed, or ended without an answer. */
  failed: 1,
  /** A wrong command line, or a configuration that does not hold. */
  usage: 2,
  /** The router cannot be reached, or does not know us. */
  unreachable: 3,
  /** Stopped with Ctrl-C, as shells count it: 128 + SIGINT. */
  interrupted: 130,
} as const

export const EXIT_CODE_HELP = `
Exit codes:
  0    done
  1    the run failed, or ended without an answer
  2    wrong usage or configuration
  3    the router cannot be reached, or you are not signed in
  130  stopped with Ctrl-C`

/** The exit code for a failed call. */
export function exitCodeOf(failure: ClientFailure): number {
  switch (failure.kind) {
    case 'network':
    case 'not_json':
      return EXIT.unreachable
    case 'http':
      return failure.status === 401 ? EXIT.unreachable : EXIT.failed
    case 'aborted':
      return EXIT.interrupted
    default:
      return EXIT.failed
  }
}

/** The exit code for a run. */
export function exitCodeOfRun(outcome: RunOutcome): number {
  switch (outcome.status) {
    case 'completed':
      return outcome.unkept ? EXIT.failed : EXIT.ok
    case 'idle':
      return outcome.stopped ? EXIT.interrupted : EXIT.failed
    case 'error':
      return exitCodeOf(outcome.failure)
  }
}
