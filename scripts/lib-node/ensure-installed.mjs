// Makes node_modules match package-lock.json before anything else runs. Plain JavaScript without packages, because it
// runs when there are none; also a command: `node scripts/lib-node/ensure-installed.mjs`.
import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, readFileSync, realpathSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { acquireLock } from './file-lock.mjs'
import { ROOT } from './repository.mjs'

export const OLDEST_NODE = 20

/** Another `npm ci` in the same folder takes half a minute; a slow network may need many. */
const WAIT_FOR_OTHER_MS = 15 * 60_000

/** Without a terminal npm says nothing until it is done, so a line now and then shows that it is at work. */
const PROGRESS_EVERY_MS = 5_000

/**
 * @typedef {{ ok: true, value: 'already' | 'installed' } | { ok: false, error: { message: string, exitCode: number } }} InstallResult
 * @typedef {{ lock: string, platform: string }} Stamp the lock's digest and the platform whose binaries were installed
 */

/**
 * @param {string} [root] the checkout
 * @param {{ runNpmCi?: (root: string) => Promise<number>, say?: (line: string) => void, nodeVersion?: string }} [world]
 * @returns {Promise<InstallResult>}
 */
export async function ensureInstalled(root = ROOT, world = {}) {
  const { runNpmCi = npmCi, say = (line) => console.error(line), nodeVersion = process.versions.node } = world
  const tooOld = nodeProblem(nodeVersion)
  if (tooOld !== undefined) return failed(tooOld, 1)
  const lockFile = path.join(root, 'package-lock.json')
  if (!existsSync(lockFile)) return failed(`${lockFile} is missing: this is not a whole checkout.`, 1)
  if (installReason(root) === undefined) return { ok: true, value: 'already' }

  const lock = await acquireLock(path.join(root, '.wrangler/install.lock'), {
    waitMs: WAIT_FOR_OTHER_MS,
    onWait: (owner) => say(`Another process (${owner.pid}) is installing packages here: waiting for it …`),
  })
  if (!lock.ok) return failed(`Process ${lock.error.pid} is still installing packages here.`, 1)
  try {
    const reason = installReason(root)
    if (reason === undefined) return { ok: true, value: 'already' }
    say(`Installing packages (${reason}). This takes about half a minute …`)
    const code = await runNpmCi(root)
    if (code !== 0) return failed(npmFailure(root, code), code)
    const still = installReason(root)
    if (still !== undefined) return failed(`npm ci ended well, and yet ${still}. ${byHand(root)}`, 1)
    return { ok: true, value: 'installed' }
  } finally {
    lock.value.release()
  }
}

/**
 * Why packages have to be installed. Remembers a yes in the stamp, so that the next question costs one read.
 * @param {string} root
 * @returns {string | undefined} undefined when all is right
 */
function installReason(root) {
  const stampFile = path.join(root, 'node_modules/.switchyard-install.json')
  const lockText = readFileSync(path.join(root, 'package-lock.json'), 'utf8')
  const wanted = { lock: createHash('sha256').update(lockText).digest('hex'), platform: platformOf(process) }
  const reason = whyInstall({
    wanted,
    stamp: readJson(stampFile),
    installed: readJson(path.join(root, 'node_modules/.package-lock.json')),
    lock: JSON.parse(lockText),
    hasOwnNode: existsSync(path.join(root, 'node_modules/.bin/node')),
  })
  if (reason === undefined && !sameStamp(readJson(stampFile), wanted)) {
    try {
      writeFileSync(stampFile, JSON.stringify(wanted))
    } catch {
      // A read-only checkout works too: the comparison is then made each time.
    }
  }
  return reason
}

/**
 * The decision by itself. The stamp is a shortcut; without one (packages installed by hand) npm's own record of what
 * is in node_modules is compared with the lock.
 * @param {{ wanted: Stamp, stamp: unknown, installed: unknown, lock: unknown, hasOwnNode: boolean }} facts
 * @returns {string | undefined} the reason to install, undefined for none
 */
export function whyInstall({ wanted, stamp, installed, lock, hasOwnNode }) {
  const present = packagesOf(installed)
  if (present === undefined) return 'there are none yet'
  if (!hasOwnNode) return 'the Node that the project runs on is missing'
  if (sameStamp(stamp, wanted)) return undefined
  if (isStamp(stamp) && stamp.platform !== wanted.platform) return `they are for ${stamp.platform}`
  const locked = packagesOf(lock) ?? {}
  for (const [place, entry] of Object.entries(locked)) {
    if (place === '') continue
    const there = present[place]
    // Packages for other platforms are locked as optional and never installed.
    if (there === undefined && entry.optional === true) continue
    if (there === undefined) return `${place} is missing`
    if (there.version !== entry.version) return `${place} has another version than the lock`
  }
  const extra = Object.keys(present).find((place) => locked[place] === undefined)
  return extra === undefined ? undefined : `${extra} is not in the lock`
}

/**
 * @param {string} version such as `20.11.1`
 * @returns {string | undefined} what to tell a person whose Node is too old
 */
export function nodeProblem(version) {
  const major = Number.parseInt(version, 10)
  if (major >= OLDEST_NODE) return undefined
  return `Switchyard needs Node ${OLDEST_NODE} or newer; this is ${version}. Get one from https://nodejs.org and run this again.`
}

/** @param {NodeJS.Process} system */
function platformOf(system) {
  return `${system.platform}-${system.arch}`
}

/**
 * @param {unknown} value
 * @returns {value is Stamp}
 */
function isStamp(value) {
  return typeof value === 'object' && value !== null && 'lock' in value && 'platform' in value
}

/**
 * @param {unknown} stamp
 * @param {Stamp} wanted
 */
function sameStamp(stamp, wanted) {
  return isStamp(stamp) && stamp.lock === wanted.lock && stamp.platform === wanted.platform
}

/**
 * @param {unknown} lock a parsed lock file of version 2 or 3
 * @returns {Record<string, { version?: string, optional?: boolean }> | undefined}
 */
function packagesOf(lock) {
  if (typeof lock !== 'object' || lock === null || !('packages' in lock)) return undefined
  const { packages } = lock
  return typeof packages === 'object' && packages !== null
    ? /** @type {Record<string, { version?: string, optional?: boolean }>} */ (packages)
    : undefined
}

/**
 * @param {string} file
 * @returns {unknown} undefined when the file is missing or no JSON
 */
function readJson(file) {
  try {
    return JSON.parse(readFileSync(file, 'utf8'))
  } catch {
    return undefined
  }
}

/**
 * Runs `npm ci` with its output on our error stream, so that ours stays what the command itself prints.
 * @param {string} root
 * @returns {Promise<number>} npm's exit code; 127 when there is no npm, 130 after Ctrl-C
 */
async function npmCi(root) {
  // npm must not run on the Node that it is about to replace.
  const folders = (process.env.PATH ?? '').split(path.delimiter)
  const outside = folders.filter(
    (folder) => !path.resolve(folder).startsWith(path.join(root, 'node_modules')),
  )
  const env = { ...process.env, PATH: outside.join(path.delimiter) }
  // Development packages are the product here: NODE_ENV=production must not leave them out.
  // Warnings would be about Node's version only, which is not the one that the packages will run on.
  const args = ['ci', '--include=dev', '--no-audit', '--no-fund', '--loglevel=error']
  const child = spawn('npm', args, {
    cwd: root,
    env,
    stdio: ['ignore', process.stderr, process.stderr],
    shell: process.platform === 'win32',
  })
  const started = Date.now()
  const progress = setInterval(() => {
    if (!process.stderr.isTTY)
      console.error(`… still installing, ${Math.round((Date.now() - started) / 1000)} s`)
  }, PROGRESS_EVERY_MS)
  const stop = () => child.kill('SIGTERM')
  const signals = /** @type {const} */ (['SIGINT', 'SIGTERM', 'SIGHUP'])
  for (const signal of signals) process.on(signal, stop)
  try {
    return await new Promise((resolve) => {
      child.once('error', () => resolve(127))
      child.once('exit', (code, signal) => resolve(signal === null ? (code ?? 1) : 130))
    })
  } finally {
    clearInterval(progress)
    for (const signal of signals) process.off(signal, stop)
  }
}

/** @param {string} root */
function byHand(root) {
  return `To do it by hand: cd '${root}' && rm -rf node_modules && npm ci`
}

/**
 * @param {string} root
 * @param {number} code
 */
function npmFailure(root, code) {
  if (code === 127) return 'npm was not found. It comes with Node: https://nodejs.org'
  if (code === 130) return 'Installing was interrupted. Run the same command again to go on.'
  return [
    `npm ci failed with exit code ${code}; its own words are above.`,
    'Usual reasons: no way to the package registry (try `npm ping`), a full disk, or a package-lock.json that was',
    'edited (try `git checkout package-lock.json`).',
    byHand(root),
  ].join('\n')
}

/**
 * @param {string} message
 * @param {number} exitCode
 * @returns {InstallResult}
 */
function failed(message, exitCode) {
  return { ok: false, error: { message, exitCode } }
}

if (process.argv[1] !== undefined && realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)) {
  const result = await ensureInstalled()
  if (!result.ok) {
    console.error(result.error.message)
    process.exitCode = result.error.exitCode
  }
}
