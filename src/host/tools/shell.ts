import { type ChildProcess, spawn } from 'node:child_process'
import { type ToolArguments, textArgument } from './arguments.ts'
import { OutputWindow } from './output-window.ts'
import { failedOutput, formatBytes, type ToolOutput } from './tool-output.ts'

/** Long enough for a test suite, short enough that a command which waits for input does not hold a run for ever. */
export const SHELL_TIMEOUT_MS = 120_000
/** Between the request to end and the kill. */
const KILL_GRACE_MS = 2_000
/** How long the pipes of an ended command may stay open, held by what it left running. */
const PIPE_GRACE_MS = 500

export type ShellOptions = { timeoutMs?: number; signal?: AbortSignal }

type Ending = { kind: 'exited' } | { kind: 'timed_out' } | { kind: 'stopped' }

/**
 * `shell` {command}: runs a command line with `/bin/sh` in the workspace root, without input. The command leads a
 * process group of its own, which is ended as a whole: at the time limit, when the run is stopped, and also after the
 * command's own end, so that nothing it left in the background outlives it. A non-zero exit is an error (EC 25.3).
 */
export async function shellTool(
  root: string,
  args: ToolArguments,
  options: ShellOptions = {},
): Promise<ToolOutput> {
  const command = textArgument(args, 'command')
  if (!command.ok) return failedOutput(command.error.message)
  if (command.value.includes('\0')) return failedOutput('the command holds a NUL character')
  if (options.signal?.aborted) return failedOutput('Stopped before it ran.')
  const timeoutMs = options.timeoutMs ?? SHELL_TIMEOUT_MS
  const output = new OutputWindow()
  const child = spawn('/bin/sh', ['-c', command.value], {
    cwd: root,
    env: withoutSecrets(process.env),
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  })
  child.stdout.on('data', (chunk: Buffer) => output.add(chunk))
  child.stderr.on('data', (chunk: Buffer) => output.add(chunk))
  const started = await startOf(child)
  if (started !== undefined) return failedOutput(`the shell could not be started: ${started}`)
  const ending = await endOf(child, timeoutMs, options.signal)
  return describe(child, ending, output, timeoutMs)
}

function startOf(child: ChildProcess): Promise<string | undefined> {
  return new Promise((resolve) => {
    child.once('spawn', () => resolve(undefined))
    child.once('error', (error) => resolve(error.message))
  })
}

async function endOf(
  child: ChildProcess,
  timeoutMs: number,
  signal: AbortSignal | undefined,
): Promise<Ending> {
  const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()))
  const closed = new Promise<void>((resolve) => child.once('close', () => resolve()))
  let ending: Ending = { kind: 'exited' }
  let kill: ReturnType<typeof setTimeout> | undefined
  const end = (how: Ending) => {
    if (ending.kind !== 'exited') return
    ending = how
    signalGroup(child, 'SIGTERM')
    kill = setTimeout(() => signalGroup(child, 'SIGKILL'), KILL_GRACE_MS)
  }
  const limit = setTimeout(() => end({ kind: 'timed_out' }), timeoutMs)
  const stop = () => end({ kind: 'stopped' })
  signal?.addEventListener('abort', stop, { once: true })
  // Stopped while it was starting: nobody will tell again.
  if (signal?.aborted) stop()
  await exited
  clearTimeout(limit)
  clearTimeout(kill)
  signal?.removeEventListener('abort', stop)
  // What the command left running holds the pipes open; what it wrote before its end has arrived within the grace.
  let grace: ReturnType<typeof setTimeout> | undefined
  const patience = new Promise<void>((resolve) => {
    grace = setTimeout(resolve, PIPE_GRACE_MS)
  })
  await Promise.race([closed, patience])
  clearTimeout(grace)
  signalGroup(child, 'SIGKILL')
  child.stdout?.destroy()
  child.stderr?.destroy()
  return ending
}

/** The group may be gone already, which is what is wanted; macOS says EPERM of one whose members are all dead. */
const GONE: ReadonlySet<unknown> = new Set(['ESRCH', 'EPERM'])

function signalGroup(child: ChildProcess, signal: NodeJS.Signals): void {
  if (child.pid === undefined) return
  try {
    process.kill(-child.pid, signal)
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && GONE.has(error.code))) throw error
  }
}

function describe(child: ChildProcess, ending: Ending, output: OutputWindow, timeoutMs: number): ToolOutput {
  const text = output.text()
  const body = text === '' ? '(no output)' : text.endsWith('\n') ? text : `${text}\n`
  const size = formatBytes(output.totalBytes)
  if (ending.kind === 'timed_out') {
    const seconds = timeoutMs / 1000
    return {
      content: `${body}\n[ended after the time limit of ${seconds} s]`,
      isError: true,
      summary: `time limit, ${size}`,
    }
  }
  if (ending.kind === 'stopped')
    return { content: `${body}\n[stopped by the user]`, isError: true, summary: `stopped, ${size}` }
  if (child.exitCode === 0) return { content: body, isError: false, summary: `exit 0, ${size}` }
  const how =
    child.exitCode === null ? `ended by ${child.signalCode ?? 'a signal'}` : `exit ${child.exitCode}`
  return { content: `${body}\n[${how}]`, isError: true, summary: `${how}, ${size}` }
}

const SECRET_NAMES = /^(ANTHROPIC|OPENAI|GEMINI|GOOGLE)_API_KEY$|^SWITCHYARD_|^PROVIDER_[A-Z0-9_]+_API_KEY$/

/** The environment without the keys that this program uses: a command's output goes to whichever model is routed to. */
export function withoutSecrets(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(env).filter(([name]) => !SECRET_NAMES.test(name)))
}
