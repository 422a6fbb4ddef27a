import { type Command, Option } from 'commander'
import { SwitchyardClient } from '../../client/client.ts'
import {
  type CommandDeps,
  CommandStop,
  type CommonOptions,
  optionsOf,
  requireClient,
  requireConsent,
  routerUrl,
} from '../command-context.ts'
import { credentialsPath, loadCredentials, saveCredentials } from '../credentials.ts'
import { EXIT, exitCodeOf } from '../exit-code.ts'
import { failureText } from '../failure-text.ts'
import type { CliIo } from '../io.ts'
import { signInFailure } from '../sign-in.ts'

type LoginOptions = CommonOptions & { bootstrapToken?: string | true; apiKey?: boolean }
type End = (exitCode: number) => void

/** `login`, `logout`, `status` and `whoami`. */
export function addAccountCommands(program: Command, deps: CommandDeps, end: End): void {
  program
    .command('login')
    .summary('create an account on a router, or sign in to one')
    .description(
      'Signs in with the key that is stored for the router; without one, makes an account and stores its key. The key is kept in credentials.json of the configuration folder, readable by you alone.',
    )
    .addOption(
      new Option(
        '--bootstrap-token [token]',
        'what a deployed router asks for before it makes an account; without a value it is asked for (or read from stdin)',
      ),
    )
    .addOption(
      new Option('--api-key', 'store an existing key: asked for, or read from stdin').conflicts(
        'bootstrapToken',
      ),
    )
    .addHelpText(
      'after',
      `
Examples:
  switchyard login
  switchyard login --url https://switchyard.example.workers.dev --bootstrap-token
  switchyard login --api-key < key.txt`,
    )
    .action(async (_options: unknown, command: Command) => {
      const options = optionsOf<LoginOptions>(command)
      end(await login(options, deps.makeIo(options)))
    })

  program
    .command('logout')
    .description('Ends the session token and forgets the key that is stored for the router.')
    .option('--yes', 'do not ask: the key cannot be shown again')
    .addHelpText('after', '\nExample:\n  switchyard logout --url http://127.0.0.1:8787')
    .action(async (_options: unknown, command: Command) => {
      const options = optionsOf<{ yes?: boolean }>(command)
      end(await logout(options, deps.makeIo(options)))
    })

  program
    .command('status')
    .description('Shows whether the router answers and whether you are signed in.')
    .addHelpText('after', '\nExample:\n  switchyard status --url http://127.0.0.1:8787')
    .action(async (_options: unknown, command: Command) => {
      const options = optionsOf(command)
      end(await status(options, deps.makeIo(options)))
    })

  program
    .command('whoami')
    .description('Prints the id of your account.')
    .addHelpText('after', '\nExample:\n  switchyard whoami')
    .action(async (_options: unknown, command: Command) => {
      const options = optionsOf(command)
      const io = deps.makeIo(options)
      const client = await requireClient(routerUrl(options), io)
      const me = await client.me()
      if (!me.ok) throw new CommandStop(exitCodeOf(me.error), failureText(me.error))
      io.out(`${me.value.user_id}\n`)
      end(EXIT.ok)
    })
}

async function login(options: LoginOptions, io: CliIo): Promise<number> {
  const url = routerUrl(options)
  const stored = loadCredentials(url)
  if (!stored.ok) throw new CommandStop(EXIT.failed, stored.error.message)
  const client = new SwitchyardClient({ baseUrl: url })
  let apiKey: string
  if (options.apiKey) apiKey = await secret(io, 'API key')
  else if (stored.value && options.bootstrapToken === undefined) apiKey = stored.value.api_key
  else apiKey = await createAccount(client, options, io)
  const signedIn = await client.signIn(apiKey)
  if (!signedIn.ok) throw new CommandStop(EXIT.unreachable, signInFailure(signedIn.error, url).message)
  const me = await client.me()
  if (!me.ok) throw new CommandStop(exitCodeOf(me.error), failureText(me.error))
  const saved = saveCredentials(url, {
    user_id: me.value.user_id,
    api_key: apiKey,
    token: { value: signedIn.value.token, expires_at: signedIn.value.expires_at },
  })
  if (!saved.ok) throw new CommandStop(EXIT.failed, saved.error.message)
  io.err(`signed in to ${url} as ${me.value.user_id}; the key is in ${credentialsPath()}\n`)
  return EXIT.ok
}

async function createAccount(client: SwitchyardClient, options: LoginOptions, io: CliIo): Promise<string> {
  const { bootstrapToken } = options
  const token = bootstrapToken === true ? await secret(io, 'Bootstrap token') : bootstrapToken
  const made = await client.bootstrap(token)
  if (!made.ok) {
    const { error } = made
    if (error.kind === 'http' && error.status === 403) {
      const message = `${failureText(error)}\n  a deployed router needs --bootstrap-token; with an account, use --api-key`
      throw new CommandStop(EXIT.unreachable, message)
    }
    const { message } = signInFailure(error, client.baseUrl)
    throw new CommandStop(exitCodeOf(error), message)
  }
  // Stored before anything else can fail: the key is shown this once (EC 2.2).
  const { user_id, api_key } = made.value
  const saved = saveCredentials(client.baseUrl, { user_id, api_key })
  if (!saved.ok) throw new CommandStop(EXIT.failed, `${saved.error.message}; the new account is lost`)
  return api_key
}

async function secret(io: CliIo, what: string): Promise<string> {
  const answer = await io.askSecret(what)
  const value = answer.kind === 'answer' ? answer.value.trim() : ''
  if (value === '') throw new CommandStop(EXIT.usage, `no ${what.toLowerCase()} was given`)
  return value
}

async function logout(options: CommonOptions & { yes?: boolean }, io: CliIo): Promise<number> {
  const url = routerUrl(options)
  const stored = loadCredentials(url)
  if (!stored.ok) throw new CommandStop(EXIT.failed, stored.error.message)
  if (!stored.value) {
    io.err(`nothing is stored for ${url}\n`)
    return EXIT.ok
  }
  const question = 'Forget the API key? It cannot be shown again, and without it the account is out of reach.'
  if (!(await requireConsent(io, options.yes, question))) {
    io.err('nothing was changed\n')
    return EXIT.failed
  }
  if (stored.value.token) {
    const client = new SwitchyardClient({ baseUrl: url, token: stored.value.token.value })
    const ended = await client.signOut()
    // An expired or unknown token needs no ending; an unreachable router is worth a word.
    if (!ended.ok && ended.error.kind === 'network')
      io.err(`${io.paint.yellow('note')}: the session token was not ended: ${failureText(ended.error)}\n`)
  }
  const saved = saveCredentials(url, null)
  if (!saved.ok) throw new CommandStop(EXIT.failed, saved.error.message)
  io.err(`signed out of ${url}\n`)
  return EXIT.ok
}

async function status(options: CommonOptions, io: CliIo): Promise<number> {
  const url = routerUrl(options)
  const answer = await new SwitchyardClient({ baseUrl: url }).status()
  if (!answer.ok) throw new CommandStop(EXIT.unreachable, signInFailure(answer.error, url).message)
  io.out(`router   ${url}\nstatus   ${answer.value.status}\nversion  ${answer.value.version}\n`)
  const stored = loadCredentials(url)
  if (!stored.ok) throw new CommandStop(EXIT.failed, stored.error.message)
  if (process.env.SWITCHYARD_API_KEY) io.out('account  from SWITCHYARD_API_KEY\n')
  else io.out(`account  ${stored.value?.user_id ?? 'none; run `switchyard login`'}\n`)
  return EXIT.ok
}
