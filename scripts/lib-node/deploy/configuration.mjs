// The configuration that is deployed: the repository's wrangler.toml, with wrangler.deploy.toml of the user over it. The
// first holds a placeholder for the database's id and is never written to; what wrangler reads is generated.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { parse, stringify, TomlError } from 'smol-toml'
import { z } from 'zod'
import { problemsOf } from './variables.mjs'

/** Where a user's own settings are, beside wrangler.toml. Git ignores it. */
export const OVERRIDES = 'wrangler.deploy.toml'

/** The variable that opens the creation of accounts; only local commands may set it (D43). */
const LOCAL_ONLY = 'LOCAL_DEV'

const Overrides = z.strictObject({
  // A label of a host name under workers.dev.
  name: z
    .string()
    .regex(
      /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/,
      'must be lower-case letters, digits and inner dashes, at most 63',
    )
    .optional(),
  account_id: z
    .string()
    .regex(/^[0-9a-f]{32}$/, 'must be the 32 hexadecimal digits of an account id')
    .optional(),
  workers_dev: z.boolean().optional(),
  routes: z.array(z.union([z.string(), z.looseObject({ pattern: z.string() })])).optional(),
  // The router compares texts: a TOML `true` would silently not count.
  vars: z.record(z.string(), z.string('must be a text in quotes')).optional(),
})

const Database = z.looseObject({ binding: z.literal('DB'), migrations_dir: z.string() })
const Base = z.looseObject({
  name: z.string(),
  main: z.string(),
  alias: z.record(z.string(), z.string()).default({}),
  d1_databases: z.tuple([Database]),
  vars: z.record(z.string(), z.unknown()).default({}),
})

/**
 * @typedef {z.infer<typeof Base> & Omit<z.infer<typeof Overrides>, 'name' | 'vars'>} Merged
 * @typedef {{ merged: Merged, sources: string[], migrations: string }} Configuration
 *   `sources` are the files it was read from; `migrations` is the absolute folder of the D1 migrations
 */

/**
 * @param {string} root the checkout
 * @returns {{ ok: true, value: Configuration } | { ok: false, error: string }} the error says what to change
 */
export function readConfiguration(root) {
  const base = Base.parse(parse(readFileSync(path.join(root, 'wrangler.toml'), 'utf8')))
  const own = readOverrides(path.join(root, OVERRIDES))
  if (!own.ok) return own
  const vars = { ...base.vars, ...own.value?.vars }
  const refused = Object.keys(vars).map(refusalOf).find(Boolean)
  if (refused !== undefined) return { ok: false, error: refused }
  const problems = problemsOf(vars)
  if (problems.length > 0) {
    const lines = problems.map((problem) => `  ${problem}`)
    return { ok: false, error: `The router could not use all of its variables:\n${lines.join('\n')}` }
  }
  const [database] = base.d1_databases
  const migrations = path.resolve(root, database.migrations_dir)
  const name = own.value?.name ?? base.name
  /** @type {Merged} */
  const merged = {
    ...base,
    ...own.value,
    name,
    main: path.resolve(root, base.main),
    alias: Object.fromEntries(
      Object.entries(base.alias).map(([from, to]) => [
        from,
        to.startsWith('.') ? path.resolve(root, to) : to,
      ]),
    ),
    // Each router has a database of its own: under one name, two would share their accounts.
    d1_databases: [{ ...database, database_name: name, migrations_dir: migrations }],
    vars,
  }
  return {
    ok: true,
    value: { merged, sources: own.value ? ['wrangler.toml', OVERRIDES] : ['wrangler.toml'], migrations },
  }
}

/**
 * Writes what wrangler reads. Its paths are absolute, since it lies elsewhere than the files it was made from.
 * @param {string} file
 * @param {Merged} merged
 * @param {{ accountId?: string, databaseId?: string }} found what the account says; the placeholder stays without it
 */
export function writeConfiguration(file, merged, { accountId, databaseId }) {
  const [database] = merged.d1_databases
  const whole = {
    ...merged,
    ...(accountId === undefined ? {} : { account_id: accountId }),
    d1_databases: [{ ...database, ...(databaseId === undefined ? {} : { database_id: databaseId }) }],
  }
  mkdirSync(path.dirname(file), { recursive: true })
  writeFileSync(
    file,
    `# Written anew by each npm run deploy. Settings of your own go into ${OVERRIDES}.\n${stringify(whole)}`,
  )
}

/**
 * @param {string} file
 * @returns {{ ok: true, value: z.infer<typeof Overrides> | undefined } | { ok: false, error: string }}
 */
function readOverrides(file) {
  if (!existsSync(file)) return { ok: true, value: undefined }
  let read
  try {
    read = parse(readFileSync(file, 'utf8'))
  } catch (error) {
    if (!(error instanceof TomlError)) throw error
    return { ok: false, error: `${OVERRIDES} is no valid TOML: ${error.message}` }
  }
  const checked = Overrides.safeParse(read)
  if (checked.success) return { ok: true, value: checked.data }
  const issues = checked.error.issues.map(({ path: at, message }) =>
    at.length === 0 ? message : `${at.join('.')}: ${message}`,
  )
  return {
    ok: false,
    error: `${OVERRIDES} may hold name, account_id, routes, workers_dev and [vars] (${issues.join('; ')})`,
  }
}

/**
 * @param {string} name of a variable
 * @returns {string | undefined} why it must not be deployed as one
 */
function refusalOf(name) {
  if (name === LOCAL_ONLY) {
    return `${LOCAL_ONLY} is set in the configuration. It lets anybody make accounts and is for routers on your own machine: remove it.`
  }
  if (name === 'BOOTSTRAP_TOKEN' || name.endsWith('_API_KEY')) {
    return `${name} is a secret, and variables are shown in clear: remove it from [vars] and use \`npx wrangler secret put ${name}\` (docs/deploying.md).`
  }
  return undefined
}
