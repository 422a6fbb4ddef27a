import type { Command } from 'commander'
import {
  type CommandDeps,
  CommandStop,
  type CommonOptions,
  optionsOf,
  requireClient,
  routerUrl,
} from '../command-context.ts'
import { loadCredentials, saveCredentials } from '../credentials.ts'
import { EXIT, exitCodeOf } from '../exit-code.ts'
import { failureText } from '../failure-text.ts'
import type { CliIo } from '../io.ts'

/** What has to be typed: nothing that one presses by mistake. */
const CONFIRMATION = 'delete my account'

/** `account delete`. */
export function addDeleteAccountCommand(
  program: Command,
  deps: CommandDeps,
  end: (exitCode: number) => void,
): void {
  const account = program
    .command('account')
    .summary('delete your account')
    .description('Works with your account on a router.')
    .addHelpText('after', '\nExample:\n  switchyard account delete')

  account
    .command('delete')
    .description(
      'Deletes the account with its sessions, keys and everything that is remembered, and forgets the stored key. There is no way back; `switchyard export` keeps a copy.',
    )
    .option('--yes', 'do not ask')
    .addHelpText('after', '\nExample:\n  switchyard export --output mine.ndjson && switchyard account delete')
    .action(async (_options: unknown, command: Command) => {
      const options = optionsOf<{ yes?: boolean }>(command)
      end(await deleteAccount(options, deps.makeIo(options)))
    })
}

async function deleteAccount(options: CommonOptions & { yes?: boolean }, io: CliIo): Promise<number> {
  const url = routerUrl(options)
  if (!options.yes && !io.isTty)
    throw new CommandStop(EXIT.usage, 'there is no terminal to ask on; add --yes')
  const client = await requireClient(url, io)
  const me = await client.me()
  if (!me.ok) throw new CommandStop(exitCodeOf(me.error), failureText(me.error))
  const { user_id } = me.value
  if (!options.yes && !(await confirmed(io, url, user_id))) {
    io.err('nothing was deleted\n')
    return EXIT.failed
  }
  const stored = loadCredentials(url)
  const key = process.env.SWITCHYARD_API_KEY || (stored.ok ? stored.value?.api_key : undefined)
  if (key === undefined) throw new CommandStop(EXIT.unreachable, 'the API key is no longer stored')
  const deleted = await client.deleteAccount(key)
  if (!deleted.ok) throw new CommandStop(exitCodeOf(deleted.error), failureText(deleted.error))
  io.err(`deleted account ${user_id} on ${url}\n`)
  // The environment may have named another account than the one that is stored.
  if (!stored.ok || stored.value?.user_id !== user_id) return EXIT.ok
  const saved = saveCredentials(url, null)
  if (!saved.ok) throw new CommandStop(EXIT.failed, saved.error.message)
  return EXIT.ok
}

async function confirmed(io: CliIo, url: string, userId: string): Promise<boolean> {
  io.err(
    `This deletes account ${userId} on ${url}, with all its sessions, its keys and what is remembered.\nThere is no way back.\n`,
  )
  const answer = await io.readLine(`Type "${CONFIRMATION}" to go on: `)
  return answer.kind === 'line' && answer.text.trim() === CONFIRMATION
}
