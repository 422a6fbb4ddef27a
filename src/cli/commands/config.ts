import { existsSync, mkdirSync, realpathSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import type { Command } from 'commander'
import { stringify } from 'smol-toml'
import { ModelReference } from '../../protocol/execution/ids.ts'
import { type CommandDeps, CommandStop, must, openClient, optionsOf } from '../command-context.ts'
import { policyAdvice } from '../config-check.ts'
import { globalConfigPath, projectConfigPath, renderFindings } from '../config-file.ts'
import { configTemplate } from '../config-template.ts'
import { EXIT } from '../exit-code.ts'
import { notAModel } from '../model-reference.ts'
import { loadConfig, policyOf } from '../policy.ts'

/** `config path | show | init | publish`. */
export function addConfigCommands(
  program: Command,
  deps: CommandDeps,
  end: (exitCode: number) => void,
): void {
  const config = program
    .command('config')
    .summary('where the configuration lies, what it says, and a first one')
    .description(
      'The configuration is merged from built-in defaults, the global file and the one of the project. A project may only tighten what the global file sets on permissions and privacy.',
    )
    .addHelpText(
      'after',
      '\nExamples:\n  switchyard config init --model ollama/qwen3:8b\n  switchyard config show',
    )

  config
    .command('path')
    .description('Prints where the configuration files are looked for.')
    .addHelpText('after', '\nExample:\n  switchyard config path')
    .action((_options: unknown, command: Command) => {
      const io = deps.makeIo(optionsOf(command))
      for (const [name, file] of files())
        io.out(`${name.padEnd(7)} ${file}${existsSync(file) ? '' : '  (not there)'}\n`)
      end(EXIT.ok)
    })

  config
    .command('show')
    .description('Prints the merged configuration as it would be sent, or what is wrong with it.')
    .option('--json', 'print the policy as JSON')
    .addHelpText('after', '\nExample:\n  switchyard config show --json')
    .action((_options: unknown, command: Command) => {
      const options = optionsOf<{ json?: boolean }>(command)
      const io = deps.makeIo(options)
      const loaded = loadConfig({ cwd: process.cwd() })
      if (!loaded.ok) throw new CommandStop(EXIT.usage, loaded.error.message)
      const policy = policyOf(loaded.value, undefined)
      if (!policy.ok) throw new CommandStop(EXIT.usage, policy.error.message)
      const advice = policyAdvice(policy.value, loaded.value.layers, loaded.value.origin).map((finding) =>
        renderFindings([finding]),
      )
      for (const notice of [...loaded.value.notices, ...advice])
        io.err(`${io.paint.yellow('note')}: ${notice}\n`)
      const { classification, routing, privacy, tools } = policy.value
      const { preferences, encryptSessions } = loaded.value
      const local_preferences = { ...preferences, encrypt_sessions: encryptSessions }
      const shown = { classification, routing, privacy, tools, local_preferences }
      io.out(options.json ? `${JSON.stringify(policy.value, null, 2)}\n` : stringify(onlySet(shown)))
      end(EXIT.ok)
    })

  config
    .command('init')
    .description('Writes a configuration file to start from.')
    .option('--model <provider/model>', 'the model of the default route')
    .option('--project', 'write the file of the current folder instead of the global one')
    .option('--force', 'replace a file that is there')
    .addHelpText('after', '\nExample:\n  switchyard config init --model ollama/qwen3:8b')
    .action((_options: unknown, command: Command) => {
      const options = optionsOf<{ model?: string; project?: boolean; force?: boolean }>(command)
      const io = deps.makeIo(options)
      if (options.model !== undefined && !ModelReference.safeParse(options.model).success)
        throw new CommandStop(EXIT.usage, notAModel(options.model))
      const file = options.project ? projectConfigPath(here()) : globalConfigPath()
      if (existsSync(file) && !options.force)
        throw new CommandStop(EXIT.usage, `${file} is there already; --force replaces it`)
      mkdirSync(path.dirname(file), { recursive: true, mode: 0o700 })
      writeFileSync(file, configTemplate(options.model))
      io.err(`wrote ${file}\n`)
      end(EXIT.ok)
    })

  config
    .command('publish')
    .description(
      'Tells the router the merged configuration of the current folder. It holds for what a device asks for in a session that has not run on a computer; later changes of the files have to be published again.',
    )
    .addHelpText('after', '\nExample:\n  switchyard config publish')
    .action(async (_options: unknown, command: Command) => {
      const loaded = loadConfig({ cwd: process.cwd() })
      if (!loaded.ok) throw new CommandStop(EXIT.usage, loaded.error.message)
      const policy = policyOf(loaded.value, undefined)
      if (!policy.ok) throw new CommandStop(EXIT.usage, policy.error.message)
      const { io, client } = await openClient(deps, command)
      for (const notice of loaded.value.notices) io.err(`${io.paint.yellow('note')}: ${notice}\n`)
      const local_preferences = loaded.value.preferences
      must(await client.defaultPolicy.put({ policy: policy.value, local_preferences }))
      io.err('published; prompts from a device use it in sessions that have not run yet\n')
      end(EXIT.ok)
    })
}

const here = (): string => realpathSync(process.cwd())
const files = (): [string, string][] => [
  ['global', globalConfigPath()],
  ['project', projectConfigPath(here())],
]

/** TOML has no null; what is unset is left out, and so is a table that holds nothing. */
function onlySet(value: object): object {
  return JSON.parse(JSON.stringify(value, (_key, inner) => (isUnset(inner) ? undefined : inner)))
}

const isUnset = (value: unknown): boolean =>
  value === null || (typeof value === 'object' && !Array.isArray(value) && Object.keys(value).length === 0)
