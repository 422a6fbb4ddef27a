// `npm run deploy -- --dry-run`: all that needs no account and no network.
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { z } from 'zod'
import { writeConfiguration } from './configuration.mjs'
import { deployCode, migrationsIn } from './steps.mjs'

const Metadata = z.object({ bindings: z.array(z.object({ name: z.string(), type: z.string() })) })

/**
 * Builds what would be uploaded into `.wrangler/deploy/bundle` and says what a deployment would do.
 * @param {import('./wrangler-run.mjs').RunWrangler} wrangler
 * @param {{ configuration: import('./configuration.mjs').Configuration, scratch: string, say: (line: string) => void }} what
 * @returns {Promise<string | undefined>} what went wrong
 */
export async function dryRun(wrangler, { configuration, scratch, say }) {
  const { merged, migrations } = configuration
  // Not the file of a real deployment: that one holds the database's id, and other commands read it.
  const config = path.join(scratch, 'dry-run.toml')
  writeConfiguration(config, merged, {})
  const upload = path.join(scratch, 'bundle', 'upload.form')
  const flags = ['--dry-run', '--outdir', path.dirname(upload), '--outfile', upload]
  const built = await deployCode(wrangler, { config, flags })
  if (!built.ok) return built.error
  const bindings = await bindingsOf(upload)
  const size =
    built.value.gzipBytes === undefined ? '' : `, ${Math.round(built.value.gzipBytes / 1024)} KiB compressed`

  say(`  built       ${path.dirname(upload)}${size}
  bindings    ${bindings.map(({ name, type }) => `${name} (${type})`).join(', ')}
  migrations  ${migrationsIn(migrations).join(', ')}

A deployment would, in this order:
  1. check the login to Cloudflare and choose the account${merged.account_id === undefined ? '' : ` ${merged.account_id}`}
  2. find the D1 database ${merged.name}, or create it
  3. apply those of the migrations that it lacks
  4. make the secret BOOTSTRAP_TOKEN, unless there is one
  5. upload the code${whereTo(merged)}
  6. ask /status until it answers, and say how to sign in

Nothing was changed.`)
  return undefined
}

/** @param {import('./configuration.mjs').Merged} merged */
function whereTo({ name, routes = [], workers_dev }) {
  const places = routes.map((route) => (typeof route === 'string' ? route : route.pattern))
  if (workers_dev ?? places.length === 0) places.push(`${name}.<your subdomain>.workers.dev`)
  return places.length === 0 ? ', which no address leads to' : ` to ${places.join(', ')}`
}

/**
 * The bindings that a built upload gives to the Worker.
 * @param {string} file a multipart form
 */
async function bindingsOf(file) {
  const body = readFileSync(file)
  const boundary = body.subarray(2, body.indexOf('\r\n')).toString('latin1')
  const headers = { 'Content-Type': `multipart/form-data; boundary=${boundary}` }
  const form = await new Response(new Uint8Array(body), { headers }).formData()
  const metadata = form.get('metadata')
  const text = metadata instanceof Blob ? await metadata.text() : metadata
  return Metadata.parse(JSON.parse(text ?? '')).bindings
}
