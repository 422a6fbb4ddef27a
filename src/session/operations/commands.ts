import { boundedOutput, hardBreaks } from '../../core/operations/command-output.ts'
import {
  aboutText,
  contextText,
  effortText,
  helpText,
  MCP_TEXT,
  modelText,
  NO_SETTINGS,
  perfText,
  SEALED_CONTEXT,
  statusText,
  tasksText,
  usageText,
} from '../../core/operations/command-texts.ts'
import { type Command, readCommand } from '../../core/operations/commands.ts'
import { effortName } from '../../core/operations/effort-name.ts'
import { changedSettings, chosenOf } from '../../core/operations/session-settings.ts'
import { readTitle } from '../../core/operations/title.ts'
import type { SelectionList } from '../../core/run/writes.ts'
import { sessionUsage } from '../../core/usage.ts'
import type { RemoteSessionSettings } from '../../protocol/remote/session-settings.ts'
import { ROUTER_VERSION } from '../../protocol/version.ts'
import { runsBegun } from '../../storage/session/checkpoint.ts'
import { countQueued, queuedHeads } from '../../storage/session/prompt-queue.ts'
import { saveSession } from '../../storage/session/session-row.ts'
import { eachCall, loadTurns } from '../../storage/session/turns.ts'
import type { SessionOperation } from '../rpc.ts'
import { type Decision, refused } from './decision.ts'
import type { OperationsDeps } from './ports.ts'
import { MAX_QUEUED_PROMPTS } from './prompts.ts'
import { sessionSettings } from './settings.ts'

/** Turns that `/perf` tells of, and among which `/context` looks for one that chose its context. */
const RECENT_TURNS = 5

/** Commands and the settings that some of them change (RF 20, 21). Nothing of their output enters the transcript. */
export class Commands {
  readonly #deps: OperationsDeps

  constructor(deps: OperationsDeps) {
    this.#deps = deps
  }

  settings(): RemoteSessionSettings | null {
    const { engine, session, sql } = this.#deps
    const { state, startedWith } = engine
    return sessionSettings(sql, { state, startedWith, chosen: session().settings })
  }

  setSettings({
    model,
    reasoning_effort: effort,
  }: Extract<SessionOperation, { type: 'set_session_settings' }>): Decision {
    return this.#change({ model, effort }, (settings) => ({ type: 'session_settings_updated', settings }))
  }

  execute({ command: text }: Extract<SessionOperation, { type: 'execute_command' }>): Decision {
    const read = readCommand(text)
    return read.ok ? this.#run(read.value) : refused(read.error)
  }

  #run(command: Command): Decision {
    switch (command.name) {
      case '/help':
        return shown(command, 'Remote commands', helpText())
      case '/about':
      case '/info':
        return shown(command, 'About Switchyard', aboutText(ROUTER_VERSION))
      case '/status':
        return shown(command, 'Status', hardBreaks(this.#status()))
      case '/usage':
        return shown(command, 'Usage', hardBreaks(usageText(sessionUsage(eachCall(this.#deps.sql)))))
      case '/perf':
        return shown(command, 'Performance', hardBreaks(this.#perf()))
      case '/context':
        return shown(command, 'Context', hardBreaks(this.#context()))
      case '/tasks':
        return shown(
          command,
          'Tasks',
          tasksText(queuedHeads(this.#deps.sql, MAX_QUEUED_PROMPTS).map(({ head }) => head)),
        )
      case '/mcp':
        return shown(command, 'MCP servers', MCP_TEXT)
      case '/model':
        return this.#model(command)
      case '/effort':
        return this.#effort(command)
      case '/title':
      case '/change_title':
        return this.#title(command)
    }
  }

  #status(): string {
    const { engine, session, sql } = this.#deps
    const { state, row } = engine
    const route = state?.lastRoute
    return statusText({
      title: row.title,
      activity: row.activity,
      isServing: state?.active != null,
      model: route ? `${route.provider}/${route.model}` : null,
      settings: this.settings(),
      queued: countQueued(sql),
      runs: runsBegun(sql, engine.counters),
      keyId: session().keyId,
      failed: this.#lastFailure(),
    })
  }

  /** No event and no message says it: a device that missed it asks here. */
  #lastFailure(): string | null {
    const [newest] = this.#recentTurns({ traces: false, calls: false })
    const outcome = newest?.outcome
    return outcome?.status === 'error' ? outcome.data.error.message : null
  }

  #perf(): string {
    const turns = this.#recentTurns({ traces: false, outcomes: false })
    return perfText(
      turns.map(({ calls, status, startedAtMs, endedAtMs }) => ({
        models: [...new Set(calls.map(({ provider, model }) => `${provider}/${model}`))],
        status,
        startedAtMs,
        endedAtMs,
      })),
      this.#deps.nowMs(),
    )
  }

  #context(): string {
    if (this.#deps.engine.isSealed) return SEALED_CONTEXT
    for (const { trace } of this.#recentTurns({ calls: false, outcomes: false })) {
      const payloads = trace.map(({ payload }) => payload)
      if (!payloads.some(({ type }) => type === 'routing_decision')) continue
      const chosen = payloads.findLast(
        (payload): payload is SelectionList => payload.type === 'context_selection_list',
      )
      // Where there was nothing to choose from, no list is kept.
      return contextText(chosen?.items ?? [])
    }
    return contextText(null)
  }

  /** The newest first. */
  #recentTurns(parts: Parameters<typeof loadTurns>[3]) {
    const { sql, engine } = this.#deps
    const from = Math.max(1, engine.counters.turn - RECENT_TURNS + 1)
    return loadTurns(sql, from, RECENT_TURNS, parts).reverse()
  }

  /** An unknown name is told first; the effort of the profile stays (RF 21). */
  #model(command: Command): Decision {
    const settings = this.settings()
    if (command.argument === '')
      return shown(command, 'Model', settings === null ? NO_SETTINGS : modelText(settings))
    const profile = settings?.models.find(({ id }) => id === command.argument)
    if (settings !== null && !profile)
      return refused({
        code: 'invalid_request',
        message: 'there is no such model; /model lists those there are',
      })
    const effort = profile?.reasoning_efforts.includes(settings?.reasoning_effort ?? '')
      ? settings?.reasoning_effort
      : profile?.reasoning_efforts[0]
    return this.#change({ model: command.argument, effort: effort ?? '' }, (changed) =>
      executed(command, 'Model', modelText(changed)),
    )
  }

  #effort(command: Command): Decision {
    const settings = this.settings()
    if (command.argument === '')
      return shown(
        command,
        'Reasoning effort',
        settings === null ? NO_SETTINGS : hardBreaks(effortText(settings)),
      )
    const change = { model: settings?.selected_model ?? '', effort: effortName(command.argument) }
    return this.#change(change, (changed) =>
      executed(command, 'Reasoning effort', hardBreaks(effortText(changed))),
    )
  }

  #change(
    change: { model: string; effort: string },
    result: (settings: RemoteSessionSettings) => Extract<Decision, { k: 'change' }>['result'],
  ): Decision {
    const current = this.settings()
    if (current === null) return refused({ code: 'invalid_request', message: NO_SETTINGS })
    const changed = changedSettings(current, change)
    if (!changed.ok) return refused(changed.error)
    const session = { ...this.#deps.session(), settings: chosenOf(changed.value) }
    return {
      k: 'change',
      // The settings are the object's alone: D1 and the list have nothing to be told.
      work: (sql) => saveSession(sql, session),
      cut: true,
      result: result(changed.value),
    }
  }

  #title(command: Command): Decision {
    const title = readTitle(command.argument)
    if (!title.ok) return refused(title.error)
    return {
      k: 'session',
      session: { ...this.#deps.session(), title: title.value, updatedAtMs: this.#deps.nowMs() },
      result: executed(command, 'Session title', 'The session has this title now.'),
    }
  }
}

const executed = ({ name }: Command, title: string, output: string) =>
  ({ type: 'command_executed', command: name, title, output: boundedOutput(output) }) as const

/** Nothing is changed; the receipt is kept like that of any other command (RF 21). */
const shown = (command: Command, title: string, output: string): Decision => ({
  k: 'change',
  work: () => {},
  cut: false,
  result: executed(command, title, output),
})
