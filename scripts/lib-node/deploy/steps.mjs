// What a deployment does to an account, one function per step. Each looks first and changes only what is missing, so
// that the next run goes on where one was cut off.
import { readdirSync } from 'node:fs'
import { z } from 'zod'
import { parseJson } from './parse-json.mjs'
import { lastWords } from './wrangler-run.mjs'

/**
 * @template T
 * @typedef {{ ok: true, value: T } | { ok: false, error: string }} Outcome the error is for the user, with wrangler's last words
 */

/** @typedef {import('./wrangler-run.mjs').RunWrangler} RunWrangler */

const Databases = z.array(z.object({ uuid: z.string(), name: z.string() }))
const Secrets = z.array(z.object({ name: z.string() }))
const Deployed = z.object({
  type: z.literal('deploy'),
  targets: z.array(z.string()).default([]),
  bundle_size: z.object({ gzip_bytes: z.number() }).optional(),
})

/** What `wrangler secret list` says of a Worker that was never deployed. */
const NO_WORKER = /Worker "[^"]*" not found/

/**
 * @param {RunWrangler} wrangler
 * @param {string} name
 * @returns {Promise<Outcome<{ id: string, created: boolean }>>}
 */
export async function ensureDatabase(wrangler, name) {
  const found = await findDatabase(wrangler, name)
  if (!found.ok) return found
  if (found.value !== undefined) return { ok: true, value: { id: found.value, created: false } }
  const made = await wrangler(['d1', 'create', name])
  if (made.code !== 0) return failed(`The D1 database ${name} could not be created.`, made)
  const again = await findDatabase(wrangler, name)
  if (!again.ok) return again
  if (again.value !== undefined) return { ok: true, value: { id: again.value, created: true } }
  return { ok: false, error: `The D1 database ${name} was created but is not listed yet: run this again.` }
}

/**
 * @param {RunWrangler} wrangler
 * @param {string} name
 * @returns {Promise<Outcome<string | undefined>>}
 */
async function findDatabase(wrangler, name) {
  const result = await wrangler(['d1', 'list', '--json'])
  const listed = result.code === 0 ? parseJson(Databases, result.stdout) : undefined
  if (listed === undefined) return failed('The D1 databases of the account could not be listed.', result)
  return { ok: true, value: listed.find((database) => database.name === name)?.uuid }
}

/**
 * @param {string} folder
 * @returns {string[]} the migrations' file names, in their order
 */
export const migrationsIn = (folder) =>
  readdirSync(folder)
    .filter((name) => name.endsWith('.sql'))
    .sort()

/**
 * @param {RunWrangler} wrangler
 * @param {{ config: string, names: readonly string[] }} what `names`: all migrations there are
 * @returns {Promise<Outcome<string[]>>} the names of those that were applied now
 */
export async function applyRemoteMigrations(wrangler, { config, names }) {
  const result = await wrangler(['d1', 'migrations', 'apply', 'DB', '--remote', '--config', config])
  if (result.code !== 0) {
    return failed('The D1 migrations could not be applied; the code was not deployed.', result)
  }
  return { ok: true, value: names.filter((name) => result.stdout.includes(name)) }
}

/**
 * Makes the bootstrap secret of a Worker that has none. Without it nobody can make an account (D43), and it is there
 * before the first version that serves requests: wrangler creates an empty Worker for it, which has no address yet.
 * @param {RunWrangler} wrangler
 * @param {{ config: string, makeToken: () => string, onToken: (token: string) => void }} what `onToken` is told the token
 *   before it is set: whatever happens then, it may be the one that holds
 * @returns {Promise<Outcome<{ made: boolean }>>}
 */
export async function ensureBootstrapSecret(wrangler, { config, makeToken, onToken }) {
  const result = await wrangler(['secret', 'list', '--format', 'json', '--config', config])
  const isNew = result.code !== 0 && NO_WORKER.test(`${result.stdout}${result.stderr}`)
  const listed = isNew ? [] : result.code === 0 ? parseJson(Secrets, result.stdout) : undefined
  if (listed === undefined) return failed('The secrets of the Worker could not be listed.', result)
  const names = listed.map(({ name }) => name)
  if (names.includes('LOCAL_DEV')) {
    return {
      ok: false,
      error: `The Worker has a secret LOCAL_DEV, which is for routers on your own machine: remove it with \`npx wrangler secret delete LOCAL_DEV --config ${config}\`.`,
    }
  }
  if (names.includes('BOOTSTRAP_TOKEN')) return { ok: true, value: { made: false } }
  const token = makeToken()
  onToken(token)
  const put = await wrangler(['secret', 'put', 'BOOTSTRAP_TOKEN', '--config', config], { input: token })
  if (put.code !== 0) return failed('The secret BOOTSTRAP_TOKEN could not be set.', put)
  return { ok: true, value: { made: true } }
}

/**
 * @param {RunWrangler} wrangler
 * @param {{ config: string, flags?: readonly string[] }} what
 * @returns {Promise<Outcome<{ targets: string[], gzipBytes: number | undefined }>>} `targets` as wrangler words them
 */
export async function deployCode(wrangler, { config, flags = [] }) {
  const result = await wrangler(['deploy', ...flags, '--config', config])
  const told = result.told.map((entry) => Deployed.safeParse(entry).data).find(Boolean)
  if (result.code !== 0 || told === undefined)
    return failed('wrangler could not finish the deployment of the code.', result)
  return { ok: true, value: { targets: told.targets, gzipBytes: told.bundle_size?.gzip_bytes } }
}

/**
 * @param {string} sentence
 * @param {import('./wrangler-run.mjs').WranglerResult} result
 * @returns {{ ok: false, error: string }}
 */
const failed = (sentence, result) => ({ ok: false, error: `${sentence}\n${lastWords(result)}` })
