import { statSync } from 'node:fs'
import type { Command } from 'commander'
import { type CommandDeps, CommandStop, optionsOf } from '../command-context.ts'
import { EXIT } from '../exit-code.ts'
import { oneLine, printable } from '../printable.ts'
import { loadPromptTemplates, type PromptTemplate } from '../prompt-templates.ts'

/** What a list shows of one description. */
const MAX_LISTED_CHARS = 120

const HELP = `
A template is a file .agents/prompts/NAME.md in the project or in your home folder; of two with one
name the project's is taken. $1 to $9 in it stand for single words, each of which must be given,
$ARGUMENTS for all of them, and @path attaches a file. It may begin with a front matter:

  ---
  description: Reviews a file
  command: review
  ---
  Review @$1 for mistakes. $ARGUMENTS

Its command says what kind of task the first turn of the run is, as run --command does; later turns
are classified anew by what the run does.

Examples:
  switchyard prompts
  switchyard run --prompt review src/parse.ts`

/** `switchyard prompts`: the prompt templates that `run --prompt` can use here. */
export function addPromptsCommand(
  program: Command,
  deps: CommandDeps,
  end: (exitCode: number) => void,
): void {
  program
    .command('prompts')
    .summary('list your prompt templates')
    .description('Lists the prompt templates of a folder and of your home folder.')
    .option('--cwd <dir>', 'the workspace (default: the current folder)')
    .option('--json', 'print JSON, with the texts in full')
    .addHelpText('after', HELP)
    .action(async (_options: unknown, command: Command) => {
      const options = optionsOf<{ cwd?: string; json?: boolean }>(command)
      const io = deps.makeIo(options)
      const cwd = options.cwd ?? process.cwd()
      if (!statSync(cwd, { throwIfNoEntry: false })?.isDirectory())
        throw new CommandStop(EXIT.usage, `the folder ${cwd} does not exist`)
      const templates = await loadPromptTemplates(cwd)
      if (options.json) io.out(`${JSON.stringify(templates, null, 2)}\n`)
      else for (const template of templates) io.out(`${templateLine(template)}\n`)
      if (templates.length === 0 && !options.json)
        io.err('there are no prompt templates; --help says how to write one\n')
      end(EXIT.ok)
    })
}

function templateLine({ name, description, command, folder, problem }: PromptTemplate): string {
  const parts = [name, oneLine(description, MAX_LISTED_CHARS), command ?? '', printable(folder)]
  if (problem !== undefined) parts.push(`cannot be used: ${printable(problem)}`)
  return parts.filter((part) => part !== '').join('  ')
}
