import type { SwitchyardClient } from '../client/client.ts'
import type { ClientFailure } from '../client/failure.ts'
import { err, ok, type Result } from '../protocol/result.ts'
import { saveCredentials } from './credentials.ts'

/** Why there is no new account: the router refused, or its key could not be stored and is lost. */
export type NewAccountFailure =
  | { kind: 'refused'; failure: ClientFailure }
  | { kind: 'storage'; message: string }

/**
 * Makes an account and stores its key before anything else can fail: it is shown this once (EC 2.2).
 * @returns the key
 */
export async function makeAccount(
  client: SwitchyardClient,
  bootstrapToken?: string,
): Promise<Result<string, NewAccountFailure>> {
  const made = await client.bootstrap(bootstrapToken)
  if (!made.ok) return err({ kind: 'refused', failure: made.error })
  const { user_id, api_key } = made.value
  const saved = saveCredentials(client.baseUrl, { user_id, api_key })
  if (saved.ok) return ok(api_key)
  return err({ kind: 'storage', message: `${saved.error.message}; the new account is lost` })
}

/** Told when a stored key is of no use any more and a new account takes its place. */
export const replacedNote = (url: string): string =>
  `${url} does not know the stored key any more (its state was reset): made a new account.`
