// Runs one command in the foreground as if it were this process: its streams, its signals, its exit code.
import { spawn } from 'node:child_process'
import { constants } from 'node:os'

/**
 * @param {string} command
 * @param {readonly string[]} args
 * @param {{ cwd?: string, env?: NodeJS.ProcessEnv }} [place]
 * @returns {Promise<number>} its exit code, 128 + n when signal n ended it; rejects when it cannot be started
 */
export function runChild(command, args, { cwd = process.cwd(), env = process.env } = {}) {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { cwd, env, stdio: 'inherit' })
    process.on('SIGINT', () => {
      // Ctrl-C in a terminal reaches the child by itself; a second one would look like an impatient user.
      if (!process.stdin.isTTY) child.kill('SIGINT')
    })
    for (const signal of /** @type {const} */ (['SIGTERM', 'SIGHUP'])) {
      process.on(signal, () => child.kill(signal))
    }
    child.once('error', reject)
    child.once('exit', (code, signal) =>
      resolve(signal === null ? (code ?? 1) : 128 + constants.signals[signal]),
    )
  })
}
