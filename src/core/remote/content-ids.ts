/** Names of texts that `get_content` knows (RF 2). Devices take them as they are. */
export type ContentId =
  | { k: 'message'; revision: string; messageId: string }
  /** What a call was given; the id is that of its item in the transcript. */
  | { k: 'arguments'; revision: string; messageId: string }
  | { k: 'approval'; batchId: string; index: number }
  | { k: 'response'; turnId: string }

export const messageContentId = (revision: string, messageId: string): string =>
  `message:${revision}:${messageId}`
export const argumentsContentId = (revision: string, messageId: string): string =>
  `arguments:${revision}:${messageId}`
export const approvalContentId = (batchId: string, index: number): string => `approval:${batchId}:${index}`
export const responseContentId = (turnId: string): string => `response:${turnId}`

const OF_MESSAGE = /^(message|arguments):([^:]+):([^:]+)$/
const OF_APPROVAL = /^approval:(.+):(0|[1-9]\d{0,5})$/
const OF_RESPONSE = /^response:(.+)$/s

/** Null for a name that none of ours looks like. */
export function parseContentId(id: string): ContentId | null {
  const [, kind, revision, messageId] = OF_MESSAGE.exec(id) ?? []
  if (revision !== undefined && messageId !== undefined)
    return { k: kind === 'arguments' ? 'arguments' : 'message', revision, messageId }
  const [, batchId, index] = OF_APPROVAL.exec(id) ?? []
  if (batchId !== undefined && index !== undefined) return { k: 'approval', batchId, index: Number(index) }
  const [, turnId] = OF_RESPONSE.exec(id) ?? []
  return turnId === undefined ? null : { k: 'response', turnId }
}
