import { SwitchyardClient } from '../client/client.ts'
import { type ClientFailure, codeOf } from '../client/failure.ts'
import type { ProviderKeys } from '../client/provider-header.ts'
import { err, ok, type Result } from '../protocol/result.ts'
import { type Credentials, loadCredentials, saveCredentials } from './credentials.ts'
import type { CliIo } from './io.ts'

/** Why there is no signed-in client. `message` is a sentence that says what to do. */
export type SignInFailure = {
  kind: 'not_reachable' | 'not_signed_in' | 'refused' | 'storage'
  message: string
}

export type SignInOptions = { url: string; io: CliIo; providerKeys: ProviderKeys }

/** Where a key comes from; it decides what can be done when the router does not take it. */
export type KeySource = 'stored' | 'environment' | 'typed'

/** A cached token that ends within this time is not worth starting a run with. */
const TOKEN_MARGIN_MS = 5 * 60_000

/**
 * A client with a valid session token for the router at `url`. The API key comes from SWITCHYARD_API_KEY, else from
 * the stored credentials; a stored token is used again while it is valid, and when it expires in the middle of a run
 * the client signs in by itself (EC 29.11).
 */
export async function signedInClient(
  options: SignInOptions,
): Promise<Result<SwitchyardClient, SignInFailure>> {
  const { url, providerKeys } = options
  const stored = loadCredentials(url)
  if (!stored.ok) return err({ kind: 'storage', message: stored.error.message })
  const fromEnv = process.env.SWITCHYARD_API_KEY || undefined
  const apiKey = fromEnv ?? stored.value?.api_key
  const source: KeySource = fromEnv === undefined ? 'stored' : 'environment'
  if (apiKey === undefined) {
    const message = `not signed in to ${url}: run \`switchyard login --url ${url}\`, or set SWITCHYARD_API_KEY`
    return err({ kind: 'not_signed_in', message })
  }
  // A token of the stored account is of no use to the account that the environment names.
  const account = stored.value?.api_key === apiKey ? stored.value : undefined
  const token = usableToken(account)
  const client: SwitchyardClient = new SwitchyardClient({
    baseUrl: url,
    providerKeys,
    ...(token === undefined ? {} : { token }),
    reauthenticate: async () => {
      const renewed = await client.signIn(apiKey)
      if (!renewed.ok) return renewed
      rememberToken(options, account, renewed.value)
      return ok(renewed.value.token)
    },
  })
  if (token !== undefined) {
    const me = await client.me()
    if (me.ok) return ok(client)
    // Revoked, or of a router whose data was reset: the key may still be good.
    if (me.error.kind !== 'http' || me.error.status !== 401) return err(signInFailure(me.error, url, source))
  }
  const signedIn = await client.signIn(apiKey)
  if (!signedIn.ok) return err(signInFailure(signedIn.error, url, source))
  rememberToken(options, account, signedIn.value)
  return ok(client)
}

function usableToken(account: Credentials | undefined): string | undefined {
  if (!account?.token) return undefined
  const left = Date.parse(account.token.expires_at) - Date.now()
  return left > TOKEN_MARGIN_MS ? account.token.value : undefined
}

function rememberToken(
  { url, io }: SignInOptions,
  account: Credentials | undefined,
  issued: { token: string; expires_at: string },
): void {
  // A key from the environment is not ours to write down, nor is its token.
  if (!account) return
  const token = { value: issued.token, expires_at: issued.expires_at }
  const saved = saveCredentials(url, { ...account, token })
  if (!saved.ok)
    io.err(`${io.paint.yellow('note')}: the session token was not kept: ${saved.error.message}\n`)
}

/** Sorts a failed sign-in into what the user can do about it. */
export function signInFailure(failure: ClientFailure, url: string, source: KeySource): SignInFailure {
  switch (failure.kind) {
    case 'network':
    case 'aborted':
      return {
        kind: 'not_reachable',
        message: `the router at ${url} cannot be reached (${failure.message}); is it running? \`npm start\` starts one`,
      }
    case 'http':
      return failure.status === 401
        ? {
            kind: 'not_signed_in',
            message: refusedKey(failure.code, url, source),
          }
        : { kind: 'refused', message: `${url} refused: ${failure.message} (${failure.code})` }
    default:
      return {
        kind: 'not_reachable',
        message: `${url} does not answer like a Switchyard router (${codeOf(failure)}: ${failure.message})`,
      }
  }
}

function refusedKey(code: string, url: string, source: KeySource): string {
  switch (source) {
    case 'stored':
      return `${url} does not know the stored API key any more (${code}): run \`switchyard login --url ${url}\``
    case 'environment':
      return `${url} does not accept the key in SWITCHYARD_API_KEY (${code}): correct it, or unset it to use the stored one`
    case 'typed':
      return `${url} does not accept this API key (${code})`
  }
}
