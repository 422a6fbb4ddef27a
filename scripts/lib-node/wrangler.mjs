// How this project calls wrangler: on its own Node, asking nothing, telling nobody, leaving its files in one place.
import { spawn } from 'node:child_process'
import path from 'node:path'
import { DIE_WITH_PARENT, OWN_NODE, SCRATCH, WRANGLER } from './repository.mjs'

/**
 * The command line, without the command itself.
 * @param {readonly string[]} args
 */
export function wranglerArguments(args) {
  // wrangler hands Node's own options on to its worker process, so that one notices a lost parent as well.
  return ['--import', DIE_WITH_PARENT, WRANGLER, ...args]
}

/**
 * @param {string} persistTo the state folder
 * @returns {NodeJS.ProcessEnv}
 */
export function wranglerEnvironment(persistTo) {
  return {
    ...process.env,
    WRANGLER_SEND_METRICS: 'false',
    WRANGLER_SEND_ERROR_REPORTS: 'false',
    // The banner comes with a question to the package registry for a newer release.
    WRANGLER_HIDE_BANNER: 'true',
    // A local router has no use for the location data that is otherwise fetched at start.
    CLOUDFLARE_CF_FETCH_ENABLED: 'false',
    // Otherwise both are written under the user's home.
    WRANGLER_LOG_PATH: path.join(SCRATCH, 'logs'),
    WRANGLER_REGISTRY_PATH: path.join(persistTo, 'registry'),
  }
}

/**
 * Runs wrangler to its end and keeps what it printed.
 * @param {readonly string[]} args
 * @param {{ cwd: string, persistTo: string }} place
 * @returns {Promise<{ code: number, output: string }>}
 */
export function runWrangler(args, { cwd, persistTo }) {
  return new Promise((resolve, reject) => {
    const child = spawn(OWN_NODE, wranglerArguments(args), {
      cwd,
      env: wranglerEnvironment(persistTo),
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    let output = ''
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8')
      stream.on('data', (piece) => {
        output += piece
      })
    }
    child.once('error', reject)
    child.once('close', (code) => resolve({ code: code ?? 1, output }))
  })
}
