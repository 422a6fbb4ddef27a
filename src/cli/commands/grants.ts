import type { Command } from 'commander'
import type { Grant } from '../../protocol/execution/turn.ts'
import { type CommandDeps, must, openClient, requireId } from '../command-context.ts'
import { EXIT } from '../exit-code.ts'
import { oneLine } from '../printable.ts'

/** Longest line of a path; paths are for people here, `--json` has them whole. */
const MAX_PATH_CHARS = 200

/** `grants [list] | revoke`. */
export function addGrantCommands(program: Command, deps: CommandDeps, end: (exitCode: number) => void): void {
  const grants = program
    .command('grants')
    .summary('list and revoke what you allowed for the rest of a run')
    .description(
      'Works with what you allowed for the rest of a run: which provider may see which files, and which model may cost more than a rule allows. A grant ends with its run.',
    )
    .addHelpText(
      'after',
      `
Examples:
  switchyard grants 0197d0a2-6c1e-7c52-9a55-0c6a6f1d2b11
  switchyard grants revoke 0197d0a2-6c1e-7c52-9a55-0c6a6f1d2b11 0197d0a2-6c1e-7c52-9a55-0c6a6f1d2b12`,
    )

  const open = <T extends object>(command: Command) => openClient<T>(deps, command)

  grants
    .command('list <session>', { isDefault: true })
    .description('Lists the grants of the current run of a session, each with its files or its price.')
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExample:\n  switchyard grants list 0197d0a2-6c1e-7c52-9a55-0c6a6f1d2b11')
    .action(async (typed: string, _options: unknown, command: Command) => {
      const session = requireId(typed, 'session')
      const { options, io, client } = await open<{ json?: boolean }>(command)
      const { grants: held = [] } = must(await client.currentRun(session))
      if (options.json) io.out(`${JSON.stringify(held, null, 2)}\n`)
      else for (const grant of held) io.out(grantLines(grant))
      if (held.length === 0 && !options.json) io.err('nothing is granted\n')
      end(EXIT.ok)
    })

  grants
    .command('revoke <session> <grant>')
    .description('Takes a grant back, also while a model is at work: its next call is asked about again.')
    .addHelpText(
      'after',
      '\nExample:\n  switchyard grants revoke 0197d0a2-6c1e-7c52-9a55-0c6a6f1d2b11 0197d0a2-6c1e-7c52-9a55-0c6a6f1d2b12',
    )
    .action(async (typedSession: string, typedGrant: string, _options: unknown, command: Command) => {
      const session = requireId(typedSession, 'session')
      const grant = requireId(typedGrant, 'grant')
      const { io, client } = await open(command)
      must(await client.revokeGrant(session, grant))
      io.err(`revoked ${grant}\n`)
      end(EXIT.ok)
    })
}

/** The grant on one line, as the question showed it; then what may be seen, if that is what it is about. */
function grantLines({ id, kind, provider, model, paths, rule = '', up_to: upTo }: Grant): string {
  if (kind === 'cost_limit') {
    const price = upTo === undefined ? 'what nobody knows' : `up to ${upTo} USD`
    const called = oneLine(`${provider}/${model}`, MAX_PATH_CHARS)
    return `${id}  ${called} may cost ${price} a call, beyond the limit of rule ${oneLine(rule, MAX_PATH_CHARS)}\n`
  }
  const files = paths.length === 0 ? ['(no files)'] : paths.map((path) => oneLine(path, MAX_PATH_CHARS))
  return `${id}  ${oneLine(provider, MAX_PATH_CHARS)} may see the prompt and:\n${files.map((file) => `  ${file}\n`).join('')}`
}
