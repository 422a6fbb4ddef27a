import { chunkAt, headCut, utf8Length } from '../../core/remote/bounded-text.ts'
import { parseContentId } from '../../core/remote/content-ids.ts'
import { historyRevision, parseItemId } from '../../core/remote/positions.ts'
import type { RemoteErrorCode } from '../../protocol/remote/errors.ts'
import {
  MAX_CONTENT_CHUNK_BYTES,
  MAX_PAYLOAD_BYTES,
  MIN_CONTENT_CHUNK_BYTES,
} from '../../protocol/remote/limits.ts'
import type { OutrightResult } from '../../protocol/remote/results.ts'
import { argumentsPlace, contentPlace, isPlace } from '../../storage/session/remote-items.ts'
import type { Sql } from '../../storage/session/sql.ts'
import { isInsideChar, pieceText, readPiece, type TextPlace } from '../../storage/session/text-pieces.ts'
import { lockedSentence } from './locked.ts'
import type { ActionText } from './waiting-for.ts'

export type ContentResult = Extract<OutrightResult, { type: 'content' | 'error' }>

export type ContentDeps = {
  sql: Sql
  /** How often the transcript was rewritten. */
  rewrites(): number
  /** The key of a sealed session; null in a clear one. */
  keyId(): string | null
  /** What is being said in this turn; null when the turn is not active. */
  response(turnId: string): string | null
  /** What an action of the pending approval is about; null for another one. */
  actionText(batchId: string, index: number): ActionText | null
}

/** Longest character in UTF-8. */
const CHAR_BYTES = 4

/**
 * A piece of a text that was cut (RF 15, U44). `maxBytes` is brought within the contract's bounds. Texts are never read
 * whole where they are stored. Errors: `not_found`, and `invalid_request` for an offset that is none.
 */
export function readContent(
  deps: ContentDeps,
  contentId: string,
  offset: number,
  maxBytes: number,
): ContentResult {
  const text = textOf(deps, contentId)
  if (text === null) return refused('not_found', 'there is no such content')
  const bytes = Math.min(Math.max(maxBytes, MIN_CONTENT_CHUNK_BYTES), MAX_CONTENT_CHUNK_BYTES)
  // A page of control characters takes six times its bytes in a frame.
  const limits = { bytes, json: MAX_PAYLOAD_BYTES }
  const chunk =
    'text' in text ? chunkAt(text.text, offset, limits) : storedChunk(deps.sql, text.place, offset, limits)
  if (chunk === 'gone') return refused('not_found', 'there is no such content')
  if (chunk === null)
    return refused('invalid_request', 'the offset is behind the end of the text, or inside a character')
  return {
    type: 'content',
    content_id: contentId,
    offset,
    text: chunk.text,
    total_bytes: chunk.totalBytes,
    ...(chunk.nextOffset === null ? {} : { next_offset: chunk.nextOffset }),
  }
}

const refused = (code: RemoteErrorCode, message: string): ContentResult => ({ type: 'error', code, message })

function textOf(deps: ContentDeps, contentId: string): ActionText | null {
  const id = parseContentId(contentId)
  switch (id?.k) {
    case 'response': {
      const text = deps.response(id.turnId)
      return text === null ? null : { text }
    }
    case 'approval':
      return deps.actionText(id.batchId, id.index)
    case 'message':
    case 'arguments': {
      const place = id.revision === historyRevision(deps.rewrites()) ? parseItemId(id.messageId) : null
      if (place === null || (id.k === 'arguments' && place.part === 0)) return null
      const stored = id.k === 'message' ? contentPlace(place) : argumentsPlace(place)
      return sealedText(deps, id.k, stored, place) ?? { place: stored }
    }
    default:
      return null
  }
}

/** What a sealed session shows in place of a text that it has no key to; null where the text stands there in clear. */
function sealedText(
  { sql, keyId }: ContentDeps,
  kind: 'message' | 'arguments',
  stored: TextPlace,
  place: { seq: number; part: number },
): ActionText | null {
  const key = keyId()
  if (key === null || !isPlace(sql, place)) return null
  // A note of the router on a call is no content of the user.
  const isClear = kind === 'message' && place.part > 0 && (readPiece(sql, stored, 0, 0)?.totalBytes ?? 0) > 0
  return isClear ? null : { text: lockedSentence(key) }
}

function storedChunk(
  sql: Sql,
  place: TextPlace,
  offset: number,
  limits: { bytes: number; json: number },
): { text: string; totalBytes: number; nextOffset: number | null } | null | 'gone' {
  const piece = readPiece(sql, place, offset, limits.bytes + CHAR_BYTES)
  if (piece === null) return 'gone'
  const { totalBytes } = piece
  if (offset > totalBytes || (offset < totalBytes && isInsideChar(piece))) return null
  const { text } = headCut(pieceText(piece), limits)
  const next = offset + utf8Length(text)
  return { text, totalBytes, nextOffset: next < totalBytes ? next : null }
}
