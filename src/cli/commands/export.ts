import type { Command } from 'commander'
import type { SwitchyardClient } from '../../client/client.ts'
import type { ClientFailure } from '../../client/failure.ts'
import { ok, type Result } from '../../protocol/result.ts'
import {
  type CommandDeps,
  CommandStop,
  optionsOf,
  requireClient,
  requireId,
  routerUrl,
} from '../command-context.ts'
import { EXIT, exitCodeOf } from '../exit-code.ts'
import { openExportFile } from '../export-file.ts'
import { failureText } from '../failure-text.ts'
import { withInterrupts } from '../interrupts.ts'
import type { CliIo } from '../io.ts'

/** `export [session]`. */
export function addExportCommand(program: Command, deps: CommandDeps, end: (exitCode: number) => void): void {
  program
    .command('export [session]')
    .summary('write out a session, or everything that is kept of you')
    .description(
      'Writes JSON lines: one session, archived or not, or without one everything of your account. The last line has the type "end"; without it the export is not whole.',
    )
    .option('--output <file>', 'write to this file, which appears when the export is whole; else to stdout')
    .addHelpText(
      'after',
      '\nExamples:\n  switchyard export --output mine.ndjson\n  switchyard export 0197d0a2-6c1e-7c52-9a55-0c6a6f1d2b11 | jq .type',
    )
    .action(async (typed: string | undefined, _options: unknown, command: Command) => {
      const session = typed === undefined ? undefined : requireId(typed, 'session')
      const options = optionsOf<{ output?: string }>(command)
      const io = deps.makeIo(options)
      const client = await requireClient(routerUrl(options), io)
      end(await withInterrupts(io, (signal) => exportTo(client, io, session, options.output, signal)))
    })
}

async function exportTo(
  client: SwitchyardClient,
  io: CliIo,
  session: string | undefined,
  output: string | undefined,
  signal: AbortSignal,
): Promise<number> {
  if (output === undefined) {
    const toStdout = (line: string) => {
      io.out(line)
      return ok(null)
    }
    stopUnlessWhole(await copy(client, io, session, signal, toStdout))
    return EXIT.ok
  }
  const opened = openExportFile(output)
  if (!opened.ok) throw new CommandStop(EXIT.failed, opened.error)
  const file = opened.value
  try {
    const copied = await copy(client, io, session, signal, (line) => file.write(line))
    stopUnlessWhole(copied)
    const kept = file.keep()
    if (!kept.ok) throw new CommandStop(EXIT.failed, kept.error)
    io.err(`${output}: ${copied.ok ? counted(copied.value) : ''}\n`)
    return EXIT.ok
  } finally {
    file.discard()
  }
}

type Failed = { exitCode: number; message: string }

/** Passes every line on. Its outcome is ok only if the export came whole: then with how many sessions. */
async function copy(
  client: SwitchyardClient,
  io: CliIo,
  session: string | undefined,
  signal: AbortSignal,
  write: (line: string) => Result<null, string>,
): Promise<Result<number, Failed>> {
  const progress = makeProgress(io)
  try {
    for await (const one of client.export(session, { signal })) {
      if (!one.ok) return { ok: false, error: toFailed(one.error) }
      const { line, record } = one.value
      const written = write(`${line}\n`)
      if (!written.ok) return { ok: false, error: { exitCode: EXIT.failed, message: written.error } }
      if (record.type === 'session') progress.session()
      if (record.type === 'end') return ok(record.sessions)
    }
  } finally {
    progress.end()
  }
  throw new Error('invariant broken: an export without an end and without a failure')
}

const toFailed = (failure: ClientFailure): Failed => ({
  exitCode: exitCodeOf(failure),
  message: `the export is not whole: ${failureText(failure)}`,
})

function stopUnlessWhole(copied: Result<number, Failed>): void {
  if (!copied.ok) throw new CommandStop(copied.error.exitCode, copied.error.message)
}

const counted = (sessions: number): string => `${sessions} session${sessions === 1 ? '' : 's'}`

/** One line that is written over, on a terminal only. */
function makeProgress(io: CliIo): { session(): void; end(): void } {
  let sessions = 0
  return {
    session: () => {
      sessions++
      if (io.isTty) io.err(`\r${counted(sessions)}`)
    },
    end: () => {
      if (io.isTty && sessions > 0) io.err('\r\u001b[K')
    },
  }
}
