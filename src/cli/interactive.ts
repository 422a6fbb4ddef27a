import type { SwitchyardClient } from '../client/client.ts'
import { ModelReference } from '../protocol/execution/ids.ts'
import type { ExecutePolicy, TaskIntent } from '../protocol/execution/policy.ts'
import type { EnvelopeVersion } from '../protocol/execution/sealed.ts'
import { type Clock, WALL_CLOCK } from './clock.ts'
import { DeviceRuns } from './devices/device-runs.ts'
import { LiveDevices } from './devices/live-devices.ts'
import { EXIT } from './exit-code.ts'
import { failureText } from './failure-text.ts'
import { Following } from './following.ts'
import { withInterrupts } from './interrupts.ts'
import type { CliIo, TypedLine } from './io.ts'
import { notAModel } from './model-reference.ts'
import { openUsage } from './opened-usage.ts'
import { oneLine, printable } from './printable.ts'
import { fillTemplate, loadPromptTemplates, templateNote } from './prompt-templates.ts'
import { usageLine } from './run-summary.ts'
import { runTask } from './run-task.ts'
import { SessionKeys } from './session-keys.ts'
import { tellUnsent, withTypedWords } from './typed-words.ts'

export type InteractiveOptions = {
  client: SwitchyardClient
  /** The workspace. */
  cwd: string
  policy: ExecutePolicy
  /** Absent: the first prompt begins a session. */
  sessionId?: string
  /** The form in which new sessions are encrypted, null for plain text. Absent: what the configuration says. */
  encrypt?: EnvelopeVersion | null
  /** What was found out about the session before. */
  keys?: SessionKeys
  io: CliIo
  /** What a paired device approves runs here without another question (D46). */
  remoteApprove?: boolean
  /** Whether to follow what devices do in the session (D38). */
  follows?: boolean
  /** Absent: that of the wall. */
  clock?: Clock
}

const HELP = `Type what you want done; every line goes to the same session. @path attaches a file.
  /model REF|auto   use one model (provider/model), or let the rules decide
  /usage            tokens and cost of this session
  /new              begin a new session
  /pair             pair a phone or another device, by a code that is shown
  /requests         let devices ask to be paired for ten minutes; who does is shown at the prompt,
                    and /accept ID or /deny ID answers
  /NAME words…      use a prompt template (\`switchyard prompts --help\` says how to write one)
  /quit             leave (also Ctrl-C or Ctrl-D at the prompt)
During a run: what you type goes to the model at once, and cuts what it is saying; a tool at work is
finished first. Ctrl-C stops the run.
`

/** Words behind the slash that no template can take; it is reached by `run --prompt` then. */
const COMMANDS: ReadonlySet<string> = new Set([
  ...['help', 'model', 'usage', 'new', 'quit', 'exit'],
  ...['pair', 'requests', 'accept', 'deny'],
])
/** Where the explanations of the help begin, less their indent. */
const COMMAND_COLUMN_CHARS = 17
/** What the help shows of one description. */
const MAX_LISTED_CHARS = 80

/**
 * The conversation at a terminal: a prompt, a run, a prompt. A line that is typed while a run goes on is said to it; a
 * command waits for the prompt, and so does what comes too late.
 * @returns the exit code
 */
export async function runInteractive(options: InteractiveOptions): Promise<number> {
  const conversation = new Conversation(options)
  options.io.err(options.io.paint.dim('/help shows what can be typed here\n'))
  try {
    return await converse(conversation, options)
  } finally {
    await conversation.close()
  }
}

async function converse(conversation: Conversation, options: InteractiveOptions): Promise<number> {
  for (;;) {
    const typed = conversation.next() ?? (await conversation.prompt())
    if (typed.kind !== 'line') {
      options.io.err('\n')
      return EXIT.ok
    }
    const text = typed.text.trim()
    if (text === '/quit' || text === '/exit') return EXIT.ok
    if (text === '') continue
    if (isCommand(text)) await conversation.command(text)
    else await conversation.say(text)
  }
}

/** A path that begins a line is none. */
const isCommand = (text: string): boolean =>
  text.startsWith('/') && !text.slice(1).split(/\s/)[0]?.includes('/')

class Conversation {
  readonly #options: InteractiveOptions
  readonly #keys: SessionKeys
  readonly #devices: LiveDevices
  readonly #deviceRuns: DeviceRuns
  readonly #following: Following | undefined
  #sessionId: string | undefined
  #model: string | undefined
  /** What was typed during a run and is for the prompt. */
  #later: string[] = []

  constructor(options: InteractiveOptions) {
    this.#options = options
    this.#keys = options.keys ?? new SessionKeys()
    this.#sessionId = options.sessionId
    const { client, io, clock = WALL_CLOCK } = options
    this.#devices = new LiveDevices({ client, io, clock })
    this.#deviceRuns = new DeviceRuns(io)
    if (options.follows) this.#following = new Following(client, (news) => this.#deviceRuns.heard(news))
    if (options.sessionId !== undefined) this.#following?.of(options.sessionId)
  }

  /** Follows nothing any more. */
  async close(): Promise<void> {
    await this.#following?.close()
  }

  /** What is typed next; what devices do meanwhile is shown above it. */
  prompt(): Promise<TypedLine> {
    return this.#deviceRuns.during(() => this.#devices.during(() => this.#options.io.readLine('› ')))
  }

  /** What waits for the prompt, shown as if it were typed there. */
  next(): TypedLine | undefined {
    const text = this.#later.shift()
    if (text === undefined) return undefined
    this.#options.io.err(`› ${printable(text)}\n`)
    return { kind: 'line', text }
  }

  async say(prompt: string, intent?: TaskIntent): Promise<void> {
    const { client, cwd, policy, encrypt, io, remoteApprove = false } = this.#options
    const commands: string[] = []
    const typed = io.listen((line) => {
      if (!isCommand(line.trim())) return true
      commands.push(line)
      io.err(io.paint.dim(`${printable(line.trim())} waits for the end of the run\n`))
      return false
    })
    const { result, late } = await withTypedWords(typed, (heard) =>
      withInterrupts(io, (signal) =>
        runTask({
          client,
          cwd,
          policy,
          io,
          prompt,
          signal,
          approve: 'ask',
          remoteApprove,
          onPrompt: (text) => this.#deviceRuns.expect(text),
          keys: this.#keys,
          ...(this.#following ? { following: this.#following } : {}),
          ...heard,
          ...(encrypt === undefined ? {} : { encrypt }),
          ...(intent === undefined ? {} : { command: intent }),
          ...(this.#sessionId === undefined ? {} : { sessionId: this.#sessionId }),
          ...(this.#model === undefined ? {} : { explicitModel: this.#model }),
        }),
      ),
    )
    if (result.sessionId !== '') this.#sessionId = result.sessionId
    // After a stop or a failure they may mean something else than they did.
    const asPrompt = result.status === 'completed' && late.length > 0
    if (!asPrompt) tellUnsent(io, late)
    this.#later.push(...(asPrompt ? [late.join('\n')] : []), ...commands)
  }

  async command(text: string): Promise<void> {
    const { io } = this.#options
    const [name = '', ...rest] = text.split(/\s+/)
    switch (name) {
      case '/help':
        await this.#showHelp()
        break
      case '/new':
        this.#sessionId = undefined
        io.err(io.paint.dim('the next prompt begins a new session\n'))
        break
      case '/model':
        this.#chooseModel(rest.join(' '))
        break
      case '/usage':
        await this.#showUsage()
        break
      case '/pair':
        await this.#devices.pair()
        break
      case '/requests':
        await this.#devices.listen()
        break
      case '/accept':
        await this.#devices.accept(rest.join(' '))
        break
      case '/deny':
        await this.#devices.deny(rest.join(' '))
        break
      default:
        await this.#useTemplate(name.slice(1), rest)
    }
  }

  async #showHelp(): Promise<void> {
    const { cwd, io } = this.#options
    io.err(HELP)
    const templates = (await loadPromptTemplates(cwd)).filter(({ name }) => !COMMANDS.has(name))
    if (templates.length > 0) io.err('Prompt templates:\n')
    for (const { name, description } of templates) {
      const command = `/${name}`.padEnd(COMMAND_COLUMN_CHARS)
      io.err(`${`  ${command} ${oneLine(description, MAX_LISTED_CHARS)}`.trimEnd()}\n`)
    }
  }

  async #useTemplate(name: string, words: readonly string[]): Promise<void> {
    const { cwd, io } = this.#options
    const template = (await loadPromptTemplates(cwd)).find((one) => one.name === name)
    if (!template) {
      io.err(`${io.paint.yellow('unknown command')} /${printable(name)}; /help lists them\n`)
      return
    }
    const filled = fillTemplate(template, words)
    if (!filled.ok) {
      io.err(`${io.paint.red('error')}: ${printable(filled.error)}\n`)
      return
    }
    io.err(io.paint.dim(`${printable(templateNote(template))}\n`))
    await this.say(filled.value.prompt, filled.value.command)
  }

  #chooseModel(reference: string): void {
    const { io } = this.#options
    if (reference === 'auto') this.#model = undefined
    else if (reference !== '') {
      const parsed = ModelReference.safeParse(reference)
      if (parsed.success) this.#model = parsed.data
      else io.err(`${io.paint.yellow('not changed')}: ${notAModel(reference)}\n`)
    }
    io.err(io.paint.dim(`model: ${this.#model ?? 'auto (the rules decide)'}\n`))
  }

  async #showUsage(): Promise<void> {
    const { client, io } = this.#options
    if (this.#sessionId === undefined) {
      io.err(io.paint.dim('nothing used yet\n'))
      return
    }
    const told = await client.usage(this.#sessionId)
    if (!told.ok) {
      io.err(`${io.paint.red('error')}: ${failureText(told.error)}\n`)
      return
    }
    const { usage } = await openUsage(client, this.#keys, this.#sessionId, told.value)
    for (const model of usage.by_model)
      io.err(`${model.provider}/${model.model}  ${model.request_count} × · ${usageLine(model)}\n`)
    io.err(`total  ${usageLine(usage.total)}\n`)
  }
}
