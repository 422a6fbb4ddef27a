// One router per state folder. Two would run the same sessions twice, each with its own memory and its own alarms.
import { accessSync, constants, mkdirSync } from 'node:fs'
import path from 'node:path'
import { acquireLock } from './file-lock.mjs'
import { endLeftovers } from './process-group.mjs'

/** A router that was just killed needs about a second until it is gone; a person should not wait longer for a refusal. */
const WAIT_MS = 5_000

/** How long the rest of a killed router may take to end by itself. */
const LEFTOVER_PATIENCE_MS = 3_000

/**
 * @param {string} persistTo the state folder
 * @param {{ ip: string, port: number }} where the router will listen
 * @returns {Promise<{ ok: true, value: import('./file-lock.mjs').HeldLock } | { ok: false, error: string }>}
 */
export async function lockState(persistTo, where) {
  const file = path.join(persistTo, 'router.lock')
  try {
    mkdirSync(persistTo, { recursive: true })
    accessSync(persistTo, constants.W_OK)
  } catch (error) {
    const { code } = /** @type {NodeJS.ErrnoException} */ (error)
    return { ok: false, error: `The state folder ${persistTo} cannot be written to (${code}).` }
  }
  const lock = await acquireLock(file, {
    facts: where,
    waitMs: WAIT_MS,
    onWait: (owner) => console.error(`Process ${owner.pid} uses ${persistTo}: waiting for it to end …`),
  })
  if (!lock.ok) {
    const { pid, ip, port } = lock.error
    return {
      ok: false,
      error: [
        `The state folder ${persistTo} is in use by a router at http://${ip}:${port} (process ${pid}).`,
        'Use that one, stop it first, or give this one a folder of its own: --persist-to FOLDER',
      ].join('\n'),
    }
  }
  const group = lock.value.previous?.group
  if (typeof group === 'number') {
    await endLeftovers(group, { isManager, isWorker, patienceMs: LEFTOVER_PATIENCE_MS })
  }
  return { ok: true, value: lock.value }
}

/** @param {string} command */
function isManager(command) {
  return command.includes('wrangler/bin/wrangler.js') || command.includes('wrangler/wrangler-dist/cli.js')
}

/** @param {string} command */
function isWorker(command) {
  return /\bworkerd serve\b|\besbuild --service\b/.test(command)
}
