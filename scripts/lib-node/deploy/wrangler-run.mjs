// One call of wrangler during a deployment: asks nothing, keeps what it printed, and reads what it tells to programs.
import { spawn } from 'node:child_process'
import { readFileSync, rmSync } from 'node:fs'
import path from 'node:path'
import { stripVTControlCharacters } from 'node:util'
import { z } from 'zod'
import { OWN_NODE } from '../repository.mjs'
import { wranglerArguments, wranglerEnvironment } from '../wrangler.mjs'
import { parseJson } from './parse-json.mjs'

const Entry = z.record(z.string(), z.unknown())

/** Enough for an error with its explanation, and no more than a person reads. */
const LAST_LINES = 15

/**
 * @typedef {{ code: number, stdout: string, stderr: string, told: Record<string, unknown>[] }} WranglerResult
 *   `told` are the entries that wrangler writes for programs
 * @typedef {{ root: string, scratch: string, stop: AbortSignal }} Place `scratch` is an existing folder for wrangler's files;
 *   `stop` ends the call that runs and lets no other begin
 * @typedef {(args: readonly string[], how?: { input?: string, accountId?: string | undefined }) => Promise<WranglerResult>} RunWrangler
 *   `input` goes to its stdin; without it there is none, so that it cannot wait for an answer
 */

/** The real one. */
export const WRANGLER_COMMAND = [OWN_NODE, ...wranglerArguments([])]

/**
 * @param {readonly string[]} command what starts wrangler
 * @param {Place} place
 * @returns {RunWrangler}
 */
export function wranglerIn(command, { root, scratch, stop }) {
  return async (args, { input, accountId } = {}) => {
    if (stop.aborted) return { code: 1, stdout: '', stderr: 'Interrupted.', told: [] }
    const told = path.join(scratch, 'told.ndjson')
    rmSync(told, { force: true })
    const [program = OWN_NODE, ...first] = command
    const child = spawn(program, [...first, ...args], {
      cwd: root,
      env: {
        ...environment(scratch),
        WRANGLER_OUTPUT_FILE_PATH: told,
        ...(accountId === undefined ? {} : { CLOUDFLARE_ACCOUNT_ID: accountId }),
      },
      stdio: [input === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'],
    })
    const printed = { stdout: '', stderr: '' }
    child.stdout?.setEncoding('utf8').on('data', (piece) => {
      printed.stdout += piece
    })
    child.stderr?.setEncoding('utf8').on('data', (piece) => {
      printed.stderr += piece
    })
    // One that ended early closed its end; its exit code says why.
    child.stdin?.on('error', () => {})
    child.stdin?.end(input)
    const end = () => child.kill('SIGTERM')
    stop.addEventListener('abort', end, { once: true })
    return await new Promise((resolve, reject) => {
      child.once('error', reject)
      child.once('close', (code) => {
        stop.removeEventListener('abort', end)
        if (stop.aborted) printed.stderr += '\nInterrupted.'
        resolve({ code: code ?? 1, ...printed, told: entriesIn(told) })
      })
    })
  }
}

/** @param {string} scratch */
function environment(scratch) {
  const env = wranglerEnvironment(scratch)
  // Either would give the Worker a name other than the one whose secrets were looked at.
  delete env.CLOUDFLARE_ENV
  delete env.WRANGLER_CI_OVERRIDE_NAME
  // Its log files hold the requests; the default, leaving secrets out, must not be switched off here.
  env.WRANGLER_LOG_SANITIZE = 'true'
  return env
}

/**
 * @param {string} file one JSON object per line
 * @returns {Record<string, unknown>[]}
 */
function entriesIn(file) {
  let text
  try {
    text = readFileSync(file, 'utf8')
  } catch (error) {
    if (/** @type {NodeJS.ErrnoException} */ (error).code === 'ENOENT') return []
    throw error
  }
  return text.split('\n').flatMap((line) => {
    // A wrangler that was ended may leave half a line; what it told before counts all the same.
    const entry = parseJson(Entry, line)
    return entry === undefined ? [] : [entry]
  })
}

/**
 * What wrangler said last, for a person: from its error on, if it names one.
 * @param {WranglerResult} result
 */
export function lastWords({ code, stdout, stderr }) {
  const lines = stripVTControlCharacters(`${stdout}\n${stderr}`)
    .split('\n')
    .filter((line) => line.trim() !== '' && !line.includes('Logs were written'))
  const error = lines.findIndex((line) => line.includes('[ERROR]'))
  const said = (error === -1 ? lines.slice(-LAST_LINES) : lines.slice(error, error + LAST_LINES)).map(
    (line) => `  ${line.trimEnd()}`,
  )
  return said.length === 0
    ? `wrangler said nothing (exit code ${code}).`
    : `wrangler said:\n${said.join('\n')}`
}
