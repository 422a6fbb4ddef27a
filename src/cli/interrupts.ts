import { EXIT } from './exit-code.ts'
import type { CliIo } from './io.ts'

/**
 * Runs something that Ctrl-C stops gently: the first time the signal fires, the second time the process leaves.
 * SIGTERM is counted apart: the launcher passes an interrupt on as SIGTERM, and a terminal delivers its own to both.
 */
export async function withInterrupts<T>(io: CliIo, run: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const stop = new AbortController()
  const counts = { SIGINT: 0, SIGTERM: 0 }
  const onSignal = (name: 'SIGINT' | 'SIGTERM') => () => {
    if (++counts[name] > 1) process.exit(EXIT.interrupted)
    if (stop.signal.aborted) return
    io.err(`\n${io.paint.dim('stopping… (once more to leave at once)')}\n`)
    stop.abort()
  }
  const onInterrupt = onSignal('SIGINT')
  const onTerminate = onSignal('SIGTERM')
  process.on('SIGINT', onInterrupt)
  process.on('SIGTERM', onTerminate)
  try {
    return await run(stop.signal)
  } finally {
    process.off('SIGINT', onInterrupt)
    process.off('SIGTERM', onTerminate)
  }
}
