import type { StoredKey } from '../../client/crypto/key-files.ts'
import type { SessionSummary } from '../../protocol/execution/session.ts'
import { oneLine, printable } from '../printable.ts'

/** What `keys list --json` prints of each key. */
export type ListedKey = {
  key_id: string
  /** When it came to this machine. */
  created_at?: string
  /** Whether it can be used. */
  sound: boolean
  /** Why it cannot. */
  problem?: string
  /** Sessions under it, the newest change first; absent when nobody asked for them. */
  sessions?: { id: string; title: string }[]
}

/**
 * The keys of this machine and, where sessions are given, the sessions under each. A key that only sessions name is
 * listed as well: without it they stay locked (U35).
 */
export function listedKeys(keys: readonly StoredKey[], sessions?: readonly SessionSummary[]): ListedKey[] {
  const under = (keyId: string) =>
    sessions && {
      sessions: sessions.flatMap(({ id, title, key_id }) =>
        key_id === keyId ? [{ id, title: title ?? '' }] : [],
      ),
    }
  const here = keys.map(({ keyId, createdAt, problem }) => ({
    key_id: keyId,
    ...(createdAt === null ? {} : { created_at: createdAt }),
    sound: problem === null,
    ...(problem ? { problem: problem.message } : {}),
    ...under(keyId),
  }))
  const known = new Set(keys.map(({ keyId }) => keyId))
  const named = new Set(sessions?.flatMap(({ key_id }) => key_id ?? []))
  const elsewhere = [...named]
    .filter((keyId) => !known.has(keyId))
    .sort()
    .map((keyId) => ({ key_id: keyId, sound: false, problem: 'not on this machine', ...under(keyId) }))
  return [...here, ...elsewhere]
}

const MAX_TITLE_CHARS = 60
/** Ours have 47 characters; another client's may be anything. */
const MAX_ID_CHARS = 100

/** A key on one line, and one more for each of its sessions. */
export function keyLines({ key_id, created_at, problem, sessions }: ListedKey): string {
  const since = created_at === undefined ? [] : [`since ${created_at.slice(0, 16).replace('T', ' ')}`]
  const standing = problem === undefined ? 'sound' : `cannot be used: ${printable(problem)}`
  const lines = [
    [oneLine(key_id, MAX_ID_CHARS), ...since, standing].join('  '),
    ...(sessions?.length === 0 ? ['  (no session of this account)'] : []),
    ...(sessions ?? []).map(({ id, title }) => `  ${id}  ${oneLine(title, MAX_TITLE_CHARS) || '(untitled)'}`),
  ]
  return lines.map((line) => `${line}\n`).join('')
}
