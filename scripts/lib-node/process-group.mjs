// A child that leads its own process group, so that all it started can be reached, and Ctrl-C in a terminal reaches
// only us: we decide who is told, and once.
import { spawn } from 'node:child_process'
import { constants } from 'node:os'
import { membersOfGroup } from './process-info.mjs'

/** wrangler needs about a second to stop its runtime; one that hangs longer is ended. */
const GRACE_MS = 8_000

/** How often the end of a group is looked for. */
const POLL_MS = 50

/**
 * @typedef {{ group: number, ended: Promise<number>, stop: (signal: NodeJS.Signals) => void }} GroupLeader
 *   `group` is the process group, and the leader's pid; `ended` gives the leader's exit code (128 + n for a signal) once
 *   nobody of the group is left; `stop` asks the leader to end, the second call ends the group at once
 */

/**
 * @param {string} command
 * @param {readonly string[]} args
 * @param {{ cwd: string, env: NodeJS.ProcessEnv }} place
 * @returns {Promise<GroupLeader>} rejects when the command cannot be started
 */
export async function startGroup(command, args, { cwd, env }) {
  const child = spawn(command, args, { cwd, env, stdio: ['ignore', 'inherit', 'inherit'], detached: true })
  await new Promise((resolve, reject) => {
    child.once('spawn', resolve)
    child.once('error', reject)
  })
  const group = /** @type {number} */ (child.pid)
  /** @type {NodeJS.Timeout | undefined} */
  let grace
  const ended = new Promise((resolve) => {
    child.once('exit', (code, signal) => {
      // What the leader left behind (a runtime whose wrangler was killed) has nobody else to end it.
      signalGroup(group, 'SIGKILL')
      clearTimeout(grace)
      resolve(signal === null ? (code ?? 1) : 128 + constants.signals[signal])
    })
  })
  return {
    group,
    ended,
    stop(signal) {
      if (grace !== undefined) return signalGroup(group, 'SIGKILL')
      grace = setTimeout(() => signalGroup(group, 'SIGKILL'), GRACE_MS)
      child.kill(signal)
    },
  }
}

/**
 * Ends what is left of a group whose leader's parent was killed. Only processes whose command one of the two tests
 * knows are touched: the number may belong to somebody else by now.
 * @param {number} group
 * @param {{ isManager: (command: string) => boolean, isWorker: (command: string) => boolean, patienceMs: number }} options
 *   a manager that noticed its parent's death is ending its workers and itself, and gets `patienceMs` for that
 */
export async function endLeftovers(group, { isManager, isWorker, patienceMs }) {
  const managers = () => membersOfGroup(group).filter(({ command }) => isManager(command))
  const all = () => membersOfGroup(group).filter(({ command }) => isManager(command) || isWorker(command))
  await until(() => managers().length === 0, patienceMs)
  for (const { pid } of all()) signal(pid, 'SIGKILL')
  // A killed process holds its port until the system has taken it down.
  await until(() => all().length === 0, GRACE_MS)
}

/**
 * @param {() => boolean} condition
 * @param {number} patienceMs
 * @returns {Promise<boolean>} whether it came true in time
 */
async function until(condition, patienceMs) {
  const deadline = Date.now() + patienceMs
  while (!condition()) {
    if (Date.now() >= deadline) return false
    await new Promise((resolve) => setTimeout(resolve, POLL_MS))
  }
  return true
}

/**
 * @param {number} group
 * @param {NodeJS.Signals} name
 */
function signalGroup(group, name) {
  signal(-group, name)
}

/**
 * @param {number} target
 * @param {NodeJS.Signals} name
 */
function signal(target, name) {
  try {
    process.kill(target, name)
  } catch (error) {
    if (/** @type {NodeJS.ErrnoException} */ (error).code !== 'ESRCH') throw error
  }
}
