import type { RemoteSessionInfo } from '../protocol/remote/session-info.ts'
import { toWireTime } from '../protocol/time.ts'
import { jsonBytes } from './run/json-bytes.ts'
import { openQuestion, pendingBatchId, undecidedCalls } from './run/pending.ts'
import type { RunState } from './run/state.ts'

/** Rows travel to every device that shows the list: a label that is cut stays readable, a long one crowds the frame out. */
const MAX_TITLE_BYTES = 512
const MAX_MODEL_BYTES = 256
/** The longest path that file systems take. */
export const MAX_WORKSPACE_BYTES = 4096
/** Characters of a title that was derived; of a longer line one has the first of them and three dots (RF 11). */
const MAX_DERIVED_CHARS = 48
const DOTS = '...'

/** What a row says besides the state of the run. Times are epoch milliseconds. */
export type LiveFacts = {
  sessionId: string
  registrationEpoch: number
  /** As the client set it. */
  title: string | null
  /** What `derivedTitle` made of the user's words; null when nothing was said yet, and in a sealed session (D47). */
  derivedTitle: string | null
  /** The root of the latest run's workspace. */
  workspace: string | null
  /** Runs that were begun. */
  runs: number
  /** Prompts that wait for the run to end; absent for none. */
  queued?: number
  /** The time of the newest message of the transcript. */
  lastMessageAtMs: number | null
}

/** A session's row of the live list (D02, D03). `state` is null before the first run. */
export function liveRow(state: RunState | null, facts: LiveFacts): RemoteSessionInfo {
  const resting = activityOf(state)
  // Between two runs that follow each other nothing is idle (D02).
  const activity = resting === 'idle' && (facts.queued ?? 0) > 0 ? 'running' : resting
  const title = facts.title !== null && facts.title.trim() !== '' ? facts.title : (facts.derivedTitle ?? '')
  const { workspace, lastMessageAtMs } = facts
  return {
    session_id: facts.sessionId,
    registration_epoch: facts.registrationEpoch,
    title: cutBytes(title, MAX_TITLE_BYTES),
    ...(workspace === null || workspace.trim() === ''
      ? {}
      : { workspace: cutBytes(workspace, MAX_WORKSPACE_BYTES) }),
    model: cutBytes(state?.lastRoute?.model ?? '', MAX_MODEL_BYTES),
    harness: 'switchyard',
    turn_count: facts.runs,
    ...(lastMessageAtMs === null ? {} : { last_active_at: toWireTime(lastMessageAtMs) }),
    activity,
    attention: {
      approval: state !== null && isUndecided(state.phase),
      question: state !== null && openQuestion(state.phase) !== null,
    },
    health: 'live',
  }
}

/**
 * What a session does, as the list shows it (D02). What was cut off by a crash does nothing: it shows as the pause, or the
 * end, at which it waits for its client.
 */
export function activityOf(state: RunState | null): RemoteSessionInfo['activity'] {
  if (state === null) return 'idle'
  const { phase, active } = state
  if (isUndecided(phase)) return 'awaiting_approval'
  if (openQuestion(phase) !== null) return 'awaiting_question'
  if (active !== null) return 'running'
  return phase.k === 'Idle' || phase.k === 'AwaitingEncrypt' ? 'idle' : 'running'
}

/** Something waits for a decision, and neither the driver nor a device has made it. */
const isUndecided = (phase: RunState['phase']): boolean =>
  phase.k === 'AwaitingApproval' ? pendingBatchId(phase) !== null : undecidedCalls(phase).length > 0

/** The title that a message of the user gives to a session without one; null for one that gives none (RF 11). */
export function derivedTitle(message: string): string | null {
  if (message.startsWith('/')) return null
  const line = firstLine(message)
  if (line === '') return null
  // A line may be as long as a request; a character takes two units at most.
  const chars = [...line.slice(0, 2 * (MAX_DERIVED_CHARS + 1))]
  return chars.length <= MAX_DERIVED_CHARS
    ? line
    : `${chars.slice(0, MAX_DERIVED_CHARS - DOTS.length).join('')}${DOTS}`
}

function firstLine(text: string): string {
  for (const [line] of text.matchAll(/[^\r\n]+/g)) {
    const trimmed = line.trim()
    if (trimmed !== '') return trimmed
  }
  return ''
}

/**
 * The beginning of a text that takes at most so many bytes in a frame; no character is cut in two. What JSON has to escape
 * counts as it is escaped: else a list of odd names would not fit.
 */
export function cutBytes(text: string, maxBytes: number): string {
  let bytes = 0
  let units = 0
  for (const char of text) {
    bytes += jsonBytes(char)
    if (bytes > maxBytes) return text.slice(0, units)
    units += char.length
  }
  return text
}

/**
 * Whether the list has to be told of a row, after it was told of another. While a run goes on, that something was said is
 * no news by itself (D33).
 */
export function isNews(told: RemoteSessionInfo, row: RemoteSessionInfo): boolean {
  const { last_active_at: toldAt, ...before } = told
  const { last_active_at: rowAt, ...after } = row
  return JSON.stringify(before) !== JSON.stringify(after) || (row.activity === 'idle' && toldAt !== rowAt)
}
