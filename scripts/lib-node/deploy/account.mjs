// Whose account is deployed to.
import { z } from 'zod'
import { parseJson } from './parse-json.mjs'
import { lastWords } from './wrangler-run.mjs'

const LoggedOut = z.object({ loggedIn: z.literal(false) })
const LoggedIn = z.object({
  loggedIn: z.literal(true),
  accounts: z.array(z.object({ id: z.string(), name: z.string() })),
})
const WhoAmI = z.union([LoggedOut, LoggedIn])

/**
 * @param {import('./wrangler-run.mjs').RunWrangler} wrangler
 * @param {string | undefined} wanted the account that the user named, in the configuration or the environment
 * @returns {Promise<{ ok: true, value: { id: string, name: string } } | { ok: false, error: string }>}
 */
export async function chooseAccount(wrangler, wanted) {
  const result = await wrangler(['whoami', '--json'])
  const told = parseJson(WhoAmI, result.stdout)
  if (told === undefined) return { ok: false, error: `The login could not be checked.\n${lastWords(result)}` }
  if (!told.loggedIn) {
    return {
      ok: false,
      error:
        'Not logged in to Cloudflare: run `npx wrangler login`, or set CLOUDFLARE_API_TOKEN to an API token.',
    }
  }
  const { accounts } = told
  if (wanted !== undefined) {
    const known = accounts.find(({ id }) => id === wanted)
    // A token without the right to list accounts may still work on one.
    if (known !== undefined || accounts.length === 0) {
      return { ok: true, value: known ?? { id: wanted, name: 'the account that you named' } }
    }
    return { ok: false, error: `This login has no account ${wanted}. It has:\n${listOf(accounts)}` }
  }
  const [only, ...others] = accounts
  if (only === undefined) {
    return {
      ok: false,
      error: 'This login does not say which accounts it has: set CLOUDFLARE_ACCOUNT_ID to the id of yours.',
    }
  }
  if (others.length === 0) return { ok: true, value: only }
  return {
    ok: false,
    error: `This login has several accounts:\n${listOf(accounts)}\nChoose one: CLOUDFLARE_ACCOUNT_ID=${only.id} npm run deploy (or account_id in wrangler.deploy.toml).`,
  }
}

/** @param {readonly { id: string, name: string }[]} accounts */
const listOf = (accounts) => accounts.map(({ id, name }) => `  ${id}  ${name}`).join('\n')
