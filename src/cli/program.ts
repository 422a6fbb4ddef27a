import { Command, CommanderError } from 'commander'
import { ROUTER_VERSION } from '../protocol/version.ts'
import { type CommandDeps, CommandStop, DEFAULT_DEPS, DEFAULT_URL } from './command-context.ts'
import { addAccountCommands } from './commands/account.ts'
import { addApiKeyCommands } from './commands/apikey.ts'
import { addConfigCommands } from './commands/config.ts'
import { addDeleteAccountCommand } from './commands/delete-account.ts'
import { addDeviceCommands } from './commands/devices.ts'
import { addExplainCommand } from './commands/explain.ts'
import { addExportCommand } from './commands/export.ts'
import { addGrantCommands } from './commands/grants.ts'
import { addKeyCommands } from './commands/keys.ts'
import { addMemoryCommands } from './commands/memory.ts'
import { addModelsCommand } from './commands/models.ts'
import { addPairCommand } from './commands/pair.ts'
import { addPromptsCommand } from './commands/prompts.ts'
import { addRequestCommands } from './commands/requests.ts'
import { addRunCommand } from './commands/run.ts'
import { addSessionCommands } from './commands/sessions.ts'
import { addTraceCommand } from './commands/trace.ts'
import { addUsageCommand } from './commands/usage.ts'
import { EXIT, EXIT_CODE_HELP } from './exit-code.ts'
import { printable } from './printable.ts'

const EXAMPLES = `
Examples:
  switchyard login
  switchyard run "what does this project do?"
  switchyard sessions list --here
  switchyard pair

Environment:
  SWITCHYARD_URL                        address of the router
  SWITCHYARD_API_KEY                    your key, instead of the stored one
  ANTHROPIC_API_KEY, OPENAI_API_KEY, GEMINI_API_KEY, SWITCHYARD_PROVIDER_<NAME>_API_KEY
                                        keys of model providers, sent only for models that your policy names and
                                        when "switchyard models" asks what there is
  XDG_CONFIG_HOME                       folder that holds switchyard/ (default: ~/.config)
  NO_COLOR                              no colours`

/** The whole command line; `end` is told the exit code of the command that ran. */
export function makeProgram(deps: CommandDeps, end: (exitCode: number) => void): Command {
  const program = new Command('switchyard')
    .description(
      'Routes the turns of AI coding tasks onto models by fixed rules, and runs their tools on this machine.',
    )
    .version(ROUTER_VERSION)
    .option('--url <url>', `address of the router (default: SWITCHYARD_URL, else ${DEFAULT_URL})`)
    .option('--no-color', 'no colours')
    .configureHelp({ showGlobalOptions: true })
    .showHelpAfterError('(add --help for what there is)')
    .addHelpText('after', `${EXAMPLES}\n${EXIT_CODE_HELP}`)
  addRunCommand(program, deps, end)
  addPromptsCommand(program, deps, end)
  addAccountCommands(program, deps, end)
  addDeleteAccountCommand(program, deps, end)
  addApiKeyCommands(program, deps, end)
  addKeyCommands(program, deps, end)
  addModelsCommand(program, deps, end)
  addSessionCommands(program, deps, end)
  addUsageCommand(program, deps, end)
  addTraceCommand(program, deps, end)
  addExplainCommand(program, deps, end)
  addGrantCommands(program, deps, end)
  addMemoryCommands(program, deps, end)
  addPairCommand(program, deps, end)
  addDeviceCommands(program, deps, end)
  addRequestCommands(program, deps, end)
  addExportCommand(program, deps, end)
  addConfigCommands(program, deps, end)
  return program
}

/**
 * Runs one command line.
 * @param argv without the names of the interpreter and the script
 * @returns the exit code (`--help` lists them); mistakes of the user are sentences, never stack traces
 */
export async function runCli(argv: readonly string[], deps: CommandDeps = DEFAULT_DEPS): Promise<number> {
  let exitCode: number = EXIT.ok
  const program = makeProgram(deps, (code) => {
    exitCode = code
  })
  const io = deps.makeIo(argv.includes('--no-color') ? { color: false } : {})
  for (const command of withSubcommands(program)) {
    command.exitOverride()
    command.configureOutput({ writeOut: (text) => io.out(text), writeErr: (text) => io.err(text) })
    command.configureHelp(program.configureHelp())
  }
  try {
    if (argv.length === 0) {
      io.err(program.helpInformation())
      return EXIT.usage
    }
    await program.parseAsync([...argv], { from: 'user' })
    return exitCode
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.ok : EXIT.usage
    if (!(error instanceof CommandStop)) throw error
    io.err(`${io.paint.red('error')}: ${printable(error.message)}\n`)
    return error.exitCode
  }
}

const withSubcommands = (command: Command): Command[] => [
  command,
  ...command.commands.flatMap(withSubcommands),
]
