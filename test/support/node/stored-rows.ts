import { readdirSync } from 'node:fs'
import path from 'node:path'
import { DatabaseSync } from 'node:sqlite'

/** What a state folder holds of one session: in its own object, and in the copy. */
export type StoredSession = {
  object: { messages: StoredRow[]; calls: StoredRow[]; turns: StoredRow[] }
  copy: { messages: StoredRow[]; turns: StoredRow[] }
}
export type StoredRow = Record<string, unknown>

const OBJECTS = 'v3/do/switchyard-Session'
const D1 = 'v3/d1/miniflare-D1DatabaseObject'
/** The runtime keeps one such file beside those of the objects. */
const NOT_AN_OBJECT = 'metadata.sqlite'

/** Reads the databases of a router that is not running, by session id. */
export function readStored(persistTo: string): Map<string, StoredSession> {
  const stored = new Map<string, StoredSession>()
  for (const file of databases(path.join(persistTo, OBJECTS))) {
    const found = read(file, (rows) => {
      const id = rows('SELECT session_id FROM session')[0]?.session_id
      return {
        id,
        messages: rows('SELECT seq, id, run_id, role, content, interrupted FROM messages ORDER BY seq'),
        calls: rows(
          'SELECT id, name, status, result, is_error FROM tool_calls ORDER BY message_seq, ordinal',
        ),
        turns: rows('SELECT seq, turn_id AS id, run_id, turn, status, calls FROM turns ORDER BY seq'),
      }
    })
    if (typeof found.id !== 'string') continue
    const { id, ...object } = found
    stored.set(id, { object, copy: { messages: [], turns: [] } })
  }
  for (const file of databases(path.join(persistTo, D1))) {
    read(file, (rows) => {
      for (const [id, session] of stored) {
        session.copy.messages.push(
          ...rows(
            'SELECT seq, id, run_id, role, content, interrupted FROM messages WHERE session_id = ? ORDER BY seq',
            id,
          ),
        )
        session.copy.turns.push(
          ...rows('SELECT seq, id, run_id, status, calls FROM turns WHERE session_id = ? ORDER BY seq', id),
        )
      }
    })
  }
  return stored
}

const databases = (folder: string): string[] =>
  readdirSync(folder)
    .filter((name) => name.endsWith('.sqlite') && name !== NOT_AN_OBJECT)
    .map((name) => path.join(folder, name))

type Rows = (query: string, ...values: string[]) => StoredRow[]

function read<T>(file: string, work: (rows: Rows) => T): T {
  const database = new DatabaseSync(file)
  try {
    return work((query, ...values) =>
      database
        .prepare(query)
        .all(...values)
        .map((row) => ({ ...row })),
    )
  } finally {
    database.close()
  }
}
