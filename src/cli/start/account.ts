import { SwitchyardClient } from '../../client/client.ts'
import { err, ok, type Result } from '../../protocol/result.ts'
import { loadCredentials, saveCredentials } from '../credentials.ts'
import { failureText } from '../failure-text.ts'
import type { CliIo } from '../io.ts'
import { type SignInFailure, signedInClient } from '../sign-in.ts'

/**
 * A signed-in client, with an account made on the way when there is none: the first time, or when the router's state
 * was wiped and it no longer knows the stored key. The error is a sentence for the user.
 */
export async function clientWithAccount(url: string, io: CliIo): Promise<Result<SwitchyardClient, string>> {
  const stored = loadCredentials(url)
  if (!stored.ok) return err(stored.error.message)
  if (stored.value === null && !hasKeyInEnvironment()) {
    const made = await makeAccount(url, io, `Made an account on ${url}.`)
    if (!made.ok) return made
  }
  const first = await signedInClient({ url, io, providerKeys: {} })
  if (first.ok) return first
  // A key that the user set himself is his to put right.
  if (!isRefusedKey(first.error) || hasKeyInEnvironment()) return err(first.error.message)
  const note = `${url} does not know the stored key any more (its state was reset): made a new account.`
  const made = await makeAccount(url, io, note)
  if (!made.ok) return made
  const second = await signedInClient({ url, io, providerKeys: {} })
  return second.ok ? second : err(second.error.message)
}

const hasKeyInEnvironment = (): boolean => (process.env.SWITCHYARD_API_KEY ?? '') !== ''

const isRefusedKey = ({ kind }: SignInFailure): boolean => kind === 'not_signed_in'

async function makeAccount(url: string, io: CliIo, note: string): Promise<Result<null, string>> {
  const made = await new SwitchyardClient({ baseUrl: url }).bootstrap()
  if (!made.ok) return err(`No account could be made on ${url}: ${failureText(made.error)}`)
  const { user_id, api_key } = made.value
  const saved = saveCredentials(url, { user_id, api_key })
  if (!saved.ok) return err(saved.error.message)
  io.err(`${note}\n`)
  return ok(null)
}
