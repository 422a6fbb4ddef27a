import { text } from 'node:stream/consumers'
import { type Command, Option } from 'commander'
import { ModelReference } from '../../protocol/execution/ids.ts'
import { TaskIntent } from '../../protocol/execution/policy.ts'
import type { EnvelopeVersion } from '../../protocol/execution/sealed.ts'
import type { ApproveMode } from '../approver.ts'
import {
  type CommandDeps,
  CommandStop,
  optionsOf,
  requireClient,
  requireId,
  routerUrl,
} from '../command-context.ts'
import { EXIT } from '../exit-code.ts'
import { Following } from '../following.ts'
import { runInteractive } from '../interactive.ts'
import { withInterrupts } from '../interrupts.ts'
import type { CliIo } from '../io.ts'
import { notAModel } from '../model-reference.ts'
import { loadConfig, policyOf } from '../policy.ts'
import { printable } from '../printable.ts'
import { fillPrompt, templateNote } from '../prompt-templates.ts'
import { providerKeysFor } from '../provider-keys.ts'
import { ENVELOPE_VERSION } from '../run-session.ts'
import { runTask } from '../run-task.ts'
import { tellUnsent, withTypedWords } from '../typed-words.ts'

type RunOptions = {
  model?: string
  session?: string
  cwd?: string
  yes?: boolean
  deny?: boolean
  remoteApprove?: boolean
  command?: TaskIntent
  prompt?: string
  file?: string[]
  title?: string
  encrypted?: boolean
  interop?: boolean
  input?: boolean
  json?: boolean
}

const EXAMPLES = `
Examples:
  switchyard run "why does @src/parse.ts drop the last row?"
  switchyard run --model ollama/qwen3:8b "explain this project"
  switchyard run --command plan "add retries to the client"
  switchyard run --prompt review src/parse.ts
  switchyard run --yes "run the tests and fix what fails"
  git diff | switchyard run -
  switchyard run --encrypted --title "the merger" "sum up @contract.md"
  switchyard run --session 0197d0a2-6c1e-7c52-9a55-0c6a6f1d2b11 "now the tests"
  switchyard run --json "summarise CHANGES.md" > events.jsonl

The answer goes to stdout, progress and questions to stderr. Without a terminal, whatever needs
approval is declined unless --yes is given; with --remote-approve it waits for a paired device instead.
Without a prompt, a conversation begins.

A line that you type while the run goes on is said to it at once: it cuts what the model is saying,
and a tool at work is finished first. (In the background, a run wants \`< /dev/null\`.)`

/** `switchyard run [prompt...]`: one prompt carried to its end, with the tools of this machine. */
export function addRunCommand(program: Command, deps: CommandDeps, end: (exitCode: number) => void): void {
  const given = new Set<'encrypted' | 'no-encrypted'>()
  program
    .command('run')
    .summary('carry out one prompt in a folder')
    .description(
      'Carries out one prompt in a folder: routes it, runs the tools it asks for, shows the answer.',
    )
    .argument('[prompt...]', 'what to do; `@path` attaches a file, `-` reads the prompt from stdin')
    .option('--model <provider/model>', 'use this model for the whole run instead of the rules')
    .option('--session <id>', 'go on in this session instead of a new one')
    .option('--cwd <dir>', 'the workspace (default: the current folder)')
    .addOption(new Option('--yes', 'approve everything that would be asked').conflicts('deny'))
    .addOption(new Option('--deny', 'decline everything that would be asked'))
    .option(
      '--remote-approve',
      'what a paired device approves runs here without another question, commands and changes of files as well',
    )
    .addOption(
      new Option(
        '--command <intent>',
        'what kind of task the first turn is; later turns are classified anew by what the run does',
      ).choices(TaskIntent.options),
    )
    .option('--prompt <name>', 'use a prompt template (see `switchyard prompts`); the words fill it')
    .option('--file <path>', 'attach a file of the workspace; may be given several times', collect)
    .addOption(
      new Option('--title <text>', 'title of the new session; it is stored in clear').conflicts('session'),
    )
    .addOption(
      new Option(
        '--encrypted',
        'make the new session an encrypted one; its key stays on this machine',
      ).conflicts('session'),
    )
    .addOption(
      new Option('--no-encrypted', 'a new session in plain text, whatever the configuration says').conflicts(
        'session',
      ),
    )
    .addOption(
      new Option(
        '--interop',
        'encrypt so that clients of other makers can read it, too (envelopes of version 1)',
      ).conflicts('session'),
    )
    .option(
      '--input',
      'without a terminal, too: say the lines of stdin to the run as they come, as if they were typed',
    )
    .option('--json', 'print the events as JSON lines on stdout')
    .addHelpText('after', EXAMPLES)
    .on('option:encrypted', () => given.add('encrypted'))
    .on('option:no-encrypted', () => given.add('no-encrypted'))
    .action(async (words: string[], _options: unknown, command: Command) => {
      // They set one value, of which the later option would win without a word.
      if (given.size > 1)
        throw new CommandStop(EXIT.usage, '--encrypted and --no-encrypted exclude each other')
      end(await run(words, optionsOf<RunOptions>(command), deps))
    })
}

/** Not a list option: that would swallow the prompt behind it. */
const collect = (path: string, earlier: string[] = []): string[] => [...earlier, path]

async function run(
  words: string[],
  options: ReturnType<typeof optionsOf<RunOptions>>,
  deps: CommandDeps,
): Promise<number> {
  const io = deps.makeIo(options)
  const url = routerUrl(options)
  const cwd = options.cwd ?? process.cwd()
  if (options.model !== undefined && !ModelReference.safeParse(options.model).success)
    throw new CommandStop(EXIT.usage, notAModel(options.model))
  const session = options.session === undefined ? {} : { sessionId: requireId(options.session, 'session') }
  const config = loadConfig({ cwd })
  if (!config.ok) throw new CommandStop(EXIT.usage, config.error.message)
  const encrypt = encryptionOf(options, config.value.encryptSessions)
  const policy = policyOf(config.value, options.model)
  if (!policy.ok) throw new CommandStop(EXIT.usage, policy.error.message)
  for (const notice of config.value.notices) io.err(`${io.paint.yellow('note')}: ${notice}\n`)
  const task = await taskOf(words, options, cwd, io)
  const client = await requireClient(url, io, providerKeysFor(policy.value, options.model))
  const remoteApprove = options.remoteApprove ?? false
  if (task === undefined) {
    const conversation = { client, cwd, policy: policy.value, encrypt, io, remoteApprove, follows: true }
    return runInteractive({ ...conversation, ...session })
  }
  const following = new Following(client)
  const { result, late } = await withTypedWords(
    io.isTty || options.input ? io.listen() : undefined,
    (heard) =>
      withInterrupts(io, (signal) =>
        runTask({
          client,
          cwd,
          prompt: task.prompt,
          policy: policy.value,
          localPreferences: config.value.preferences,
          encrypt,
          approve: approveMode(options),
          remoteApprove,
          following,
          io,
          signal,
          files: options.file ?? [],
          json: options.json ?? false,
          ...heard,
          ...session,
          ...(options.model === undefined ? {} : { explicitModel: options.model }),
          ...(task.command === undefined ? {} : { command: task.command }),
          ...(options.title === undefined ? {} : { title: options.title }),
        }),
      ),
  ).finally(() => following.close())
  tellUnsent(io, late)
  return result.exitCode
}

/**
 * What is to be done: the words, or a template that they fill, whose kind of task an option beats.
 * @returns undefined when a conversation is wanted
 */
async function taskOf(
  words: string[],
  { prompt: name, command, input }: RunOptions,
  cwd: string,
  io: CliIo,
): Promise<{ prompt: string; command?: TaskIntent } | undefined> {
  const chosen = command === undefined ? {} : { command }
  const fromStdin = words.length === 1 && words[0] === '-'
  if (input && (fromStdin || (words.length === 0 && name === undefined)))
    throw new CommandStop(EXIT.usage, '--input takes the lines of stdin: give the prompt as words')
  if (name !== undefined) {
    // Its words may be left out, so that without any stdin is not waited for.
    const filled = await fillPrompt(cwd, name, fromStdin ? [await text(process.stdin)] : words)
    if (!filled.ok) throw new CommandStop(EXIT.usage, filled.error)
    const { template, ...task } = filled.value
    io.err(io.paint.dim(`${printable(templateNote(template))}\n`))
    return { ...task, ...chosen }
  }
  if (words.length > 0 && !fromStdin) return { prompt: words.join(' '), ...chosen }
  if (!fromStdin && io.isTty) return undefined
  return { prompt: await text(process.stdin), ...chosen }
}

/** The form in which a new session is encrypted: the options beat the configuration. */
function encryptionOf({ encrypted, interop }: RunOptions, configured: boolean): EnvelopeVersion | null {
  const wanted = encrypted ?? configured
  if (interop && !wanted)
    throw new CommandStop(EXIT.usage, '--interop is about encrypted sessions: add --encrypted')
  if (!wanted) return null
  return interop ? INTEROP_VERSION : ENVELOPE_VERSION
}

/** What every client of the contract reads (D48). */
const INTEROP_VERSION: EnvelopeVersion = 1

function approveMode({ yes, deny }: RunOptions): ApproveMode {
  if (yes) return 'yes'
  return deny ? 'deny' : 'ask'
}
