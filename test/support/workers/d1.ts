import { env } from 'cloudflare:workers'
import { vi } from 'vitest'

type Results = D1Result<unknown>[]

/** What a prepared statement holds; the published type does not say. */
type Prepared = { statement: string; params: unknown[] }

/**
 * Stands before the batches in which objects write rows of this session to D1, or of any session. `send` sends the one
 * at hand. Batches that only read pass. Until the mock is restored.
 */
export function onFlush(
  sessionId: string | null,
  handler: (send: () => Promise<Results>, queries: string[]) => Promise<Results>,
) {
  const real = env.DB.batch.bind(env.DB)
  return vi.spyOn(env.DB, 'batch').mockImplementation(async <T>(statements: D1PreparedStatement[]) => {
    const prepared = statements as unknown as Prepared[]
    const queries = prepared.map(({ statement }) => statement)
    const send = () => real(statements) as Promise<Results>
    const reads = queries.every((query) => /^select/i.test(query))
    // Objects of earlier tests live on, and their alarms ring.
    const other = sessionId !== null && !prepared.some(({ params }) => params.includes(sessionId))
    const results = reads || other ? send() : handler(send, queries)
    return (await results) as D1Result<T>[]
  })
}

/** D1 fails every statement that fits, until the mock is restored. */
export function failStatements(fits: RegExp) {
  const real = env.DB.prepare.bind(env.DB)
  return vi.spyOn(env.DB, 'prepare').mockImplementation((query) => {
    if (fits.test(query)) throw new Error('D1_ERROR: out of order')
    return real(query)
  })
}

export const down = async (): Promise<never> => {
  throw new Error('D1_ERROR: out of order')
}

/** The copy of a session in D1. */
export async function copyOf(sessionId: string) {
  const rows = async (query: string) => (await env.DB.prepare(query).bind(sessionId).all()).results
  const [session] = await rows('SELECT * FROM sessions WHERE id = ?')
  return {
    session,
    messages: await rows('SELECT * FROM messages WHERE session_id = ? ORDER BY seq'),
    turns: await rows('SELECT * FROM turns WHERE session_id = ? ORDER BY seq'),
  }
}
