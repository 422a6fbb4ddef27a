import type { SwitchyardClient } from '../client/client.ts'
import type { Trace } from '../protocol/execution/trace.ts'
import { CommandStop } from './command-context.ts'
import { exitCodeOf } from './exit-code.ts'
import { failureText } from './failure-text.ts'

/** Held in memory at a time: some hundred KB, and few enough questions for a long session. */
const PAGE_EVENTS = 1_000

/**
 * The trace in pages, up to `most` events. Only an empty page is the end: a router may give fewer than it was asked for.
 * @throws CommandStop when a page cannot be had; what came before it was given out
 */
export async function* tracePages(
  client: SwitchyardClient,
  session: string,
  most = Number.POSITIVE_INFINITY,
): AsyncGenerator<Trace, void> {
  for (let offset = 0; offset < most; ) {
    const page = await client.trace(session, { limit: Math.min(PAGE_EVENTS, most - offset), offset })
    if (!page.ok) {
      const cut = offset === 0 ? '' : 'the trace is not whole: '
      throw new CommandStop(exitCodeOf(page.error), `${cut}${failureText(page.error)}`)
    }
    if (page.value.events.length === 0) return
    yield page.value
    offset += page.value.events.length
  }
}
