// The sequence of `npm run deploy`. Imported only once the packages are installed.
import { randomBytes } from 'node:crypto'
import { mkdirSync } from 'node:fs'
import path from 'node:path'
import { chooseAccount } from './account.mjs'
import { addressOf, waitForAnswer } from './address.mjs'
import { readConfiguration, writeConfiguration } from './configuration.mjs'
import { dryRun } from './dry-run.mjs'
import {
  applyRemoteMigrations,
  deployCode,
  ensureBootstrapSecret,
  ensureDatabase,
  migrationsIn,
} from './steps.mjs'

/** The user can put this right in a file of his. */
const EXIT_USAGE = 2

/** As many as the router's own tokens have; nobody guesses it. */
const TOKEN_BYTES = 32

/**
 * @typedef {object} World
 * @property {string} root the checkout
 * @property {(place: import('./wrangler-run.mjs').Place) => import('./wrangler-run.mjs').RunWrangler} wranglerIn
 * @property {NodeJS.ProcessEnv} env
 * @property {import('./address.mjs').Net} net
 * @property {AbortSignal} stop the user interrupts
 * @property {(line: string) => void} say what was done
 * @property {(line: string) => void} complain what went wrong
 */

/** Where the generated configuration lies, from the checkout on. */
export const GENERATED = '.wrangler/deploy/wrangler.toml'

/**
 * @param {{ dryRun: boolean }} options
 * @param {World} world
 * @returns {Promise<number>} the exit code: 0, 1 when a step failed, 2 when the configuration is wrong
 */
export async function deploy(options, world) {
  const { root, say, complain } = world
  const configuration = readConfiguration(root)
  if (!configuration.ok) {
    complain(configuration.error)
    return EXIT_USAGE
  }
  const scratch = path.join(root, path.dirname(GENERATED))
  mkdirSync(scratch, { recursive: true })
  const wrangler = world.wranglerIn({ root, scratch, stop: world.stop })
  const { merged, sources } = configuration.value
  say(
    `${options.dryRun ? 'Dry run: deploying' : 'Deploying'} ${merged.name}, configured by ${sources.join(' and ')}`,
  )

  /** @type {Reached} */
  const reached = {}
  try {
    const problem = options.dryRun
      ? await dryRun(wrangler, { configuration: configuration.value, scratch, say })
      : await remoteSteps(wrangler, configuration.value, world, reached)
    if (problem !== undefined) complain(problem)
    else if (reached.token === undefined && reached.address !== undefined) {
      say(`\nSign in: npm run switchyard -- login --url ${reached.address}`)
    }
    return problem === undefined ? 0 : 1
  } finally {
    // Whatever else failed: a token that is set and was never shown would be lost.
    tellToken(say, reached)
  }
}

/**
 * How far a deployment came: the token once it is about to be set, whether it surely was, and the router's address.
 * @typedef {{ token?: string, tokenIsSet?: boolean, address?: string }} Reached
 */

/**
 * @param {import('./wrangler-run.mjs').RunWrangler} anyAccount
 * @param {import('./configuration.mjs').Configuration} configuration
 * @param {World} world
 * @param {Reached} reached is filled in on the way
 * @returns {Promise<string | undefined>} what went wrong
 */
async function remoteSteps(anyAccount, { merged, migrations }, { root, env, net, stop, say }, reached) {
  /** @param {string} what @param {string} text */
  const tell = (what, text) => say(`  ${what.padEnd(10)}  ${text}`)

  const account = await chooseAccount(
    anyAccount,
    merged.account_id ?? (env.CLOUDFLARE_ACCOUNT_ID || undefined),
  )
  if (!account.ok) return account.error
  const accountId = account.value.id
  tell('account', `${account.value.name} (${accountId})`)
  /** @type {import('./wrangler-run.mjs').RunWrangler} */
  const wrangler = (args, how) => anyAccount(args, { ...how, accountId })

  const database = await ensureDatabase(wrangler, merged.name)
  if (!database.ok) return database.error
  tell('database', `${merged.name} (${database.value.id}), ${database.value.created ? 'created' : 'found'}`)
  writeConfiguration(path.join(root, GENERATED), merged, { accountId, databaseId: database.value.id })
  const config = GENERATED

  const names = migrationsIn(migrations)
  const applied = await applyRemoteMigrations(wrangler, { config, names })
  if (!applied.ok) return applied.error
  tell(
    'migrations',
    applied.value.length === 0 ? 'all applied already' : `applied ${applied.value.join(', ')}`,
  )

  const secret = await ensureBootstrapSecret(wrangler, {
    config,
    makeToken: () => randomBytes(TOKEN_BYTES).toString('base64url'),
    onToken: (token) => {
      reached.token = token
    },
  })
  if (!secret.ok) return secret.error
  reached.tokenIsSet = secret.value.made
  tell('secret', `BOOTSTRAP_TOKEN ${secret.value.made ? 'made' : 'is set already, kept'}`)

  const code = await deployCode(wrangler, { config })
  if (!code.ok) return code.error
  const { targets, gzipBytes } = code.value
  const size = gzipBytes === undefined ? '' : `, ${Math.round(gzipBytes / 1024)} KiB compressed`
  tell('code', `deployed${size}: ${targets.join(', ') || 'no address leads to it'}`)

  const address = addressOf(merged.routes ?? [], targets)
  if (address === undefined) {
    tell('status', 'not asked: the routes name no single host')
    return undefined
  }
  reached.address = address
  const answer = await waitForAnswer(address, net, stop)
  if (!answer.ok) {
    return `It is deployed, but ${address} does not answer yet (${answer.error}). A new address can take some minutes: look with \`npm run switchyard -- status --url ${address}\`.`
  }
  tell('status', `${address} answers, release ${answer.value.version}`)
  return undefined
}

/**
 * @param {(line: string) => void} say
 * @param {Reached} reached
 */
function tellToken(say, { token, tokenIsSet = false, address }) {
  if (token === undefined) return
  if (!tokenIsSet) {
    say(`
Whether the bootstrap token was set is not known. If the next npm run deploy says that BOOTSTRAP_TOKEN is set already,
it is this one; it is shown only now:

  ${token}`)
    return
  }
  say(`
The bootstrap token is what this router asks for before it makes an account. It is shown only now:

  ${token}

Make your account; the command asks for the token:

  npm run switchyard -- login --url ${address ?? 'https://YOUR-ADDRESS'} --bootstrap-token`)
}
