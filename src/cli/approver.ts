import type { DeviceLine } from '../client/remote-follower.ts'
import type { Approver, Decision } from '../client/tool-runner.ts'
import { previewChange } from '../host/tools/run-tool.ts'
import type { LocalPreferences } from '../protocol/execution/execute.ts'
import type { PendingApproval, ToolRequest } from '../protocol/execution/turn.ts'
import { changeText } from './change-text.ts'
import type { CliIo } from './io.ts'
import { oneLine, printable, printableAnswer } from './printable.ts'

/** What happens where the policy says `ask`. */
export type ApproveMode = 'ask' | 'yes' | 'deny'

export type ApproverOptions = {
  mode: ApproveMode
  root: string
  io: CliIo
  preferences: LocalPreferences
  /** A plan has been streamed to the screen on which its question comes. */
  showsPlans: boolean
  /** What a paired device approves runs here without being asked about, commands and changes of files as well (D46). */
  remoteApprove?: boolean
  /** Who may be waited for where there is no terminal to ask on; used only with `remoteApprove`. */
  devices?: DeviceLine
  /** Called when the user presses Ctrl-C at a question: the run is to stop. */
  onInterrupt(): void
}

const APPROVED: Decision = { decision: 'approved' }
const DECLINED: Decision = { decision: 'rejected', reason: 'The user declined.' }
const INTERRUPTED: Decision = { decision: 'rejected', reason: 'The user stopped the run.' }
const DENY_MODE: Decision = {
  decision: 'rejected',
  reason: 'In this run nothing that needs approval is approved.',
}
const NO_TERMINAL: Decision = {
  decision: 'rejected',
  reason: 'There is no terminal to ask the user on, so what needs approval is declined.',
}

const NO_DEVICE: Decision = {
  decision: 'rejected',
  reason: 'There is no terminal to ask the user on and no device can be asked, so it is declined.',
}

/** Whether something was declined because there was nobody to ask. */
export const isUnasked = (reason: string | undefined): boolean =>
  reason === NO_TERMINAL.reason || reason === NO_DEVICE.reason

/** Tools that the `auto_apply` preference approves. */
const FILE_CHANGES: ReadonlySet<string> = new Set(['write_file', 'edit_file'])

/** What a stolen phone could do harm with: asked about on this machine, too, unless its owner has said otherwise (D46). */
const ACTS_HERE: ReadonlySet<string> = new Set([...FILE_CHANGES, 'shell'])

/**
 * Decides by mode, or asks on the terminal; without one, what would be asked waits for a device where the owner lets
 * devices decide and they can be reached, and is declined elsewhere.
 */
export function makeApprover(options: ApproverOptions): Approver {
  const { mode, io, preferences, showsPlans } = options
  const fixed = async (signal: AbortSignal): Promise<Decision | undefined> => {
    if (mode === 'yes') return APPROVED
    if (mode === 'deny') return DENY_MODE
    return io.isTty ? undefined : withoutTerminal(options, signal)
  }
  return {
    acceptsDevice: ({ name }) => mode !== 'deny' && (options.remoteApprove === true || !ACTS_HERE.has(name)),
    approveTool: async (call, signal) => {
      if (mode !== 'deny' && preferences.auto_apply && FILE_CHANGES.has(call.name)) return APPROVED
      return (await fixed(signal)) ?? askTool(options, call, signal)
    },
    decideGate: async (approval, signal) => {
      io.err(`${gateText(approval, io, showsPlans)}\n`)
      return (await fixed(signal)) ?? ask(options, 'Go on?', signal)
    },
  }
}

/** Undefined: a device is to be waited for. */
async function withoutTerminal(
  { io, remoteApprove, devices }: ApproverOptions,
  signal: AbortSignal,
): Promise<Decision | undefined> {
  if (!remoteApprove || !devices) return NO_TERMINAL
  if (await devices.reached(signal)) return undefined
  if (signal.aborted) return INTERRUPTED
  io.err(io.paint.dim('the gateway cannot be reached, so no device can be asked\n'))
  return NO_DEVICE
}

async function askTool(options: ApproverOptions, call: ToolRequest, signal: AbortSignal): Promise<Decision> {
  const { io, root } = options
  const { paint } = io
  if (call.decision === 'approved')
    io.err(paint.dim('approved on another device; this computer asks, too (--remote-approve spares that)\n'))
  const change = await previewChange(call.name, call.arguments, root)
  if (change && !change.ok) {
    // It would fail: the model hears why, and the user is not asked about nothing. It is not approved either, since
    // the file may change before the call runs.
    return { decision: 'rejected', reason: change.error.message }
  }
  if (change) {
    io.err(`${changeText(change.value, paint)}\n`)
    const verb = change.value.before === null ? 'Create' : 'Change'
    return ask(options, `${verb} ${oneLine(change.value.at.relative, 200)}?`, signal)
  }
  if (call.name === 'shell') {
    io.err(`${paint.bold('$')} ${printable(String(call.arguments?.command ?? ''))}\n`)
    return ask(options, 'Run this command?', signal)
  }
  io.err(`${paint.bold(printable(call.name))} ${printable(JSON.stringify(call.arguments ?? {}, null, 2))}\n`)
  return ask(options, `Run ${oneLine(call.name, 80)}?`, signal)
}

async function ask(options: ApproverOptions, question: string, signal: AbortSignal): Promise<Decision> {
  const { io, devices, onInterrupt } = options
  if (!io.isTty && devices) return waitForDevice(io, devices, question, signal)
  const answer = await io.confirm(question, signal)
  if (answer.kind === 'answer') return answer.value ? APPROVED : DECLINED
  // A question that a device has settled is taken away; only whoever sits here can stop the run at it.
  if (!signal.aborted) onInterrupt()
  return INTERRUPTED
}

/** What a device decides ends the question from outside; all that is said here is that nobody will. */
async function waitForDevice(
  io: CliIo,
  devices: DeviceLine,
  question: string,
  signal: AbortSignal,
): Promise<Decision> {
  io.err(`${io.paint.yellow('waiting for a paired device to decide')}: ${question} (Ctrl-C stops the run)\n`)
  const stop = Promise.withResolvers<void>()
  const stopped = () => stop.resolve()
  signal.addEventListener('abort', stopped, { once: true })
  if (signal.aborted) stopped()
  await Promise.race([stop.promise, devices.ended])
  signal.removeEventListener('abort', stopped)
  return signal.aborted ? INTERRUPTED : NO_DEVICE
}

/** What a gate asks for, from whatever the router tells; `detail` is display text (EC 29.12). */
function gateText({ kind, detail }: PendingApproval, { paint }: CliIo, showsPlans: boolean): string {
  const field = (name: string): string => {
    const value = detail && Object.hasOwn(detail, name) ? detail[name] : undefined
    return typeof value === 'string' || typeof value === 'number' ? printable(String(value)) : ''
  }
  const model = [field('provider'), field('model')].filter((part) => part !== '').join('/')
  switch (kind) {
    case 'remote_disclosure': {
      const paths = detail && Array.isArray(detail.paths) ? detail.paths : []
      const where = detail?.local === true ? 'local' : 'remote'
      const list = paths.filter((path) => typeof path === 'string').map((path) => `  ${printable(path)}`)
      return [
        `${paint.yellow('disclosure')}: the prompt and this context would be sent to ${model}, which is ${where}:`,
        ...(list.length > 0 ? list : ['  (no files)']),
      ].join('\n')
    }
    case 'cost_limit': {
      const currency = field('currency') || 'USD'
      const limit = `above the limit of ${field('limit') || '?'} ${currency}`
      if (field('reason') === 'price_unknown') {
        return `${paint.yellow('cost')}: the price of ${model} is unknown, and may be ${limit}; a yes holds for this run`
      }
      const range = `${field('estimated_min') || '?'} to ${field('estimated_max') || '?'} ${currency}`
      const upTo = field('up_to')
      const held = upTo === '' ? '' : `; a yes holds for calls of up to ${upTo} ${currency} in this run`
      return `${paint.yellow('cost')}: ${model} is estimated at ${range}, ${limit}${held}`
    }
    case 'plan': {
      const told = field('content')
      // An answer may hold marks that reorder or hide its text; what is decided on is then shown again, without them.
      const content = showsPlans && told === printableAnswer(String(detail?.content)) ? '' : told
      return `${paint.yellow('plan')}: ${content === '' ? 'the plan above waits for your word' : `\n${content}`}`
    }
  }
}
