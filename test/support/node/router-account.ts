import type { Backoff } from '../../../src/client/backoff.ts'
import { SwitchyardClient } from '../../../src/client/client.ts'
import type { Result } from '../../../src/protocol/result.ts'

/** A fresh account on a router, as our own client holds it and as headers for everyone else. */
export type RouterAccount = {
  client: SwitchyardClient
  apiKey: string
  headers: { Authorization: string }
  /** A new session. */
  newSession(title?: string): Promise<string>
}

/** A router of a test comes back within seconds: a client need not grow as patient as in the field. */
const SHORT_WAITS: Backoff = { firstMs: 100, maxMs: 200, attempts: 200, openAttempts: 200 }

export async function makeAccount(url: string): Promise<RouterAccount> {
  const client = new SwitchyardClient({ baseUrl: url, backoff: SHORT_WAITS })
  const { api_key: apiKey } = must(await client.bootstrap())
  const { token } = must(await client.signIn(apiKey))
  return {
    client,
    apiKey,
    headers: { Authorization: `Bearer ${token}` },
    newSession: async (title = 'a session') => must(await client.sessions.create({ title })).id,
  }
}

/** The value of what must have succeeded. */
export function must<T>(result: Result<T, unknown>): T {
  if (!result.ok) throw new Error(`this should have succeeded: ${JSON.stringify(result.error)}`)
  return result.value
}
