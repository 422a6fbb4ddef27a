import { MAX_PAYLOAD_BYTES } from '../../protocol/remote/limits.ts'
import type { RemoteMessage } from '../../protocol/remote/message.ts'
import type { RemoteApprovalBatch } from '../../protocol/remote/question.ts'
import type { RemoteSnapshot } from '../../protocol/remote/snapshot.ts'
import { frameBytes, halvedHead, halvedTail } from './bounded-text.ts'

/** What is too large for a frame is made smaller in a fixed order, and stays reachable: by a cursor, or a content id (RF 14). */

const isTooLarge = (value: unknown): boolean => frameBytes(value) > MAX_PAYLOAD_BYTES

/** The newest messages that fit a page: the older half goes, again and again; one stays (RF 15). */
export function fittingPage(messages: readonly RemoteMessage[]): readonly RemoteMessage[] {
  let page = messages
  while (page.length > 1 && isTooLarge(page)) page = page.slice(Math.ceil(page.length / 2))
  return page
}

/** An approval that fits a frame by itself: the longest details lose their second half, again and again. */
export const fittingBatch = (batch: RemoteApprovalBatch): RemoteApprovalBatch =>
  withShorterDetails(batch, frameBytes(batch) - MAX_PAYLOAD_BYTES)

/**
 * A snapshot that fits a frame. `cursors`: of each message of the transcript, and at the end that of the place behind them;
 * null where there is nothing before.
 */
export function fittingSnapshot(
  snapshot: RemoteSnapshot,
  cursors: readonly (string | null)[],
): RemoteSnapshot {
  let fitting = snapshot
  while (isTooLarge(fitting)) {
    const smaller = shrunk(fitting, cursors)
    if (smaller === null) return fitting
    fitting = smaller
  }
  return fitting
}

/** One step smaller; null when nothing is left that may go. */
function shrunk(snapshot: RemoteSnapshot, cursors: readonly (string | null)[]): RemoteSnapshot | null {
  const { transcript, turn, pending_approval: approval } = snapshot
  if (transcript.length > 0) {
    const kept = transcript.slice(Math.ceil(transcript.length / 2))
    const cursor = cursors[cursors.length - 1 - kept.length]
    return { ...snapshot, transcript: kept, ...(cursor == null ? {} : { history_cursor: cursor }) }
  }
  if (turn !== undefined && turn.live_response.text !== '')
    return { ...snapshot, turn: { ...turn, live_response: halvedTail(turn.live_response) } }
  if (approval?.actions.some(({ details }) => details.text !== '')) {
    const excess = frameBytes(snapshot) - MAX_PAYLOAD_BYTES
    return { ...snapshot, pending_approval: withShorterDetails(approval, excess) }
  }
  const { settings, ...bare } = snapshot
  return settings === undefined ? withHalfOfLists(snapshot) : bare
}

/** The longest details are halved until so many bytes of a frame are saved, or nothing of them is left. */
function withShorterDetails(batch: RemoteApprovalBatch, excess: number): RemoteApprovalBatch {
  const shown = batch.actions.map(({ details }) => details)
  for (let left = excess; left > 0; ) {
    const sizes = shown.map(({ text }) => text.length)
    const longest = sizes.indexOf(Math.max(...sizes))
    const before = shown[longest]
    if (before === undefined || before.text === '') break
    const after = halvedHead(before)
    shown[longest] = after
    left -= frameBytes(before) - frameBytes(after)
  }
  return {
    ...batch,
    actions: batch.actions.map((action, index) => ({ ...action, details: shown[index] ?? action.details })),
  }
}

/** The first half of the tools and the prompts; the rest is counted. */
function withHalfOfLists(snapshot: RemoteSnapshot): RemoteSnapshot | null {
  const { turn, pending_prompts: prompts, omitted } = snapshot
  const tools = turn?.tools ?? []
  if (tools.length === 0 && prompts.length === 0) return null
  const keptTools = tools.slice(0, Math.floor(tools.length / 2))
  const keptPrompts = prompts.slice(0, Math.floor(prompts.length / 2))
  return {
    ...snapshot,
    ...(turn === undefined ? {} : { turn: { ...turn, tools: keptTools } }),
    pending_prompts: keptPrompts,
    omitted: {
      ...omitted,
      tools: omitted.tools + tools.length - keptTools.length,
      pending_prompts: omitted.pending_prompts + prompts.length - keptPrompts.length,
    },
  }
}
