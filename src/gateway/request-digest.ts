import type { RequestEnvelope } from '../protocol/remote/decode-request.ts'
import { digestOf } from '../storage/digest.ts'

/** JSON with its keys in one order and without what is absent: two spellings of one value give the same text. */
function canonicalJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'null'
  const entries = Object.entries(value)
    .filter(([, member]) => member !== undefined)
    .sort(([a], [b]) => (a < b ? -1 : 1))
  return `{${entries.map(([key, member]) => `${JSON.stringify(key)}:${canonicalJson(member)}`).join(',')}}`
}

/**
 * SHA-256 of what a request asks, as lower-case hex: of its session, its epoch and its operation as they were read, in the
 * names of version 1. It tells a repeat from another request under the same id (RF 28).
 */
export const requestDigest = ({
  sessionId,
  registrationEpoch,
  operation,
}: RequestEnvelope): Promise<string> => digestOf(canonicalJson([sessionId, registrationEpoch, operation]))
