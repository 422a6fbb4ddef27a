// What may follow `npm run deploy --`.

export const HELP = `npm run deploy [-- options]

Deploys this router as one Worker to your Cloudflare account: finds or creates its D1 database, applies the
migrations, makes the bootstrap secret when there is none, uploads the code, waits until it answers. Running it
again updates the code and keeps everything else.

  --dry-run   build and check all that needs no account, say what would be done, change nothing
  --help      this text

Needs a login (npx wrangler login) or CLOUDFLARE_API_TOKEN; with several accounts also CLOUDFLARE_ACCOUNT_ID.
Settings of your own go into wrangler.deploy.toml (name, account_id, routes, workers_dev, [vars]); docs/deploying.md
has examples.`

/**
 * @param {readonly string[]} given
 * @returns {{ ok: true, value: { dryRun: boolean, help: boolean } } | { ok: false, error: string }}
 */
export function parseDeployArguments(given) {
  const value = { dryRun: false, help: false }
  for (const arg of given) {
    if (arg === '--dry-run') value.dryRun = true
    else if (arg === '--help' || arg === '-h') value.help = true
    else return { ok: false, error: `${arg} is no option of npm run deploy; --help lists them.` }
  }
  return { ok: true, value }
}
