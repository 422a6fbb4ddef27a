import type { Command } from 'commander'
import { SwitchyardClient } from '../../client/client.ts'
import type { ApiKeySummary } from '../../protocol/execution/account.ts'
import {
  type CommandDeps,
  CommandStop,
  must,
  openClient,
  optionsOf,
  requireConsent,
  requireId,
  routerUrl,
} from '../command-context.ts'
import { loadCredentials, saveCredentials } from '../credentials.ts'
import { EXIT, exitCodeOf } from '../exit-code.ts'
import { failureText } from '../failure-text.ts'
import type { CliIo } from '../io.ts'

/** `apikey list | new | revoke | rotate`. */
export function addApiKeyCommands(
  program: Command,
  deps: CommandDeps,
  end: (exitCode: number) => void,
): void {
  const apikey = program
    .command('apikey')
    .summary('list, make, revoke and rotate API keys')
    .description('Works with the API keys of your account. A key is shown once, when it is made.')
    .addHelpText('after', '\nExamples:\n  switchyard apikey list\n  switchyard apikey rotate')

  const open = <T extends object>(command: Command) => openClient<T>(deps, command)

  apikey
    .command('list')
    .description('Lists the working keys, the oldest first.')
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExample:\n  switchyard apikey list')
    .action(async (_options: unknown, command: Command) => {
      const { options, io, client } = await open<{ json?: boolean }>(command)
      const keys = must(await client.keys.list())
      if (options.json) io.out(`${JSON.stringify(keys, null, 2)}\n`)
      else for (const key of keys) io.out(`${keyLine(key)}\n`)
      end(EXIT.ok)
    })

  apikey
    .command('new')
    .description('Makes another key and prints it, this once. What is stored on this machine stays.')
    .addHelpText('after', '\nExample:\n  switchyard apikey new > key.txt')
    .action(async (_options: unknown, command: Command) => {
      const { io, client } = await open(command)
      const made = must(await client.keys.create())
      io.out(`${made.api_key}\n`)
      io.err(`made key ${made.id}; it is not shown again\n`)
      end(EXIT.ok)
    })

  apikey
    .command('revoke <id>')
    .description('Revokes a key. Whoever signed in with it is signed out at once.')
    .option('--yes', 'do not ask')
    .addHelpText('after', '\nExample:\n  switchyard apikey revoke 0197d0a2-6c1e-7c52-9a55-0c6a6f1d2b11 --yes')
    .action(async (typed: string, _options: unknown, command: Command) => {
      const id = requireId(typed, 'key')
      const { options, io, client } = await open<{ yes?: boolean }>(command)
      end(await revoke(client, io, id, options.yes))
    })

  apikey
    .command('rotate')
    .description(
      'Replaces the key that is stored on this machine: makes a new one, stores it, and only then revokes the old one.',
    )
    .addHelpText('after', '\nExample:\n  switchyard apikey rotate')
    .action(async (_options: unknown, command: Command) => {
      const options = optionsOf(command)
      end(await rotate(routerUrl(options), deps.makeIo(options)))
    })
}

async function revoke(
  client: SwitchyardClient,
  io: CliIo,
  id: string,
  yes: boolean | undefined,
): Promise<number> {
  const keys = must(await client.keys.list())
  if (keys.some((key) => key.current && key.id === id)) {
    const message = 'this is the key that you are signed in with; `switchyard apikey rotate` replaces it'
    throw new CommandStop(EXIT.usage, message)
  }
  if (!(await requireConsent(io, yes, `Revoke key ${id}? Whoever uses it is signed out at once.`))) {
    io.err('nothing was revoked\n')
    return EXIT.failed
  }
  must(await client.keys.revoke(id))
  io.err(`revoked ${id}\n`)
  return EXIT.ok
}

/**
 * Replaces the stored key. At every moment the key that is stored works: the new one is stored only after it has signed
 * in, and the old one is revoked only after that. Whatever stops this in between leaves one key too many, never none.
 */
async function rotate(url: string, io: CliIo): Promise<number> {
  if (process.env.SWITCHYARD_API_KEY) {
    const message = 'SWITCHYARD_API_KEY is set: its key is not stored here, so it cannot be replaced here'
    throw new CommandStop(EXIT.usage, `${message}; use \`switchyard apikey new\` and \`revoke\``)
  }
  const stored = loadCredentials(url)
  if (!stored.ok) throw new CommandStop(EXIT.failed, stored.error.message)
  const old = stored.value
  if (!old)
    throw new CommandStop(EXIT.unreachable, `not signed in to ${url}: run \`switchyard login --url ${url}\``)

  // A token of this very key: the list then says which of the keys it is.
  const before = new SwitchyardClient({ baseUrl: url })
  must(await before.signIn(old.api_key))
  const oldId = must(await before.keys.list()).find(({ current }) => current)?.id
  if (oldId === undefined)
    throw new CommandStop(EXIT.failed, 'the router does not say which key is the stored one')

  const made = must(await before.keys.create())
  /** The new key has come to nothing: it should not stay behind. */
  const giveUp = async (exitCode: number, message: string): Promise<never> => {
    const undone = await before.keys.revoke(made.id)
    const left = undone.ok ? '' : `\n  the new key ${made.id} is left over: revoke it`
    throw new CommandStop(exitCode, `${message}; the old key stays${left}`)
  }
  const after = new SwitchyardClient({ baseUrl: url })
  const signedIn = await after.signIn(made.api_key)
  if (!signedIn.ok) return giveUp(exitCodeOf(signedIn.error), failureText(signedIn.error))
  const { token, expires_at } = signedIn.value
  const saved = saveCredentials(url, {
    user_id: old.user_id,
    api_key: made.api_key,
    token: { value: token, expires_at },
  })
  if (!saved.ok) return giveUp(EXIT.failed, saved.error.message)

  const revoked = await after.keys.revoke(oldId)
  if (!revoked.ok) {
    const message = `the new key is stored, but revoking the old one failed: ${failureText(revoked.error)}`
    throw new CommandStop(
      exitCodeOf(revoked.error),
      `${message}\n  revoke it with \`switchyard apikey revoke ${oldId}\``,
    )
  }
  io.err(`key ${oldId} is replaced by ${made.id}\n`)
  return EXIT.ok
}

function keyLine({ id, created_at, last_used_at, current }: ApiKeySummary): string {
  const minute = (time: string) => time.slice(0, 16).replace('T', ' ')
  const used = last_used_at === undefined ? 'never used' : `used ${minute(last_used_at)}`
  return [id, `made ${minute(created_at)}`, used, ...(current ? ['signed in with'] : [])].join('  ')
}
