import { headCut } from '../../core/remote/bounded-text.ts'
import { argumentsContentId, messageContentId } from '../../core/remote/content-ids.ts'
import { toolDetailOfJson, toolName } from '../../core/remote/labels.ts'
import { itemId } from '../../core/remote/positions.ts'
import type { AnswerClock } from '../../core/run/writes.ts'
import { MAX_MESSAGE_TEXT_BYTES } from '../../protocol/remote/limits.ts'
import type { BoundedText, RemoteMessage, RemoteTurnTiming } from '../../protocol/remote/message.ts'
import { toWireTime } from '../../protocol/time.ts'
import type {
  CallItem,
  HeadSizes,
  MessageItem,
  StoredItem,
  TextHead,
} from '../../storage/session/remote-items.ts'
import { lockedSentence } from './locked.ts'

/** What is read of each text: the most that is shown, and of arguments enough to say what a call is about. */
export const ITEM_SIZES: HeadSizes = { contentBytes: MAX_MESSAGE_TEXT_BYTES, argumentBytes: 4096 }

/** Stands for the name of a call that is sealed with the rest of it. */
const SEALED_NAME = 'sealed'

export type ItemContext = {
  revision: string
  /** The key of a sealed session; null in a clear one. */
  keyId: string | null
  timing(runId: string, atMs: number): RemoteTurnTiming
}

/** An item of the transcript as it is sent. */
export function toRemoteMessage(item: StoredItem, context: ItemContext): RemoteMessage {
  const id = itemId(item)
  const { keyId, revision } = context
  const isLocked = keyId !== null && isSealedText(item)
  const shown = isLocked ? whole(lockedSentence(keyId)) : item.content
  return {
    message_id: id,
    role: item.k === 'call' ? 'tool' : item.role,
    content: cut(shown, messageContentId(revision, id)),
    ...(item.k === 'call' ? ofCall(item, argumentsContentId(revision, id), keyId !== null) : ofMessage(item)),
    turn: context.timing(item.runId, item.createdAtMs),
    ...(isLocked ? { sealed: { key_id: keyId } } : {}),
  }
}

/** In a sealed session everything but what the router says itself, and the place of a result that is not there yet. */
export const isSealedText = (item: StoredItem): boolean =>
  item.k === 'message' || (item.status !== 'pending' && item.content.totalBytes === 0)

function ofMessage({ role, createdAtMs, clock }: MessageItem): Partial<RemoteMessage> {
  if (role === 'user') return { origin: { kind: 'user' }, timestamp: toWireTime(createdAtMs) }
  const { responseMs, thoughtMs, thoughtTokens }: Partial<AnswerClock> = clock ?? {}
  return {
    timestamp: toWireTime(createdAtMs - (responseMs ?? 0)),
    ...(responseMs === undefined ? {} : { response_time_ms: responseMs }),
    ...thoughtFields(thoughtMs, thoughtTokens),
    completed_at: toWireTime(createdAtMs),
  }
}

/** Tokens are an estimate wherever they are known, and said to be one (RF 14). */
export const thoughtFields = (
  ms: number | undefined,
  tokens: number | undefined,
): Pick<RemoteMessage, 'thought_time_ms' | 'thought_tokens' | 'thought_tokens_estimated'> => ({
  ...(ms === undefined ? {} : { thought_time_ms: ms }),
  ...(tokens === undefined || tokens === 0 ? {} : { thought_tokens: tokens, thought_tokens_estimated: true }),
})

function ofCall(
  { callId, name, status, arguments: args, createdAtMs, completedAtMs }: CallItem,
  argumentsId: string,
  isSealed: boolean,
): Partial<RemoteMessage> {
  const detail = isSealed ? undefined : toolDetailOfJson(args)
  return {
    tool: {
      call_id: callId,
      name: shownName(name, isSealed),
      ...(detail === undefined ? {} : { detail }),
      ...(isSealed ? {} : { arguments_id: argumentsId }),
      success: status === 'completed',
      pending: status === 'pending',
    },
    timestamp: toWireTime(createdAtMs),
    ...(completedAtMs === null ? {} : { completed_at: toWireTime(completedAtMs) }),
  }
}

/** The name of a call; in a sealed session some are content, and stand nowhere in clear. */
export const shownName = (name: string, isSealed: boolean): string =>
  isSealed && name === '' ? SEALED_NAME : toolName(name)

const whole = (text: string): TextHead => ({ text, totalBytes: new TextEncoder().encode(text).byteLength })

function cut({ text, totalBytes }: TextHead, contentId: string): BoundedText {
  const head = headCut(text, MAX_MESSAGE_TEXT_BYTES, contentId)
  return { ...head, truncated: head.truncated || totalBytes > head.total_bytes, total_bytes: totalBytes }
}
