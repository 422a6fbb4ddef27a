import type { Command } from 'commander'
import type { ProviderKeys } from '../../client/provider-header.ts'
import type { Provider } from '../../protocol/execution/ids.ts'
import type {
  ListModelsResponse,
  ModelDescriptor,
  ProviderDescriptor,
  UnavailableProvider,
} from '../../protocol/execution/models.ts'
import {
  type CommandDeps,
  CommandStop,
  must,
  optionsOf,
  requireClient,
  routerUrl,
} from '../command-context.ts'
import { EXIT } from '../exit-code.ts'
import type { CliIo } from '../io.ts'
import { oneLine } from '../printable.ts'
import { keyVariables, providerKey } from '../provider-keys.ts'

/** Names of models have some dozen characters; a longer one must not widen the table without end. */
const MAX_NAME_CHARS = 120
/** What a router says of a provider: a sentence. */
const MAX_MESSAGE_CHARS = 300

const UNKNOWN = '?'

/** `models`: what can be routed to. */
export function addModelsCommand(program: Command, deps: CommandDeps, end: (exitCode: number) => void): void {
  program
    .command('models')
    .summary('list the models that can be routed to')
    .description(
      'Lists the models that the router reaches with your keys. Prices are in US dollars per million tokens, as of the day beside them; what is not known is "?".',
    )
    .option('--provider <id>', 'only this provider; no other key is sent')
    .option('--json', 'print JSON')
    .addHelpText(
      'after',
      `
Keys of model providers come from the environment. Of the providers that the router has, each one's key is sent:
  ANTHROPIC_API_KEY, OPENAI_API_KEY, GEMINI_API_KEY
  SWITCHYARD_PROVIDER_<NAME>_API_KEY    any provider: its name in capitals, - as _; comes before the ones above

The exit code is 1 only if no provider could be listed; those that could not are told with what to do.

Examples:
  switchyard models
  switchyard models --provider openai-compat:lab --json`,
    )
    .action(async (_options: unknown, command: Command) => {
      const options = optionsOf<{ provider?: string; json?: boolean }>(command)
      const io = deps.makeIo(options)
      const client = await requireClient(routerUrl(options), io)
      const providers = asked(must(await client.providers()), options.provider?.toLowerCase())
      const keys = keysInEnvironment(providers)
      client.useProviderKeys(keys)
      const { models, unavailable } = only(providers, must(await client.models()))
      if (options.json) io.out(`${JSON.stringify({ models, unavailable }, null, 2)}\n`)
      else show(models, io)
      for (const one of unavailable) io.err(unavailableText(one, providers, keys, io))
      const failed = new Set(unavailable.map(({ provider }) => provider))
      const nobody = models.length === 0 && failed.size > 0 && providers.every(({ id }) => failed.has(id))
      if (models.length === 0 && !nobody && !options.json) io.err('no models\n')
      end(nobody ? EXIT.failed : EXIT.ok)
    })
}

/** All providers, or the one that is wanted; a wrong name is answered with the right ones. */
function asked(providers: ProviderDescriptor[], wanted: string | undefined): ProviderDescriptor[] {
  if (wanted === undefined) return providers
  const found = providers.filter(({ id }) => id === wanted)
  if (found.length > 0) return found
  const names = providers.map(({ id }) => id).join(', ') || 'none'
  throw new CommandStop(EXIT.failed, `this router has no provider "${wanted}"; those that it has: ${names}`)
}

function only(
  providers: readonly ProviderDescriptor[],
  { models, unavailable = [] }: ListModelsResponse,
): { models: ModelDescriptor[]; unavailable: UnavailableProvider[] } {
  const ids = new Set(providers.map(({ id }) => id))
  const isAsked = ({ provider }: { provider: Provider }) => ids.has(provider)
  return { models: models.filter(isAsked), unavailable: unavailable.filter(isAsked) }
}

/** The key of each provider that has one in the environment. */
const keysInEnvironment = (providers: readonly ProviderDescriptor[]): ProviderKeys =>
  Object.fromEntries(
    providers.flatMap(({ id }) => {
      const key = providerKey(id)
      return key === undefined ? [] : [[id, key]]
    }),
  )

function unavailableText(
  { provider, reason, message }: UnavailableProvider,
  providers: readonly ProviderDescriptor[],
  keys: ProviderKeys,
  { paint }: CliIo,
): string {
  const said = message ? `: ${oneLine(message, MAX_MESSAGE_CHARS)}` : ''
  const local = providers.some(({ id, local }) => id === provider && local)
  const remedy = remedyFor(provider, reason, { local, keySent: keys[provider] !== undefined })
  return `${paint.yellow('unavailable')}: ${provider}${said} (${reason})\n${remedy ? `  ${remedy}\n` : ''}`
}

function remedyFor(
  provider: Provider,
  reason: UnavailableProvider['reason'],
  { local, keySent }: { local: boolean; keySent: boolean },
): string | undefined {
  const variables = keyVariables(provider)
  const toSet = variables.at(-1)
  switch (reason) {
    case 'missing_credentials':
      return `set ${toSet} to your key of this provider`
    case 'invalid_credentials':
    case 'authentication': {
      const used = variables.find((name) => process.env[name])
      return keySent && used !== undefined
        ? `check the key in ${used}`
        : `the key is the router's own; with ${toSet} yours is used instead`
    }
    case 'invalid_configuration':
      return "the router's settings of this provider need to be corrected"
    case 'provider_unavailable':
    case 'timeout':
      return local ? 'is it running where the router looks for it?' : 'try again later'
    case 'rate_limit':
      return 'try again later'
    default:
      return undefined
  }
}

const COLUMNS = ['MODEL', 'WHERE', 'WINDOW', 'IN $/M', 'OUT $/M', 'PRICES AS OF', 'CAPABILITIES']
/** Numbers stand flush right. */
const NUMERIC: ReadonlySet<number> = new Set([2, 3, 4])

function show(models: readonly ModelDescriptor[], io: CliIo): void {
  if (models.length === 0) return
  const rows = [COLUMNS, ...models.map(cells)]
  const widths = COLUMNS.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)))
  for (const row of rows) {
    const padded = row.map((cell, column) =>
      NUMERIC.has(column) ? cell.padStart(widths[column] ?? 0) : cell.padEnd(widths[column] ?? 0),
    )
    io.out(`${padded.join('  ').trimEnd()}\n`)
  }
}

function cells(model: ModelDescriptor): string[] {
  return [
    oneLine(`${model.provider}/${model.model}`, MAX_NAME_CHARS),
    model.local ? 'local' : 'remote',
    String(model.max_context_tokens),
    model.input_cost_per_million_tokens ?? UNKNOWN,
    model.output_cost_per_million_tokens ?? UNKNOWN,
    pricesAsOf(model),
    Object.entries(model.capabilities)
      .flatMap(([name, has]) => (has ? [name] : []))
      .join(' '),
  ]
}

/** The day of the prices, and up to which prompt they hold: beyond it they are unknown. */
function pricesAsOf(model: ModelDescriptor): string {
  const day = model.prices_as_of ?? UNKNOWN
  const most = model.prices_up_to_input_tokens
  return most === undefined ? day : `${day}, up to ${most} in`
}
