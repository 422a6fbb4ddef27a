import type { RunEvent } from '../client/drive.ts'
import { withoutSealing } from '../client/sealing.ts'
import type { ToolRequest } from '../protocol/execution/turn.ts'
import { failureText } from './failure-text.ts'
import type { CliIo } from './io.ts'
import { oneLine, printable, printableAnswer } from './printable.ts'
import { endingLine, routingLine, usageLine } from './run-summary.ts'

/** Shows a run as it goes. */
export type RunView = { show(event: RunEvent): void; note(text: string): void }

/** The widest main argument of a tool line; a terminal line with its size beside it. */
const MAX_ARGUMENT_CHARS = 100

/** The answer on stdout as it comes; one line per tool call, the route and the usage on stderr. */
export class TextView implements RunView {
  readonly #io: CliIo
  /** The text of the present turn that was shown already. */
  #shown = ''
  #openLine = false
  #openTool = false

  constructor(io: CliIo) {
    this.#io = io
  }

  show(event: RunEvent): void {
    switch (event.type) {
      case 'text_delta':
        this.#answer(event.delta)
        break
      case 'turn_restarted':
        this.#breakLine()
        this.#shown = ''
        this.note('the router lost this turn and begins it again; the text above is void')
        break
      case 'turn_end':
        this.#endTurn(event)
        break
      case 'tool_started':
        this.#beginTool(event.call)
        break
      case 'tool_finished':
        this.#endTool(event)
        break
      case 'gate_decided':
        if (event.decision.decision === 'rejected')
          this.note(`declined: ${event.decision.reason ?? 'by the user'}`)
        break
      case 'settled_elsewhere':
        // A tool line tells of an answer, and what follows of a decline.
        if (event.decision === 'approved') this.note('approved on another device')
        break
      case 'moved_elsewhere':
        this.note(
          event.why === 'words'
            ? 'new words from another device; the answer above was interrupted'
            : 'decided on another device',
        )
        break
      case 'words_sent':
        this.#breakLine()
        this.#shown = ''
        this.note(`${event.cut ? 'the answer above was interrupted; ' : ''}sent: ${quoted(event.texts)}`)
        break
      case 'words_not_sent':
        this.note(notSent(event))
        break
      default:
        break
    }
  }

  note(text: string): void {
    this.#closeTool()
    // On one screen the note gets a line of its own; a redirected answer must not get a line break for it.
    const apart = this.#openLine && this.#io.outIsTty ? '\n' : ''
    this.#io.err(`${apart}${this.#io.paint.dim(printable(text))}\n`)
  }

  #answer(text: string): void {
    if (text === '') return
    this.#closeTool()
    this.#shown += text
    this.#openLine = !text.endsWith('\n')
    this.#io.out(this.#io.outIsTty ? printableAnswer(text) : text)
  }

  #endTurn(event: Extract<RunEvent, { type: 'turn_end' }>): void {
    // After a resumption only the end may have come; the answer is in it.
    const whole = wholeText(event)
    if (whole.startsWith(this.#shown)) this.#answer(whole.slice(this.#shown.length))
    if (event.status === 'completed') {
      this.#breakLine()
      const ending = endingLine(event.data)
      if (ending !== undefined) this.#io.err(`${this.#io.paint.yellow(ending)}\n`)
      this.#io.err(`${this.#io.paint.dim(printable(routingLine(event.data)))}\n`)
      this.#io.err(`${this.#io.paint.dim(printable(usageLine(event.data.usage)))}\n`)
    }
    this.#breakLine()
    this.#shown = ''
  }

  #beginTool(call: ToolRequest): void {
    this.#breakLine()
    this.#openTool = true
    this.#io.err(`${this.#toolHead(call)} `)
  }

  #endTool({ call, result, summary }: Extract<RunEvent, { type: 'tool_finished' }>): void {
    const { paint } = this.#io
    if (!this.#openTool) this.#beginTool(call)
    this.#openTool = false
    const size = summary ?? `${result.content.length} characters`
    const words = oneLine(result.content, MAX_ARGUMENT_CHARS)
    let outcome = paint.dim(size)
    if (result.decision === 'rejected') outcome = paint.yellow(`declined: ${words}`)
    else if (result.is_error) outcome = paint.red(summary === 'failed' ? words : size)
    this.#io.err(`${outcome}\n`)
  }

  #toolHead(call: ToolRequest): string {
    const argument = oneLine(mainArgument(call), MAX_ARGUMENT_CHARS)
    return `${this.#io.paint.cyan('•')} ${printable(call.name)}${argument === '' ? '' : ` ${argument}`}`
  }

  /** Puts what follows on a line of its own. */
  #breakLine(): void {
    this.#closeTool()
    if (this.#openLine) this.#io.out('\n')
    this.#openLine = false
  }

  #closeTool(): void {
    if (this.#openTool) this.#io.err('\n')
    this.#openTool = false
  }
}

/** The events as one JSON object per line, for scripts. */
export class JsonView implements RunView {
  readonly #io: CliIo

  constructor(io: CliIo) {
    this.#io = io
  }

  show(event: RunEvent): void {
    // How it ended is reported with the exit code by whoever knows it.
    if (event.type === 'run_ended') return
    // What is sealed and opened passes between the client and the router; scripts get what the turn said.
    const shown = event.type === 'turn_end' ? withoutSealing(event) : event
    this.#io.out(`${JSON.stringify(shown)}\n`)
  }

  note(text: string): void {
    this.#io.err(`${printable(text)}\n`)
  }
}

/** What the model said in a turn, where its end tells: an answer, or a plan. */
function wholeText(event: Extract<RunEvent, { type: 'turn_end' }>): string {
  if (event.status === 'completed') return event.data.message.content
  if (event.status !== 'awaiting_approval' || event.data.approval.kind !== 'plan') return ''
  const content = event.data.approval.detail?.content
  return typeof content === 'string' ? content : ''
}

/** New words, on one line. */
export const quoted = (texts: readonly string[]): string => oneLine(texts.join(' '), MAX_ARGUMENT_CHARS)

/** Only a router that answers says for certain that it does not have them. */
function notSent({ texts, failure }: Extract<RunEvent, { type: 'words_not_sent' }>): string {
  const refused = failure.kind === 'http'
  return `${refused ? 'not taken' : 'perhaps not sent'}: ${quoted(texts)} (${failureText(failure)})`
}

/** What a call is about, for its line. */
function mainArgument({ arguments: args }: ToolRequest): string {
  for (const name of ['path', 'command', 'query']) {
    const value = args && Object.hasOwn(args, name) ? args[name] : undefined
    if (typeof value === 'string' && value !== '') return value
  }
  return args && Object.keys(args).length > 0 ? JSON.stringify(args) : ''
}
