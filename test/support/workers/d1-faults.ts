import { env } from 'cloudflare:workers'
import { vi } from 'vitest'

/**
 * How D1 fails: before a statement is made, when it is sent, or after it was carried out, which looks the same to whoever
 * sent it.
 */
export type Fault = 'refused' | 'lost' | 'lost after it was stored'

/** What no answer may repeat. */
export const FAULT_TEXT = 'D1_ERROR: Network connection lost at d1.internal'

const fail = (): never => {
  throw new Error(FAULT_TEXT)
}

type Prepared = { statement: string }

/**
 * D1 fails every statement that fits, alone or in a batch, until it is repaired. Says how many it failed. `forGood`:
 * from the first of them on it fails every other statement as well.
 */
export function breakD1(
  fault: Fault,
  pattern: RegExp,
  { forGood = false } = {},
): { repair(): void; readonly failed: number } {
  let failed = 0
  const fits = (query: string) => pattern.test(query) || (forGood && failed > 0)
  const prepare = env.DB.prepare.bind(env.DB)
  const batch = env.DB.batch.bind(env.DB)
  const broken = async <T>(carryOut: () => Promise<T>): Promise<T> => {
    failed++
    if (fault === 'lost after it was stored') await carryOut()
    return fail()
  }
  const breakStatement = (statement: D1PreparedStatement): D1PreparedStatement => {
    const { all, run, first, raw, bind } = {
      all: statement.all.bind(statement),
      run: statement.run.bind(statement),
      first: statement.first.bind(statement),
      raw: statement.raw.bind(statement),
      bind: statement.bind.bind(statement),
    }
    vi.spyOn(statement, 'all').mockImplementation(() => broken(all) as never)
    vi.spyOn(statement, 'run').mockImplementation(() => broken(run) as never)
    vi.spyOn(statement, 'first').mockImplementation(() => broken(() => first()) as never)
    vi.spyOn(statement, 'raw').mockImplementation(() => broken(() => raw()) as never)
    vi.spyOn(statement, 'bind').mockImplementation((...values) => breakStatement(bind(...values)))
    return statement
  }
  const spies = [
    vi.spyOn(env.DB, 'prepare').mockImplementation((query) => {
      if (!fits(query)) return prepare(query)
      if (fault !== 'refused') return breakStatement(prepare(query))
      failed++
      return fail()
    }),
    vi.spyOn(env.DB, 'batch').mockImplementation(async <T>(statements: D1PreparedStatement[]) => {
      const queries = (statements as unknown as Prepared[]).map(({ statement }) => statement)
      return queries.some(fits) ? broken(() => batch<T>(statements)) : batch<T>(statements)
    }),
  ]
  return {
    repair: () => {
      for (const spy of spies) spy.mockRestore()
    },
    get failed() {
      return failed
    },
  }
}

/** Every row of D1, by table: to see that nothing has changed. */
export async function everything(): Promise<Record<string, unknown[]>> {
  const { results: tables } = await env.DB.prepare(
    "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE '\\_cf%' ESCAPE '\\' ORDER BY name",
  ).all<{ name: string }>()
  const rows: Record<string, unknown[]> = {}
  for (const { name } of tables) rows[name] = (await env.DB.prepare(`SELECT * FROM "${name}"`).all()).results
  return rows
}
