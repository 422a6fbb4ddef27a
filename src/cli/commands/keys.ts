import type { Command } from 'commander'
import { keyLine, parseKeyLine } from '../../client/crypto/key-line.ts'
import type { SessionSummary } from '../../protocol/execution/session.ts'
import {
  type CommandDeps,
  CommandStop,
  must,
  optionsOf,
  requireClient,
  routerUrl,
} from '../command-context.ts'
import { EXIT } from '../exit-code.ts'
import type { Answer, CliIo } from '../io.ts'
import { requireKey, requireKeys } from '../keys/find-key.ts'
import { openKeyStore } from '../keys/key-folder.ts'
import { keyLines, listedKeys } from '../keys/key-list.ts'
import { isColoredOnOut, qrCode } from '../qr-code.ts'

/** `keys list | export | import`. */
export function addKeyCommands(program: Command, deps: CommandDeps, end: (exitCode: number) => void): void {
  const keys = program
    .command('keys')
    .summary('list, export and import the keys of encrypted sessions')
    .description(
      'Works with the keys of encrypted sessions on this machine. The router has none of them: a key that is lost takes what was sealed with it along.',
    )
    .addHelpText(
      'after',
      `
Examples:
  switchyard keys list --sessions
  (umask 077; switchyard keys export kf_Yw3N > key.txt)
  switchyard keys import < key.txt`,
    )

  keys
    .command('list')
    .description('Lists the keys on this machine, the oldest first, and whether each can be used.')
    .option('--sessions', 'the sessions under each key, too; asks the router')
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExample:\n  switchyard keys list --sessions')
    .action(async (_options: unknown, command: Command) => {
      const options = optionsOf<{ sessions?: boolean; json?: boolean }>(command)
      const io = deps.makeIo(options)
      const stored = await requireKeys(openKeyStore())
      const sessions = options.sessions ? await allSessions(routerUrl(options), io) : undefined
      const listed = listedKeys(stored, sessions)
      if (options.json) io.out(`${JSON.stringify(listed, null, 2)}\n`)
      else for (const key of listed) io.out(keyLines(key))
      if (listed.length === 0 && !options.json) io.err('no keys\n')
      end(EXIT.ok)
    })

  keys
    .command('export <key-id>')
    .description(
      'Prints a key as one line, for `switchyard keys import` on another machine or for a safe place. The beginning of its id will do.',
    )
    .option('--qr', 'print a QR code instead')
    .addHelpText(
      'after',
      `
Examples:
  switchyard keys export kf_Yw3N | ssh laptop switchyard keys import
  switchyard keys export kf_Yw3N --qr`,
    )
    .action(async (typed: string, _options: unknown, command: Command) => {
      const options = optionsOf<{ qr?: boolean }>(command)
      const io = deps.makeIo(options)
      const line = keyLine(await requireKey(openKeyStore(), typed))
      io.out(options.qr ? qrCode(line, isColoredOnOut(io, options)) : `${line}\n`)
      if (io.outIsTty)
        io.err(
          `${io.paint.yellow('warning')}: whoever has this ${options.qr ? 'code' : 'line'} can read every session under the key\n`,
        )
      end(EXIT.ok)
    })

  keys
    .command('import [line]')
    .description(
      'Keeps a key that another machine exported. Without an argument the line is asked for, or read from stdin; others on this machine can see arguments, so this is the better way.',
    )
    .addHelpText('after', '\nExample:\n  switchyard keys import < key.txt')
    .action(async (typed: string | undefined, _options: unknown, command: Command) => {
      const io = deps.makeIo(optionsOf(command))
      end(await importKey(typed, io))
    })
}

const allSessions = async (url: string, io: CliIo): Promise<SessionSummary[]> =>
  must(await (await requireClient(url, io)).sessions.list({}))

/** Files and pipes may have blank lines before the one that counts. */
async function askForLine(io: CliIo): Promise<Answer<string>> {
  for (;;) {
    const answer = await io.askSecret('Line of the key:')
    if (io.isTty || answer.kind === 'interrupted' || answer.value.trim() !== '') return answer
  }
}

async function importKey(typed: string | undefined, io: CliIo): Promise<number> {
  const answer = typed === undefined ? await askForLine(io) : null
  if (answer?.kind === 'interrupted' && io.isTty) return EXIT.interrupted
  const line = answer?.kind === 'answer' ? answer.value : (typed ?? '')
  if (line.trim() === '') {
    const message = 'there is no key on stdin; `switchyard keys export` on the other machine prints it'
    throw new CommandStop(EXIT.usage, message)
  }
  const key = await parseKeyLine(line)
  if (!key.ok) throw new CommandStop(EXIT.usage, key.error)
  const saved = await openKeyStore().save(key.value)
  if (!saved.ok) throw new CommandStop(EXIT.failed, saved.error.message)
  io.err(saved.value.created ? `imported ${key.value.keyId}\n` : `${key.value.keyId} was here already\n`)
  return EXIT.ok
}
