// `npm run deploy`: one Worker in the owner's Cloudflare account (docs/deploying.md). Installs what is missing first.
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { HELP, parseDeployArguments } from './lib-node/deploy/arguments.mjs'
import { ensureInstalled } from './lib-node/ensure-installed.mjs'
import { OWN_NODE, ROOT } from './lib-node/repository.mjs'
import { runChild } from './lib-node/run-child.mjs'

/** The user can put this right: a wrong argument. */
const EXIT_USAGE = 2

/**
 * @param {string[]} given
 * @returns {Promise<number>} the exit code
 */
async function main(given) {
  const parsed = parseDeployArguments(given)
  if (!parsed.ok) {
    console.error(parsed.error)
    return EXIT_USAGE
  }
  if (parsed.value.help) {
    console.log(HELP)
    return 0
  }
  const installed = await ensureInstalled()
  if (!installed.ok) {
    console.error(installed.error.message)
    return installed.error.exitCode
  }
  // The first run is begun by the Node of the PATH, which may be too old to read the router's own sources.
  if (!process.features.typescript)
    return await runChild(OWN_NODE, [fileURLToPath(import.meta.url), ...given])
  const { deploy } = await import('./lib-node/deploy/deploy.mjs')
  const { WRANGLER_COMMAND, wranglerIn } = await import('./lib-node/deploy/wrangler-run.mjs')
  // Whoever interrupts is told what is done and what is not.
  const interrupt = new AbortController()
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => interrupt.abort())
  const stop = interrupt.signal
  return await deploy(parsed.value, {
    root: ROOT,
    wranglerIn: (place) => wranglerIn(WRANGLER_COMMAND, place),
    env: process.env,
    net: { fetch, nowMs: Date.now, pause: (ms) => pause(ms, undefined, { signal: stop }).catch(() => {}) },
    stop,
    say: (line) => console.log(line),
    complain: (line) => console.error(line),
  })
}

process.exitCode = await main(process.argv.slice(2))
