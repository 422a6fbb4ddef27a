// `npm run dev`: a local router. Installs what is missing, applies the D1 migrations to the state folder, and runs
// `wrangler dev` with LOCAL_DEV set, which is set nowhere else (D43).
import os from 'node:os'
import { startCleanUpTimer } from './lib-node/clean-up-timer.mjs'
import { parseDevArguments } from './lib-node/dev-arguments.mjs'
import { ensureInstalled } from './lib-node/ensure-installed.mjs'
import { applyMigrations } from './lib-node/migrations.mjs'
import { portMessage, probePort } from './lib-node/port.mjs'
import { startGroup } from './lib-node/process-group.mjs'
import { DEFAULT_STATE, OWN_NODE, ROOT } from './lib-node/repository.mjs'
import { lockState } from './lib-node/state-lock.mjs'
import { runWrangler, wranglerArguments, wranglerEnvironment } from './lib-node/wrangler.mjs'

/** The user can put this right: a wrong argument, a busy port, a state folder in use. */
const EXIT_USAGE = 2

const HELP = `npm run dev -- [options]

A local router for development: applies the D1 migrations, then runs wrangler dev with every option passed on.

  --port PORT           8787 unless given
  --ip ADDRESS          127.0.0.1 unless given; loopback only
  --persist-to FOLDER   the state; .wrangler/state unless given
  --var NAME:VALUE      a variable of the Worker; may be repeated
                        (--var OLLAMA_BASE_URL:http://127.0.0.1:11434)

The options of wrangler dev:
`

/**
 * @param {string} message
 * @param {number} exitCode
 */
function refuse(message, exitCode) {
  console.error(message)
  return exitCode
}

/**
 * @param {string[]} given
 * @returns {Promise<number>} the exit code
 */
async function dev(given) {
  const parsed = parseDevArguments(given, { folder: process.cwd(), defaultState: DEFAULT_STATE })
  if (!parsed.ok) return refuse(parsed.error, EXIT_USAGE)
  const installed = await ensureInstalled()
  if (!installed.ok) return refuse(installed.error.message, installed.error.exitCode)
  const { ip, port, persistTo, help, forDev, forMigrations } = parsed.value
  if (help) {
    const { output } = await runWrangler(['dev', '--help'], { cwd: ROOT, persistTo })
    console.log(HELP + output)
    return 0
  }

  const state = await lockState(persistTo, { ip, port })
  if (!state.ok) return refuse(state.error, EXIT_USAGE)
  try {
    // Port 0 is "any", for wrangler to choose.
    const found = port === 0 ? 'free' : await probePort(ip, port)
    if (found !== 'free') {
      return refuse(portMessage(found, ip, port, 'Choose another: npm run dev -- --port 8788'), EXIT_USAGE)
    }
    const migrated = await applyMigrations({ root: ROOT, persistTo, shared: forMigrations })
    if (!migrated.ok) return refuse(`The D1 migrations could not be applied:\n${migrated.error}`, 1)
    if (migrated.value === 'applied') console.error(`D1 migrations applied to ${persistTo}`)
    return await serve(forDev, persistTo, state.value, originOf(ip, port))
  } finally {
    state.value.release()
  }
}

/**
 * @param {string[]} forDev
 * @param {string} persistTo
 * @param {import('./lib-node/file-lock.mjs').HeldLock} lock
 * @param {string | undefined} origin
 */
async function serve(forDev, persistTo, lock, origin) {
  // Ours first: of two variables of one name the later one, the user's, is taken.
  const named = ['--var', `HOST_NAME:${os.hostname().replace(/\.local$/i, '')}`]
  const args = ['dev', '--show-interactive-dev-session=false', ...named, ...forDev, '--var', 'LOCAL_DEV:1']
  const router = await startGroup(OWN_NODE, wranglerArguments(args), {
    cwd: ROOT,
    env: wranglerEnvironment(persistTo),
  })
  lock.update({ group: router.group })
  // wrangler's launcher hands SIGINT and SIGTERM on, SIGHUP not: it is always asked by SIGTERM.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => router.stop('SIGTERM'))
  const stop = origin === undefined ? () => {} : startCleanUpTimer(origin)
  try {
    return await router.ended
  } finally {
    stop()
  }
}

/**
 * Where the router is reached from this machine; undefined while wrangler chooses the port.
 * @param {string} ip
 * @param {number} port
 */
function originOf(ip, port) {
  if (port === 0) return undefined
  const host = ip.includes(':') && !ip.startsWith('[') ? `[${ip}]` : ip
  return `http://${host}:${port}`
}

// npm dies of a SIGKILL without a word to its children; one that npm started then has nobody who would stop it.
if (process.env.npm_lifecycle_event !== undefined) await import('./lib-node/die-with-parent.mjs')
process.exitCode = await dev(process.argv.slice(2))
