import type { SessionUsageResponse, Usage } from '../../protocol/execution/usage.ts'
import { REMOTE_PROTOCOL_VERSION } from '../../protocol/remote/limits.ts'
import type { RemoteSessionInfo } from '../../protocol/remote/session-info.ts'
import type { RemoteSessionSettings } from '../../protocol/remote/session-settings.ts'
import { toWireTime } from '../../protocol/time.ts'
import { REMOTE_COMMANDS } from '../remote/command-list.ts'
import type { SelectionList } from '../run/writes.ts'
import { plainWords } from './command-output.ts'
import { COMMANDS } from './commands.ts'

/**
 * What commands show, as Markdown, out of what is stored. Words that a person or a model wrote stand in it as plain words.
 */

/** Of a prompt, a title, a path: enough to recognise it. */
const LABEL_CHARS = 120
/** Lines of one list; what is more is counted. */
const MAX_LINES = 100

const label = (text: string): string => plainWords(text, LABEL_CHARS)

function list(lines: readonly string[], none: string): string {
  if (lines.length === 0) return none
  const rest = lines.length - MAX_LINES
  return [...lines.slice(0, MAX_LINES), ...(rest > 0 ? [`… and ${rest} more`] : [])].join('\n')
}

export const helpText = (): string =>
  REMOTE_COMMANDS.map(({ name, description }) => `- \`${usageOf(name)}\`: ${description}`).join('\n')

function usageOf(name: string): string {
  const takes = COMMANDS.find((command) => command.name === `/${name}`)?.takes ?? null
  return takes === null ? `/${name}` : `/${name} ${takes}`
}

export const aboutText = (version: string): string =>
  [
    `Switchyard ${version} routes the turns of coding sessions onto models by fixed rules.`,
    '',
    `- Remote protocol: version ${REMOTE_PROTOCOL_VERSION}`,
    '- Requests: 256 KiB, images: 8 MiB and 8 in a prompt',
    '- Prompts from a device use the policy of the last run; tools of a computer need that computer',
  ].join('\n')

const ACTIVITIES: Readonly<Record<RemoteSessionInfo['activity'], string>> = {
  idle: 'idle',
  running: 'running',
  awaiting_approval: 'waits for a decision',
  awaiting_question: 'waits for an answer',
}

export type StatusFacts = {
  title: string
  activity: RemoteSessionInfo['activity']
  /** A turn is being served at this moment. */
  isServing: boolean
  /** `provider/model` of the latest turn; null before the first. */
  model: string | null
  settings: RemoteSessionSettings | null
  queued: number
  runs: number
  /** Of an encrypted session. */
  keyId: string | null
  /** Why the last run failed; null when it did not. */
  failed: string | null
}

export function statusText({
  title,
  activity,
  isServing,
  model,
  settings,
  queued,
  runs,
  keyId,
  failed,
}: StatusFacts): string {
  // A run that was paused or cut off and waits for its client is going on, and yet nothing is being worked at.
  const state = activity === 'running' && !isServing ? 'waits for the computer' : ACTIVITIES[activity]
  return [
    `Session: ${title.trim() === '' ? 'without a title' : label(title)}`,
    `State: ${state}`,
    `Last model: ${model === null ? 'none yet' : label(model)}`,
    ...(settings === null ? [] : [`Model for prompts from devices: ${label(settings.selected_model)}`]),
    `Prompts that wait: ${queued}`,
    `Runs: ${runs}`,
    ...(failed === null ? [] : [`The last one failed: ${label(failed)}`]),
    ...(keyId === null ? [] : [`Encrypted with the key ${label(keyId)}`]),
  ].join('\n')
}

/** Tokens and cost; what is unknown is said to be, and never counted as nothing (U43). */
export function usageText({ total, by_model: models }: SessionUsageResponse): string {
  if (models.length === 0) return 'No model was called yet.'
  return list(
    [
      `In all: ${usageWords(total)}`,
      ...models.map(
        ({ provider, model, request_count: calls, ...usage }) =>
          `${label(`${provider}/${model}`)}: ${calls} ${calls === 1 ? 'call' : 'calls'}, ${usageWords(usage)}`,
      ),
    ],
    '',
  )
}

function usageWords(usage: Usage): string {
  const parts = [
    counted(usage.input_tokens, 'tokens in'),
    counted(usage.output_tokens, 'tokens out'),
    counted(usage.cached_tokens, 'from the cache'),
    counted(usage.cache_write_tokens, 'into the cache'),
    counted(usage.reasoning_tokens, 'for reasoning'),
    usage.estimated_cost === undefined ? null : `${usage.estimated_cost} ${usage.currency ?? 'USD'}`,
    counted(usage.unknown_count, 'calls of unknown usage'),
    counted(usage.sealed_count, 'calls whose usage is encrypted'),
  ].filter((part) => part !== null)
  return parts.length === 0 ? 'nothing was reported' : parts.join(', ')
}

const counted = (count: number | undefined, of: string): string | null =>
  count === undefined ? null : `${count} ${of}`

/** A turn with its times; `endedAtMs` is null while it is being served. */
export type TurnTimes = {
  models: string[]
  status: string
  startedAtMs: number
  endedAtMs: number | null
}

/** Newest first. */
export const perfText = (turns: readonly TurnTimes[], nowMs: number): string =>
  list(
    turns.map(({ models, status, startedAtMs, endedAtMs }) => {
      const seconds = ((endedAtMs ?? nowMs) - startedAtMs) / 1000
      const by = models.length === 0 ? 'no model' : label(models.join(', '))
      return `${toWireTime(startedAtMs)}: ${seconds.toFixed(1)} s, ${by}, ${status}`
    }),
    'No turn was served yet.',
  )

/** What the last turn that was decided took into its prompt, and what it left out and why; null when none tells. */
export function contextText(items: SelectionList['items'] | null): string {
  if (items === null) return 'No turn has chosen its context yet.'
  const included = items.filter((item) => item.included)
  const excluded = items.filter((item) => !item.included)
  const nameOf = ({ path, kind }: SelectionList['items'][number]) => label(path ?? kind)
  return [
    `Shown to the model: ${included.length}`,
    list(
      included.map((item) => nameOf(item)),
      'nothing',
    ),
    `Left out: ${excluded.length}`,
    list(
      excluded.map((item) => `${nameOf(item)}: ${label(item.reason)}`),
      'nothing',
    ),
  ].join('\n')
}

export const SEALED_CONTEXT =
  'What turns of an encrypted session show to models stands in its encrypted trace.'

export const tasksText = (prompts: readonly string[]): string =>
  list(
    prompts.map((prompt, index) => `${index + 1}. ${label(prompt)}`),
    'No prompt waits, and nothing runs in the background.',
  )

export const MCP_TEXT = 'No tool servers are connected to this session.'

export function modelText({ models, selected_model: selected }: RemoteSessionSettings): string {
  return list(
    models.map(
      ({ id, model }) =>
        `- ${label(id)}${id === model ? '' : `: ${label(model)}`}${id === selected ? ' (selected)' : ''}`,
    ),
    '',
  )
}

export const effortText = ({ models, selected_model, reasoning_effort }: RemoteSessionSettings): string =>
  [
    `Effort: ${label(reasoning_effort)}`,
    `To choose from: ${(models.find(({ id }) => id === selected_model)?.reasoning_efforts ?? []).map(label).join(', ')}`,
  ].join('\n')

export const NO_SETTINGS = 'The models of this session are known after its first run.'
