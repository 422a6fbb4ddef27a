import { realpath } from 'node:fs/promises'
import type { SwitchyardClient } from '../client/client.ts'
import { driveRun, type RunEvent, type RunOutcome } from '../client/drive.ts'
import type { ClientFailure } from '../client/failure.ts'
import type { ToolRunner } from '../client/tool-runner.ts'
import { runTool } from '../host/tools/run-tool.ts'
import type { ExecuteRequest, LocalPreferences } from '../protocol/execution/execute.ts'
import { ModelReference } from '../protocol/execution/ids.ts'
import type { ExecutePolicy, TaskIntent } from '../protocol/execution/policy.ts'
import { err, ok, type Result } from '../protocol/result.ts'
import { type ApproveMode, makeApprover } from './approver.ts'
import { EXIT, exitCodeOf, exitCodeOfRun } from './exit-code.ts'
import { failureText } from './failure-text.ts'
import type { CliIo } from './io.ts'
import { notAModel } from './model-reference.ts'
import { loadConfig } from './policy.ts'
import { oneLine, printable } from './printable.ts'
import { providerKeysFor } from './provider-keys.ts'
import { type RunFacts, runRemedy } from './run-remedy.ts'
import { buildRunRequest } from './run-request.ts'
import { usageLine } from './run-summary.ts'
import { JsonView, type RunView, TextView } from './run-view.ts'

export type RunTaskOptions = {
  client: SwitchyardClient
  /** The workspace. */
  cwd: string
  prompt: string
  policy: ExecutePolicy
  /** Absent: what the configuration of `cwd` says. */
  localPreferences?: LocalPreferences
  /** Absent: a new session. */
  sessionId?: string
  /** Of a new session; else cut from the prompt. */
  title?: string
  /** `provider/model`: bypasses routing, never the privacy floor. */
  explicitModel?: string
  command?: TaskIntent
  /** Attached besides the `@path` words of the prompt. */
  files?: string[]
  /** What happens to `ask` calls and gates; without a terminal, `ask` declines them. */
  approve: ApproveMode
  io: CliIo
  /** Stops the run. */
  signal?: AbortSignal
  /** One JSON object per line on stdout instead of text. */
  json?: boolean
}

export type RunTaskResult = {
  /** Empty when no session could be made. */
  sessionId: string
  status: 'completed' | 'idle' | 'error'
  /** Calls that were answered, declined ones included. */
  toolCalls: number
  exitCode: number
}

const MAX_TITLE_CHARS = 60

/**
 * Carries one prompt from the command line to its end: collects the workspace, makes or continues a session, runs
 * tools on this machine, asks where the policy says so, and shows all of it. Every failure is shown and becomes an
 * exit code.
 */
export async function runTask(options: RunTaskOptions): Promise<RunTaskResult> {
  const { client, io, signal } = options
  const prepared = await prepare(options)
  if (!prepared.ok) return refuse(options, prepared.error, EXIT.usage)
  const { request, root } = prepared.value
  client.useProviderKeys(providerKeysFor(options.policy, request.input.explicit_model ?? undefined))

  const session = await ensureSession(options, root)
  if (!session.ok) return refuse(options, failureText(session.error), exitCodeOf(session.error))
  const sessionId = session.value
  const view: RunView = options.json ? new JsonView(io) : new TextView(io)
  if (options.json) io.out(`${JSON.stringify({ type: 'session', session_id: sessionId })}\n`)

  const stop = new AbortController()
  const stopped = signal ? AbortSignal.any([signal, stop.signal]) : stop.signal
  const approver = makeApprover({
    mode: options.approve,
    root,
    io,
    preferences: request.local_preferences,
    showsPlans: !options.json && io.outIsTty,
    onInterrupt: () => stop.abort(),
  })
  let outcome: RunOutcome = { status: 'idle', stopped: true }
  let toolCalls = 0
  let turns = 0
  let declined: RunFacts['declined']
  let unasked = false
  const run = driveRun({
    client,
    sessionId,
    request,
    approver,
    tools: localTools(root, options.policy),
    signal: stopped,
    onReconnect: ({ number, reason }) => view.note(`connection lost (${reason}), attempt ${number}…`),
  })
  for await (const event of run) {
    if (event.type === 'tool_finished') toolCalls++
    if (event.type === 'turn_end') turns++
    if (event.type === 'gate_decided' && event.decision.decision === 'rejected') declined = event.approval
    if (isRejection(event)) unasked = options.approve === 'ask' && !io.isTty
    if (event.type === 'run_ended') outcome = event.outcome
    view.show(event)
  }
  const exitCode = exitCodeOfRun(outcome)
  if (options.json) reportJson(io, { sessionId, outcome, toolCalls, exitCode })
  else {
    const attached = request.workspace.referenced_paths
    await reportText(options, { sessionId, outcome, turns, view, declined, unasked, attached, toolCalls })
  }
  return { sessionId, status: outcome.status, toolCalls, exitCode }
}

type Prepared = { request: ExecuteRequest; root: string }

async function prepare(options: RunTaskOptions): Promise<Result<Prepared, string>> {
  const { cwd, prompt, policy, explicitModel, command, files } = options
  if (prompt.trim() === '') return err('the prompt is empty')
  const model = explicitModel === undefined ? undefined : ModelReference.safeParse(explicitModel)
  if (model && !model.success) return err(notAModel(explicitModel ?? ''))
  const root = await realpath(cwd).catch(() => undefined)
  if (root === undefined) return err(`the folder ${cwd} does not exist`)
  const preferences = options.localPreferences ?? preferencesOf(cwd)
  if (typeof preferences === 'string') return err(preferences)
  const request = await buildRunRequest({
    root,
    prompt,
    policy,
    preferences,
    files: files ?? [],
    ...(model ? { explicitModel: model.data } : {}),
    ...(command === undefined ? {} : { command }),
  })
  return request.ok ? ok({ request: request.value, root }) : request
}

/** A restriction such as `local_only` must not be lost because the caller left the preferences out. */
function preferencesOf(cwd: string): LocalPreferences | string {
  const config = loadConfig({ cwd })
  return config.ok ? config.value.preferences : config.error.message
}

async function ensureSession(options: RunTaskOptions, root: string): Promise<Result<string, ClientFailure>> {
  if (options.sessionId !== undefined) return ok(options.sessionId)
  const title = options.title ?? oneLine(options.prompt, MAX_TITLE_CHARS)
  const created = await options.client.sessions.create(
    { title, scope: root },
    { idempotencyKey: crypto.randomUUID(), ...(options.signal ? { signal: options.signal } : {}) },
  )
  return created.ok ? ok(created.value.id) : created
}

const localTools = (root: string, policy: ExecutePolicy): ToolRunner => ({
  run: (call, signal) =>
    runTool(call.name, call.arguments, {
      root,
      signal,
      restrictedPaths: [
        ...policy.privacy.restricted_paths,
        ...(policy.privacy.remote?.blocked_paths ?? []),
        ...policy.routing.rules.filter((rule) => rule.local_only).flatMap((rule) => rule.paths),
      ],
    }),
})

function refuse({ io, json, sessionId }: RunTaskOptions, message: string, exitCode: number): RunTaskResult {
  io.err(`${io.paint.red('error')}: ${printable(message)}\n`)
  const result: RunTaskResult = { sessionId: sessionId ?? '', status: 'error', toolCalls: 0, exitCode }
  if (json) {
    const line = { type: 'run_ended', status: 'error', message, tool_calls: 0, exit_code: exitCode }
    io.out(`${JSON.stringify(line)}\n`)
  }
  return result
}

type Ended = { sessionId: string; outcome: RunOutcome }

function reportJson(io: CliIo, ended: Ended & { toolCalls: number; exitCode: number }): void {
  const { outcome, sessionId, toolCalls, exitCode } = ended
  const line = {
    type: 'run_ended',
    session_id: sessionId,
    status: outcome.status,
    ...(outcome.status === 'idle' ? { stopped: outcome.stopped } : {}),
    ...(outcome.status === 'error' ? { failure: outcome.failure } : {}),
    tool_calls: toolCalls,
    exit_code: exitCode,
  }
  io.out(`${JSON.stringify(line)}\n`)
}

const isRejection = (event: RunEvent): boolean =>
  (event.type === 'gate_decided' && event.decision.decision === 'rejected') ||
  (event.type === 'tool_finished' && event.result.decision === 'rejected')

type Shown = Pick<RunFacts, 'declined' | 'attached' | 'toolCalls'> & {
  turns: number
  view: RunView
  /** Something was declined because nobody could be asked. */
  unasked: boolean
}

async function reportText(
  options: RunTaskOptions,
  { sessionId, outcome, turns, view, unasked, ...happened }: Ended & Shown,
): Promise<void> {
  const { io, client } = options
  if (outcome.status === 'error') {
    const { failure } = outcome
    const { approve } = options
    const remedy = runRemedy(failure, { ...happened, sessionId, approve, isTty: io.isTty })
    io.err(`${io.paint.red('error')}: ${printable(failureText(failure, remedy))}\n`)
  }
  if (outcome.status === 'idle')
    view.note(
      outcome.stopped ? 'stopped' : 'the run ended without an answer (declined, or stopped elsewhere)',
    )
  // Where the run failed for it, the remedy says so.
  if (unasked && outcome.status !== 'error')
    view.note('without a terminal, --yes approves what would be asked')
  if (turns > 1 && outcome.status === 'completed') {
    // The line above counts the last model call only; the run had several.
    const usage = await client.usage(sessionId)
    if (usage.ok) view.note(`session so far: ${usageLine(usage.value.total)}`)
  }
  if (options.sessionId === undefined) view.note(`session ${sessionId}: go on with --session ${sessionId}`)
}
