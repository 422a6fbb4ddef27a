import { type Command, Option } from 'commander'
import { SwitchyardClient } from '../../client/client.ts'
import type { ClientFailure } from '../../client/failure.ts'
import type { SignInResponse } from '../../protocol/execution/auth.ts'
import {
  type CommandDeps,
  CommandStop,
  type CommonOptions,
  optionsOf,
  requireClient,
  requireConsent,
  routerUrl,
  stopForSignIn,
} from '../command-context.ts'
import { credentialsPath, loadCredentials, saveCredentials } from '../credentials.ts'
import { EXIT, exitCodeOf } from '../exit-code.ts'
import { failureText } from '../failure-text.ts'
import type { CliIo } from '../io.ts'
import { makeAccount, replacedNote } from '../new-account.ts'
import { type KeySource, signedInClient, signInFailure } from '../sign-in.ts'

type LoginOptions = CommonOptions & { bootstrapToken?: string | true; apiKey?: boolean }
type End = (exitCode: number) => void

/** `login`, `logout`, `status` and `whoami`. */
export function addAccountCommands(program: Command, deps: CommandDeps, end: End): void {
  program
    .command('login')
    .summary('create an account on a router, or sign in to one')
    .description(
      'Signs in with the key that is stored for the router; without one, or when a local router does not know it any more, makes an account and stores its key. The key is kept in credentials.json of the configuration folder, readable by you alone.',
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
    .description(
      'Shows whether the router answers and whether it knows your key: the exit code is 3 if it does not.',
    )
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
  const client = new SwitchyardClient({ baseUrl: url })
  const { apiKey, issued } = await signInAnew(client, options, io)
  const me = await client.me()
  if (!me.ok) throw new CommandStop(exitCodeOf(me.error), failureText(me.error))
  const saved = saveCredentials(url, {
    user_id: me.value.user_id,
    api_key: apiKey,
    token: { value: issued.token, expires_at: issued.expires_at },
  })
  if (!saved.ok) throw new CommandStop(EXIT.failed, saved.error.message)
  io.err(`signed in to ${url} as ${me.value.user_id}; the key is in ${credentialsPath()}\n`)
  return EXIT.ok
}

type Fresh = { apiKey: string; issued: SignInResponse }

/** With the typed key, else the stored one while the router knows it, else that of a new account. */
async function signInAnew(client: SwitchyardClient, options: LoginOptions, io: CliIo): Promise<Fresh> {
  const stored = loadCredentials(client.baseUrl)
  if (!stored.ok) throw new CommandStop(EXIT.failed, stored.error.message)
  if (options.apiKey) return signInWith(client, await secret(io, 'API key'), 'typed')
  if (stored.value === null || options.bootstrapToken !== undefined)
    return signInWith(client, await createAccount(client, options, io), 'stored')
  const apiKey = stored.value.api_key
  const signedIn = await client.signIn(apiKey)
  if (signedIn.ok) return { apiKey, issued: signedIn.value }
  if (!isUnknownKey(signedIn.error)) throw stopFor(signedIn.error, client, 'stored')
  return signInWith(client, await replaceAccount(client, io), 'stored')
}

async function signInWith(client: SwitchyardClient, apiKey: string, source: KeySource): Promise<Fresh> {
  const signedIn = await client.signIn(apiKey)
  if (!signedIn.ok) throw stopFor(signedIn.error, client, source)
  return { apiKey, issued: signedIn.value }
}

const stopFor = (failure: ClientFailure, { baseUrl }: SwitchyardClient, source: KeySource): CommandStop =>
  new CommandStop(EXIT.unreachable, signInFailure(failure, baseUrl, source).message)

const isUnknownKey = (failure: ClientFailure): boolean =>
  failure.kind === 'http' && failure.code === 'invalid_api_key'

const isForbidden = (failure: ClientFailure): boolean => failure.kind === 'http' && failure.status === 403

async function createAccount(client: SwitchyardClient, options: LoginOptions, io: CliIo): Promise<string> {
  const { bootstrapToken } = options
  const token = bootstrapToken === true ? await secret(io, 'Bootstrap token') : bootstrapToken
  const made = await makeAccount(client, token)
  if (made.ok) return made.value
  if (made.error.kind === 'storage') throw new CommandStop(EXIT.failed, made.error.message)
  const { failure } = made.error
  if (!isForbidden(failure))
    throw new CommandStop(exitCodeOf(failure), signInFailure(failure, client.baseUrl, 'stored').message)
  const why =
    token === undefined
      ? `${failureText(failure)}\n  a deployed router needs --bootstrap-token; with an account, use --api-key`
      : `the value of --bootstrap-token is wrong, or this router has none: ${failureText(failure)}`
  throw new CommandStop(EXIT.unreachable, why)
}

/** An open local router whose state was reset gives a new account; a deployed one asks for more than a stored key. */
async function replaceAccount(client: SwitchyardClient, io: CliIo): Promise<string> {
  const { baseUrl } = client
  const made = await makeAccount(client)
  if (made.ok) {
    io.err(`${replacedNote(baseUrl)}\n`)
    return made.value
  }
  if (made.error.kind === 'storage') throw new CommandStop(EXIT.failed, made.error.message)
  const { failure } = made.error
  if (!isForbidden(failure))
    throw new CommandStop(exitCodeOf(failure), signInFailure(failure, baseUrl, 'stored').message)
  const message = [
    `${baseUrl} does not know the stored API key any more`,
    '  with another key of yours: `switchyard login --api-key`; for a new account: `switchyard login --bootstrap-token`',
    '  `switchyard logout` only forgets the stored one',
  ]
  throw new CommandStop(EXIT.unreachable, message.join('\n'))
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
  if (!answer.ok) throw new CommandStop(EXIT.unreachable, signInFailure(answer.error, url, 'stored').message)
  io.out(`router   ${url}\nstatus   ${answer.value.status}\nversion  ${answer.value.version}\n`)
  const stored = loadCredentials(url)
  if (!stored.ok) throw new CommandStop(EXIT.failed, stored.error.message)
  const fromEnvironment = Boolean(process.env.SWITCHYARD_API_KEY)
  if (!fromEnvironment && stored.value === null) {
    io.out('account  none; run `switchyard login`\n')
    return EXIT.ok
  }
  const named = fromEnvironment ? 'that of SWITCHYARD_API_KEY' : stored.value?.user_id
  const client = await signedInClient({ url, io, providerKeys: {} })
  if (!client.ok) {
    io.out(`account  ${named}; not signed in\n`)
    throw stopForSignIn(client.error)
  }
  const me = await client.value.me()
  if (!me.ok) throw new CommandStop(exitCodeOf(me.error), failureText(me.error))
  io.out(`account  ${me.value.user_id}${fromEnvironment ? ', by SWITCHYARD_API_KEY' : ''}\n`)
  return EXIT.ok
}
