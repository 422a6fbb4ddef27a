import type { Command } from 'commander'
import type { Usage } from '../../protocol/execution/usage.ts'
import { type CommandDeps, must, optionsOf, requireClient, requireId, routerUrl } from '../command-context.ts'
import { EXIT } from '../exit-code.ts'
import type { CliIo } from '../io.ts'
import { type OpenedUsage, openUsage } from '../opened-usage.ts'
import { oneLine, printable } from '../printable.ts'
import { costOf, usageLine } from '../run-summary.ts'
import { SessionKeys } from '../session-keys.ts'

/** Names of models have some dozen characters; a longer one must not widen the table without end. */
const MAX_NAME_CHARS = 120
/** A line of counters has some hundred characters. */
const MAX_LINE_CHARS = 300

/** `usage`: what a session cost. */
export function addUsageCommand(program: Command, deps: CommandDeps, end: (exitCode: number) => void): void {
  program
    .command('usage <session>')
    .summary('show the tokens and the cost of a session')
    .description(
      'Shows what the model calls of a session used: in all, by model and by task. What is not known is "?" or "cost unknown", and is not in the sums. Those of an encrypted session are added up from its trace, with the key on this machine.',
    )
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExample:\n  switchyard usage 0197d0a2-6c1e-7c52-9a55-0c6a6f1d2b11')
    .action(async (typed: string, _options: unknown, command: Command) => {
      const session = requireId(typed, 'session')
      const options = optionsOf<{ json?: boolean }>(command)
      const io = deps.makeIo(options)
      const client = await requireClient(routerUrl(options), io)
      const told = must(await client.usage(session))
      const opened = await openUsage(client, new SessionKeys(), session, told)
      if (options.json) io.out(`${JSON.stringify(opened.usage, null, 2)}\n`)
      else show(opened, io)
      end(EXIT.ok)
    })
}

type Row = { name: string; requests: number; usage: Usage }

function show({ usage, untold, locked }: OpenedUsage, io: CliIo): void {
  const { total, by_model, by_task_type } = usage
  if (by_model.length === 0) {
    io.err('no model was called yet\n')
    return
  }
  const models = by_model.map(
    (usage): Row => ({ name: `${usage.provider}/${usage.model}`, requests: usage.request_count, usage }),
  )
  const tasks = by_task_type.map(
    (usage): Row => ({ name: usage.task_type, requests: usage.request_count, usage }),
  )
  const requests = models.reduce((sum, row) => sum + row.requests, 0)
  io.out(`total  ${calls(requests)}  ${counters(total)}\n`)
  io.out(`\nby model\n${table(models)}`)
  if (tasks.length > 0) io.out(`\nby task\n${table(tasks)}`)
  const note = (text: string) => io.err(`${io.paint.yellow('note')}: ${text}\n`)
  if (locked !== undefined) note(`what ${calls(untold)} used is encrypted (${printable(locked)})`)
  else if (untold > 0 || models.some(({ usage }) => !isKnown(usage)))
    note('not everything is known; the sums hold only what is')
}

function table(rows: readonly Row[]): string {
  const named = rows.map((row) => ({ ...row, name: oneLine(row.name, MAX_NAME_CHARS) }))
  const nameWidth = Math.max(...named.map(({ name }) => name.length))
  const callsWidth = Math.max(...named.map(({ requests }) => calls(requests).length))
  return named
    .map(
      ({ name, requests, usage }) =>
        `  ${name.padEnd(nameWidth)}  ${calls(requests).padStart(callsWidth)}  ${counters(usage)}\n`,
    )
    .join('')
}

const calls = (count: number): string => `${count} call${count === 1 ? '' : 's'}`

const counters = (usage: Usage): string => oneLine(usageLine(usage), MAX_LINE_CHARS)

/** Whether there is nothing to guess about: a price is told only where the counters are known, too (U43). */
const isKnown = (usage: Usage): boolean => costOf(usage) !== undefined && !usage.unknown_count
