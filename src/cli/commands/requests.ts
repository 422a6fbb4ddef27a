import type { Command } from 'commander'
import type { SwitchyardClient } from '../../client/client.ts'
import type { ConnectRequestSummary } from '../../protocol/execution/devices.ts'
import { LISTEN_WINDOW_MS } from '../../protocol/remote/limits.ts'
import { type Clock, timeOfDay, WALL_CLOCK } from '../clock.ts'
import { type CommandDeps, must, openClient } from '../command-context.ts'
import { answerRequests, type Desk } from '../devices/answer-requests.ts'
import { acceptRequest, requestLine, requireRequest, typeItText } from '../devices/connect-requests.ts'
import { quotedName } from '../devices/device-list.ts'
import { ifReached, pollUntil } from '../devices/polling.ts'
import { EXIT } from '../exit-code.ts'
import { withInterrupts } from '../interrupts.ts'
import type { CliIo } from '../io.ts'
import { printable } from '../printable.ts'

type ListOptions = { listen?: boolean; json?: boolean }

/** `requests [list] | accept | deny`. */
export function addRequestCommands(
  program: Command,
  deps: CommandDeps,
  end: (exitCode: number) => void,
): void {
  const requests = program
    .command('requests')
    .summary('let devices ask to be paired, and answer them')
    .description(
      'Works with devices that ask to be paired instead of scanning a code. They can ask only for ten minutes after you have begun to listen. An id may be cut to its first four characters or more.',
    )
    .addHelpText(
      'after',
      `
Examples:
  switchyard requests --listen
  switchyard requests accept 5be1`,
    )

  const open = <T extends object>(command: Command) => openClient<T>(deps, command)
  const clock = deps.clock ?? WALL_CLOCK

  requests
    .command('list', { isDefault: true })
    .description('Lists the requests that wait for an answer, the oldest first.')
    .option(
      '--listen',
      'let devices ask for ten minutes, and show requests as they come; at a terminal, ask about each',
    )
    .option('--json', 'print JSON; with --listen one line for each request, and no questions')
    .addHelpText('after', '\nExamples:\n  switchyard requests list\n  switchyard requests --listen')
    .action(async (_options: unknown, command: Command) => {
      const { options, io, client } = await open<ListOptions>(command)
      if (options.listen) end(await listen(client, io, options, clock))
      else {
        list(io, options, must(await client.connectRequests.list()))
        end(EXIT.ok)
      }
    })

  requests
    .command('accept <id>')
    .description(
      'Accepts a request, and prints the code that has to be typed on the device within two minutes. A code that was made before holds no longer.',
    )
    .addHelpText('after', '\nExample:\n  switchyard requests accept 5be1')
    .action(async (typed: string, _options: unknown, command: Command) => {
      const { io, client } = await open(command)
      const out = must(await acceptRequest(client, clock, await requireRequest(client, typed)))
      io.err(typeItText(out))
      io.out(`${printable(out.code)}\n`)
      end(EXIT.ok)
    })

  requests
    .command('deny <id>')
    .description(
      'Denies a request. The device is told, and has to wait half a minute before it can ask again.',
    )
    .addHelpText('after', '\nExample:\n  switchyard requests deny 5be1')
    .action(async (typed: string, _options: unknown, command: Command) => {
      const { io, client } = await open(command)
      const request = await requireRequest(client, typed)
      must(await client.connectRequests.deny(request.request_id))
      io.err(`denied ${request.request_id}, ${quotedName(request.device_name)}\n`)
      end(EXIT.ok)
    })
}

function list(io: CliIo, { json }: ListOptions, waiting: readonly ConnectRequestSummary[]): void {
  if (json) io.out(`${JSON.stringify(waiting, null, 2)}\n`)
  else for (const request of waiting) io.out(requestLine(request))
  if (waiting.length === 0 && !json)
    io.err('no request waits; `switchyard requests --listen` lets devices ask for ten minutes\n')
}

/** Lets devices ask, and shows who does until the router takes no more. */
async function listen(
  client: SwitchyardClient,
  io: CliIo,
  { json }: ListOptions,
  clock: Clock,
): Promise<number> {
  must(await client.connectRequests.listen())
  const untilMs = clock.nowMs() + LISTEN_WINDOW_MS
  io.err(io.paint.dim(`devices can ask until ${timeOfDay(untilMs)}; Ctrl-C stops showing them\n`))
  return withInterrupts(io, async (signal) => {
    const desk = { client, io, clock, signal }
    const isOver =
      io.isTty && !json
        ? await answerRequests(desk, untilMs)
        : await printRequests(desk, untilMs, json === true)
    if (!isOver) return EXIT.interrupted
    io.err(io.paint.dim('devices can ask no longer\n'))
    return EXIT.ok
  })
}

/** For scripts: each request once, as it comes. */
async function printRequests(
  { client, io, clock, signal }: Desk,
  untilMs: number,
  json: boolean,
): Promise<boolean> {
  const printed = new Set<string>()
  await pollUntil(clock, untilMs, signal, async (isLast) => {
    for (const request of ifReached(await client.connectRequests.list({ signal }), isLast) ?? []) {
      if (printed.has(request.request_id)) continue
      printed.add(request.request_id)
      io.out(json ? `${JSON.stringify(request)}\n` : requestLine(request))
    }
    return undefined
  })
  return !signal.aborted
}
