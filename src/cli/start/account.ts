import { SwitchyardClient } from '../../client/client.ts'
import { err, ok, type Result } from '../../protocol/result.ts'
import { loadCredentials } from '../credentials.ts'
import { failureText } from '../failure-text.ts'
import type { CliIo } from '../io.ts'
import { makeAccount, replacedNote } from '../new-account.ts'
import { type SignInFailure, signedInClient } from '../sign-in.ts'

/**
 * A signed-in client, with an account made on the way when there is none: the first time, or when the router's state
 * was wiped and it no longer knows the stored key. The error is a sentence for the user.
 */
export async function clientWithAccount(url: string, io: CliIo): Promise<Result<SwitchyardClient, string>> {
  const stored = loadCredentials(url)
  if (!stored.ok) return err(stored.error.message)
  if (stored.value === null && !hasKeyInEnvironment()) {
    const made = await newAccount(url, io, `Made an account on ${url}.`)
    if (!made.ok) return made
  }
  const first = await signedInClient({ url, io, providerKeys: {} })
  if (first.ok) return first
  // A key that the user set himself is his to put right.
  if (!isRefusedKey(first.error) || hasKeyInEnvironment()) return err(first.error.message)
  const made = await newAccount(url, io, replacedNote(url))
  if (!made.ok) return made
  const second = await signedInClient({ url, io, providerKeys: {} })
  return second.ok ? second : err(second.error.message)
}

const hasKeyInEnvironment = (): boolean => (process.env.SWITCHYARD_API_KEY ?? '') !== ''

const isRefusedKey = ({ kind }: SignInFailure): boolean => kind === 'not_signed_in'

async function newAccount(url: string, io: CliIo, note: string): Promise<Result<null, string>> {
  const made = await makeAccount(new SwitchyardClient({ baseUrl: url }))
  if (!made.ok) {
    const { error } = made
    return err(
      error.kind === 'storage'
        ? error.message
        : `No account could be made on ${url}: ${failureText(error.failure)}`,
    )
  }
  io.err(`${note}\n`)
  return ok(null)
}
