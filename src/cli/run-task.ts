import { realpath } from 'node:fs/promises'
import type { SwitchyardClient } from '../client/client.ts'
import { driveRun, type RunEvent, type RunOutcome } from '../client/drive.ts'
import type { ToolRunner } from '../client/tool-runner.ts'
import type { Words } from '../client/words.ts'
import { runTool } from '../host/tools/run-tool.ts'
import type { ExecuteRequest, LocalPreferences } from '../protocol/execution/execute.ts'
import { ModelReference } from '../protocol/execution/ids.ts'
import type { ExecutePolicy, TaskIntent } from '../protocol/execution/policy.ts'
import type { EnvelopeVersion } from '../protocol/execution/sealed.ts'
import { err, ok, type Result } from '../protocol/result.ts'
import { type ApproveMode, isUnasked, makeApprover } from './approver.ts'
import { asksUser, askUser } from './ask-user.ts'
import { EXIT, exitCodeOf, exitCodeOfRun } from './exit-code.ts'
import { failureText } from './failure-text.ts'
import type { Following } from './following.ts'
import type { CliIo } from './io.ts'
import { GIVEN_UP_NOTE, lostNote } from './lost-texts.ts'
import { notAModel } from './model-reference.ts'
import { loadConfig } from './policy.ts'
import { printable } from './printable.ts'
import { providerKeysFor } from './provider-keys.ts'
import { type RunFacts, runRemedy } from './run-remedy.ts'
import { buildRunRequest } from './run-request.ts'
import { ENVELOPE_VERSION, sessionOfRun } from './run-session.ts'
import { usageLine } from './run-summary.ts'
import { JsonView, type RunView, TextView } from './run-view.ts'
import type { SessionKeys } from './session-keys.ts'

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
  /** The form in which a new session is encrypted, null for plain text. Absent: what the configuration says. */
  encrypt?: EnvelopeVersion | null
  /** What was found out about sessions before; a conversation hands it on. */
  keys?: SessionKeys
  /** Of a new session; else cut from the prompt, or without a word of it when the session is encrypted. */
  title?: string
  /** `provider/model`: bypasses routing, never the privacy floor. */
  explicitModel?: string
  command?: TaskIntent
  /** Attached besides the `@path` words of the prompt. */
  files?: string[]
  /** What happens to `ask` calls and gates; without a terminal, `ask` declines them or waits for a device. */
  approve: ApproveMode
  io: CliIo
  /** What a paired device approves runs here without another question (D46). */
  remoteApprove?: boolean
  /** Follows the session, so that nothing is asked that a device has settled (D05). */
  following?: Following
  /** Told of the prompt as it is sent, before it is. */
  onPrompt?(prompt: string): void
  /** What the user says while the run goes on. */
  words?: Words
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
  /** New words that came too late for the run. */
  unsent: string[]
  exitCode: number
}

/**
 * Carries one prompt from the command line to its end: collects the workspace, makes or continues a session, runs
 * tools on this machine, asks where the policy says so, and shows all of it. Every failure is shown and becomes an
 * exit code.
 */
export async function runTask(options: RunTaskOptions): Promise<RunTaskResult> {
  const { client, io, signal } = options
  const prepared = await prepare(options)
  if (!prepared.ok) return refuse(options, prepared.error, EXIT.usage)
  const { request, root, encrypt } = prepared.value
  client.useProviderKeys(providerKeysFor(options.policy, request.input.explicit_model ?? undefined))

  const session = await sessionOfRun(options, root, encrypt)
  if (!session.ok) return refuse(options, failureText(session.error), exitCodeOf(session.error))
  const { id: sessionId, sealer, lost } = session.value
  const view: RunView = options.json ? new JsonView(io) : new TextView(io)
  if (options.json) {
    const line = { type: 'session', session_id: sessionId, ...(sealer ? { key_id: sealer.keyId } : {}) }
    io.out(`${JSON.stringify(line)}\n`)
  }
  const missed = lostNote(lost)
  if (missed !== undefined) view.note(missed)

  const stop = new AbortController()
  const stopped = signal ? AbortSignal.any([signal, stop.signal]) : stop.signal
  const onInterrupt = () => stop.abort()
  const devices = options.following?.of(sessionId)
  const approver = makeApprover({
    mode: options.approve,
    remoteApprove: options.remoteApprove ?? false,
    ...(devices ? { devices } : {}),
    root,
    io,
    preferences: request.local_preferences,
    showsPlans: !options.json && io.outIsTty,
    onInterrupt,
  })
  options.onPrompt?.(request.input.text)
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
    tools: localTools(root, options.policy, (call, signal) => askUser({ io, onInterrupt }, call, signal)),
    ...(sealer ? { sealer } : {}),
    ...(devices ? { devices } : {}),
    ...(options.words ? { words: options.words } : {}),
    signal: stopped,
    onReconnect: ({ number, reason }) => view.note(`connection lost (${reason}), attempt ${number}…`),
  })
  for await (const event of run) {
    if (event.type === 'tool_finished') toolCalls++
    if (event.type === 'turn_end' && event.status !== 'awaiting_decrypt') turns++
    if (event.type === 'gate_decided' && event.decision.decision === 'rejected') declined = event.approval
    unasked ||= wasUnasked(event)
    if (event.type === 'run_ended') outcome = event.outcome
    view.show(event)
  }
  const exitCode = exitCodeOfRun(outcome)
  const unsent = options.words?.take() ?? []
  if (options.json) reportJson(io, { sessionId, outcome, toolCalls, unsent, exitCode })
  else {
    const attached = request.workspace.referenced_paths
    const facts = { sessionId, outcome, declined, attached, toolCalls, keyId: sealer?.keyId }
    await reportText(options, { ...facts, turns, view, unasked })
  }
  const notes = sealer ? keyNotes(sealer.keyId, outcome, options.sessionId === undefined) : []
  for (const note of notes) view.note(note)
  return { sessionId, status: outcome.status, toolCalls, unsent, exitCode }
}

type Prepared = { request: ExecuteRequest; root: string; encrypt: EnvelopeVersion | null }

async function prepare(options: RunTaskOptions): Promise<Result<Prepared, string>> {
  const { cwd, prompt, policy, explicitModel, command, files, io } = options
  if (prompt.trim() === '') return err('the prompt is empty')
  const model = explicitModel === undefined ? undefined : ModelReference.safeParse(explicitModel)
  if (model && !model.success) return err(notAModel(explicitModel ?? ''))
  const root = await realpath(cwd).catch(() => undefined)
  if (root === undefined) return err(`the folder ${cwd} does not exist`)
  // What restricts a run must not be lost because the caller left it out.
  const config =
    options.localPreferences === undefined || options.encrypt === undefined ? loadConfig({ cwd }) : undefined
  if (config && !config.ok) return err(config.error.message)
  const preferences = options.localPreferences ?? config?.value.preferences
  if (preferences === undefined) throw new Error('invariant broken: preferences that nobody gave')
  const request = await buildRunRequest({
    root,
    prompt,
    policy,
    preferences,
    files: files ?? [],
    canAsk: io.isTty,
    ...(model ? { explicitModel: model.data } : {}),
    ...(command === undefined ? {} : { command }),
  })
  if (!request.ok) return request
  const encrypt =
    options.encrypt === undefined && config?.value.encryptSessions
      ? ENVELOPE_VERSION
      : (options.encrypt ?? null)
  return ok({ request: request.value, root, encrypt })
}

const localTools = (root: string, policy: ExecutePolicy, ask: ToolRunner['run']): ToolRunner => ({
  asksUser,
  run: (call, signal) =>
    asksUser(call)
      ? ask(call, signal)
      : runTool(call.name, call.arguments, {
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
  const result: RunTaskResult = {
    sessionId: sessionId ?? '',
    status: 'error',
    toolCalls: 0,
    unsent: [],
    exitCode,
  }
  if (json) {
    const line = { type: 'run_ended', status: 'error', message, tool_calls: 0, exit_code: exitCode }
    io.out(`${JSON.stringify(line)}\n`)
  }
  return result
}

type Ended = { sessionId: string; outcome: RunOutcome }

function reportJson(io: CliIo, ended: Ended & Omit<RunTaskResult, 'status'>): void {
  const { outcome, sessionId, toolCalls, unsent, exitCode } = ended
  const line = {
    type: 'run_ended',
    session_id: sessionId,
    status: outcome.status,
    ...(outcome.status === 'idle' ? { stopped: outcome.stopped } : {}),
    ...(outcome.status === 'idle' && outcome.elsewhere ? { elsewhere: true } : {}),
    ...(outcome.status === 'error' ? { failure: outcome.failure } : {}),
    ...(outcome.status !== 'error' && outcome.unkept ? { unkept: outcome.unkept } : {}),
    tool_calls: toolCalls,
    ...(unsent.length > 0 ? { unsent } : {}),
    exit_code: exitCode,
  }
  io.out(`${JSON.stringify(line)}\n`)
}

const wasUnasked = (event: RunEvent): boolean =>
  (event.type === 'gate_decided' && isUnasked(event.decision.reason)) ||
  (event.type === 'tool_finished' && event.result.decision === 'rejected' && isUnasked(event.result.content))

type Shown = Pick<RunFacts, 'declined' | 'attached' | 'toolCalls'> & {
  turns: number
  view: RunView
  /** The key of an encrypted session. */
  keyId: string | undefined
  /** Something was declined because nobody could be asked. */
  unasked: boolean
}

async function reportText(
  options: RunTaskOptions,
  { sessionId, outcome, turns, view, unasked, keyId, ...happened }: Ended & Shown,
): Promise<void> {
  const { io, client } = options
  if (outcome.status === 'error') {
    const { failure } = outcome
    const { approve } = options
    const remedy = runRemedy(failure, { ...happened, sessionId, approve, isTty: io.isTty || !unasked })
    io.err(`${io.paint.red('error')}: ${printable(failureText(failure, remedy))}\n`)
  }
  if (outcome.status === 'idle') view.note(idleNote(outcome))
  if (outcome.status !== 'error' && outcome.unkept) {
    const why = printable(failureText(outcome.unkept))
    io.err(`${io.paint.red('error')}: what was said last is not kept in the session: ${why}\n`)
  }
  // Where the run failed for it, the remedy says so.
  if (unasked && outcome.status !== 'error')
    view.note('without a terminal, --yes approves what would be asked')
  if (turns > 1 && outcome.status === 'completed' && keyId === undefined) {
    // The line above counts the last model call only; the run had several. The router cannot add up what is sealed.
    const usage = await client.usage(sessionId)
    if (usage.ok) view.note(`session so far: ${usageLine(usage.value.total)}`)
  }
  if (options.sessionId !== undefined) return
  view.note(`session ${sessionId}: go on with --session ${sessionId}`)
}

function idleNote({ stopped, elsewhere }: Extract<RunOutcome, { status: 'idle' }>): string {
  if (stopped) return 'stopped'
  return elsewhere
    ? 'stopped on another device'
    : 'the run ended without an answer (declined, or stopped elsewhere)'
}

/** What the owner of an encrypted session has to know at the end of a run, scripts or not: it would show too late (U35). */
function keyNotes(keyId: string, outcome: RunOutcome, isNew: boolean): string[] {
  const copy = `the session is encrypted, and lost without its key: \`switchyard keys export ${keyId}\` gives you a copy`
  const gaveUp = outcome.status === 'error' && outcome.failure.kind === 'network'
  return [...(isNew ? [copy] : []), ...(gaveUp ? [GIVEN_UP_NOTE] : [])]
}
