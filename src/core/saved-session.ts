import type { SavedSession } from '../protocol/remote/host-results.ts'
import { MAX_PAYLOAD_BYTES, MAX_TITLE_BYTES } from '../protocol/remote/limits.ts'
import { utf8Bytes } from '../protocol/remote/utf8.ts'
import { toWireTime } from '../protocol/time.ts'
import { cutBytes, MAX_WORKSPACE_BYTES } from './live-row.ts'

/** What is stored of a session, for the list of saved ones. Times are epoch milliseconds. */
export type SavedFacts = {
  sessionId: string
  /** As the client set it. */
  title: string | null
  derivedTitle: string | null
  workspace: string | null
  updatedAtMs: number
  messageCount: number
}

/** The title of a session that nobody named and that nothing was said in (RF 25). */
const NO_PROMPT = '(no prompt)'

/** A session as the list of saved ones shows it (remote protocol, "Saved sessions"). */
export function savedSession(facts: SavedFacts, isShared: boolean): SavedSession {
  const { title, workspace } = facts
  const shown = title !== null && title.trim() !== '' ? title : (facts.derivedTitle ?? NO_PROMPT)
  const folder =
    workspace === null || workspace.trim() === '' ? null : cutBytes(workspace, MAX_WORKSPACE_BYTES)
  return {
    session_id: facts.sessionId,
    title: cutBytes(shown, MAX_TITLE_BYTES),
    ...(folder === null ? {} : { project: folder, workspace: folder }),
    updated_at: toWireTime(facts.updatedAtMs),
    message_count: facts.messageCount,
    state: isShared ? 'shared' : 'saved',
  }
}

/** How many of these, from the first on, fit one frame; at least one does. */
export function fittingEntries(entries: readonly SavedSession[]): number {
  let bytes = 0
  const tooMany = entries.findIndex((entry) => {
    bytes += utf8Bytes(JSON.stringify(entry)) + 1
    return bytes > MAX_PAYLOAD_BYTES
  })
  return tooMany === -1 ? entries.length : Math.max(1, tooMany)
}

/** Where a page of saved sessions ends, for the one behind it. Clients do not look into it. */
export type PageEnd = { createdAtMs: number; sessionId: string }

export const toCursor = ({ createdAtMs, sessionId }: PageEnd): string => `${createdAtMs}.${sessionId}`

/** Null for what no page has given out. */
export function parseCursor(cursor: string): PageEnd | null {
  const found = /^(\d{1,16})\.([0-9a-f-]{36})$/.exec(cursor)
  if (found === null) return null
  const [, createdAt = '', sessionId = ''] = found
  return { createdAtMs: Number(createdAt), sessionId }
}
