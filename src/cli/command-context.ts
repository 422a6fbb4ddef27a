import type { Command } from 'commander'
import type { SwitchyardClient } from '../client/client.ts'
import type { ClientFailure } from '../client/failure.ts'
import type { ProviderKeys } from '../client/provider-header.ts'
import { parseSessionId } from '../protocol/execution/ids.ts'
import type { Result } from '../protocol/result.ts'
import type { Clock } from './clock.ts'
import { EXIT, exitCodeOf } from './exit-code.ts'
import { failureText } from './failure-text.ts'
import { type CliIo, makeCliIo } from './io.ts'
import { type SignInFailure, signedInClient } from './sign-in.ts'

/** Where `npm start` and `npm run dev` serve. */
export const DEFAULT_URL = 'http://127.0.0.1:8787'

/** What every command gets; replaced by tests. */
export type CommandDeps = {
  makeIo: (options: { color?: boolean }) => CliIo
  /** For commands that wait; absent: that of the wall. */
  clock?: Clock
}

export const DEFAULT_DEPS: CommandDeps = { makeIo: makeCliIo }

/** The options that every command knows. */
export type CommonOptions = { url?: string; color?: boolean }

/** Ends a command with a sentence instead of a stack trace. */
export class CommandStop extends Error {
  readonly exitCode: number
  constructor(exitCode: number, message: string) {
    super(message)
    this.name = 'CommandStop'
    this.exitCode = exitCode
  }
}

/** What the router answered, or the end of the command with what it refused. */
export function must<T>(answer: Result<T, ClientFailure>): T {
  if (answer.ok) return answer.value
  throw new CommandStop(exitCodeOf(answer.error), failureText(answer.error))
}

/** The router's address: the option, then SWITCHYARD_URL, then the local default. */
export function routerUrl(options: CommonOptions): string {
  const url = options.url ?? (process.env.SWITCHYARD_URL || DEFAULT_URL)
  const parsed = URL.canParse(url) ? new URL(url) : undefined
  if (parsed?.protocol !== 'http:' && parsed?.protocol !== 'https:')
    throw new CommandStop(EXIT.usage, `"${url}" is not the address of a router; write http://… or https://…`)
  if (parsed.username !== '' || parsed.password !== '' || parsed.search !== '' || parsed.hash !== '')
    throw new CommandStop(EXIT.usage, 'the address of a router has no user name, query or fragment')
  return url.replace(/\/+$/, '')
}

/** A signed-in client, or the end of the command. */
export async function requireClient(
  url: string,
  io: CliIo,
  providerKeys: ProviderKeys = {},
): Promise<SwitchyardClient> {
  const client = await signedInClient({ url, io, providerKeys })
  if (client.ok) return client.value
  throw stopForSignIn(client.error)
}

/** The end of a command that could not sign in. */
export function stopForSignIn({ kind, message }: SignInFailure): CommandStop {
  return new CommandStop(kind === 'storage' || kind === 'refused' ? EXIT.failed : EXIT.unreachable, message)
}

/** Where the ids of something are listed. */
const LISTED_BY = {
  session: 'switchyard sessions list',
  key: 'switchyard apikey list',
  grant: 'switchyard grants SESSION',
} as const

/** An id as it was typed, or the end of the command when it can be none, before anything is asked (EC 1). */
export function requireId(text: string, what: keyof typeof LISTED_BY): string {
  const id = parseSessionId(text)
  if (id !== null) return id
  throw new CommandStop(EXIT.usage, `"${text}" is no id of a ${what}; \`${LISTED_BY[what]}\` shows them`)
}

/** What a command of a signed-in user begins with: its options, its terminal, its client. */
export async function openClient<T extends object>(deps: CommandDeps, command: Command) {
  const options = optionsOf<T>(command)
  const io = deps.makeIo(options)
  return { options, io, client: await requireClient(routerUrl(options), io) }
}

/** Asks before something that cannot be undone; without a terminal only `--yes` will do. */
export async function requireConsent(
  io: CliIo,
  yes: boolean | undefined,
  question: string,
): Promise<boolean> {
  if (yes) return true
  if (!io.isTty) throw new CommandStop(EXIT.usage, 'there is no terminal to ask on; add --yes')
  const answer = await io.confirm(question)
  return answer.kind === 'answer' && answer.value
}

/** All options of a command, those of the program included. */
export const optionsOf = <T extends object>(command: Command): T & CommonOptions =>
  command.optsWithGlobals<T & CommonOptions>()
