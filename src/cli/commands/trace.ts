import { type Command, InvalidArgumentError, Option } from 'commander'
import type { Payload, TraceEvent } from '../../protocol/execution/trace.ts'
import { type CommandDeps, optionsOf, requireClient, requireId, routerUrl } from '../command-context.ts'
import { EXIT } from '../exit-code.ts'
import { openTrace } from '../opened-trace.ts'
import { oneLine } from '../printable.ts'
import { costLine } from '../run-summary.ts'
import { SessionKeys } from '../session-keys.ts'
import { tracePages } from '../trace-pages.ts'

/** As many as the router gives by itself (EC 2.14): a few turns. */
const DEFAULT_EVENTS = 50
/** A router counts no further. */
const MAX_EVENTS = 1_000_000_000
/** What happened, on one line of a wide terminal beside time, event and model. */
const MAX_WHAT_CHARS = 160
const MAX_NAME_CHARS = 120
const FALLBACK = ', fallback'
/** `context_selection`, the longest. */
const EVENT_WIDTH = 17

type TraceOptions = { limit: number; all?: boolean; json?: boolean }

/** `trace`: what was decided. */
export function addTraceCommand(program: Command, deps: CommandDeps, end: (exitCode: number) => void): void {
  program
    .command('trace <session>')
    .summary('show what the router decided in a session')
    .description(
      'Prints what the router did in a session, the oldest first, an event on each line: time (UTC), event, what, model. It never holds texts of prompts, answers or files. Of an encrypted session it is opened with the key on this machine.',
    )
    .addOption(
      new Option('--limit <n>', 'at most so many events').argParser(atLeastOne).default(DEFAULT_EVENTS),
    )
    .addOption(new Option('--all', 'the whole trace').conflicts('limit'))
    .option('--json', 'print JSON, an event on each line')
    .addHelpText(
      'after',
      '\nExamples:\n  switchyard trace 0197d0a2-6c1e-7c52-9a55-0c6a6f1d2b11\n  switchyard trace 0197d0a2-6c1e-7c52-9a55-0c6a6f1d2b11 --all --json | jq .event_type',
    )
    .action(async (typed: string, _options: unknown, command: Command) => {
      const session = requireId(typed, 'session')
      const options = optionsOf<TraceOptions>(command)
      const io = deps.makeIo(options)
      const client = await requireClient(routerUrl(options), io)
      const most = options.all ? Number.POSITIVE_INFINITY : options.limit
      const keys = new SessionKeys()
      let shown = 0
      // One more than is shown tells whether there are more.
      for await (const page of tracePages(client, session, most + 1)) {
        const { events, locked } = await openTrace(client, keys, session, page.events.slice(0, most - shown))
        const shownAs = (event: TraceEvent) =>
          options.json ? JSON.stringify(event) : line(event, locked.get(event))
        io.out(events.map((event) => `${shownAs(event)}\n`).join(''))
        shown += events.length
        if (events.length < page.events.length)
          io.err(`${io.paint.yellow('note')}: there are more events; --all shows them\n`)
      }
      if (shown === 0 && !options.json) io.err('no events\n')
      end(EXIT.ok)
    })
}

function atLeastOne(text: string): number {
  const value = /^\d{1,10}$/.test(text) ? Number(text) : 0
  if (value < 1 || value >= MAX_EVENTS) throw new InvalidArgumentError('It must be a whole number from 1.')
  return value
}

/** `locked`: why the event cannot be opened, of one that cannot. */
function line(
  { created_at, event_type, provider, model, payload }: TraceEvent,
  locked: string | undefined,
): string {
  const what = 'plaintext' in payload ? whatHappened(payload.plaintext) : (locked ?? '(encrypted)')
  return [
    created_at.slice(0, 19).replace('T', ' '),
    event_type.padEnd(EVENT_WIDTH),
    oneLine(what, MAX_WHAT_CHARS),
    oneLine(`${provider}/${model}`, MAX_NAME_CHARS),
  ].join('  ')
}

/** A reason that tells of a fallback is of a router of now; an older one leaves it to the flag. */
function routed({ reason, fallback_used, failure }: Extract<Payload, { type: 'routing_decision' }>): string {
  const route = fallback_used && !reason.includes(FALLBACK) ? `${reason}${FALLBACK}` : reason
  return failure === undefined ? route : `${route}; ${failure.code}: ${failure.message}`
}

function whatHappened(payload: Payload): string {
  switch (payload.type) {
    case 'message':
      return payload.role
    case 'classification':
      return `${payload.intent}: ${payload.reason}`
    case 'routing_decision':
      return routed(payload)
    case 'context_selection': {
      const { included, path, kind, reason } = payload
      return `${included ? 'included' : 'left out'} ${path ? `${path} (${kind})` : kind}: ${reason}`
    }
    case 'tool_call':
      return `${payload.tool_name} ${payload.status}${payload.error ? `: ${payload.error}` : ''}`
    case 'approval': {
      const { target_type: type, target_id: id, decision, reason } = payload
      return `${type} ${id} ${decision}${reason ? `: ${reason}` : ''}`
    }
    case 'cost':
      return costLine(payload)
  }
}
