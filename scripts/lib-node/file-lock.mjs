// A lock that is a file with its owner's process id in it. The lock of an owner that is gone is taken over.
import { linkSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { birthOf, isAlive } from './process-info.mjs'

/** How often a waiter looks again. */
const POLL_MS = 100

/**
 * @typedef {{ pid: number, birth?: string | undefined, [fact: string]: unknown }} LockOwner what the file holds
 * @typedef {{ update: (facts: Record<string, unknown>) => void, release: () => void, previous: LockOwner | undefined }} HeldLock
 *   `previous` is the dead owner whose lock was taken over
 */

/**
 * Takes the lock, waiting for a living owner.
 * @param {string} file
 * @param {{ facts?: Record<string, unknown>, waitMs: number, onWait?: (owner: LockOwner) => void }} options
 *   `facts` are stored beside the owner's id; `onWait` is called once, when the wait starts
 * @returns {Promise<{ ok: true, value: HeldLock } | { ok: false, error: LockOwner }>} the error is the living owner
 */
export async function acquireLock(file, { facts = {}, waitMs, onWait }) {
  mkdirSync(path.dirname(file), { recursive: true })
  const mine = { ...facts, pid: process.pid, birth: birthOf(process.pid) }
  const deadline = Date.now() + waitMs
  /** @type {LockOwner | undefined} */
  let previous
  let announced = false
  for (;;) {
    if (createWhole(file, mine)) return { ok: true, value: held(file, mine, previous) }
    const owner = readOwner(file)
    if (owner === undefined) continue
    if (!isOwnerAlive(owner)) {
      previous = takeAway(file) ?? previous
      continue
    }
    if (Date.now() >= deadline) return { ok: false, error: owner }
    if (!announced) onWait?.(owner)
    announced = true
    await new Promise((resolve) => setTimeout(resolve, POLL_MS))
  }
}

/**
 * The owner that a lock file names, alive or not.
 * @param {string} file
 * @returns {LockOwner | undefined}
 */
export function readOwner(file) {
  try {
    const owner = JSON.parse(readFileSync(file, 'utf8'))
    return Number.isInteger(owner?.pid) ? owner : { pid: -1 }
  } catch (error) {
    // What is no JSON was not written by this module, so nobody holds it.
    return /** @type {NodeJS.ErrnoException} */ (error).code === 'ENOENT' ? undefined : { pid: -1 }
  }
}

/** @param {LockOwner} owner */
export function isOwnerAlive(owner) {
  if (owner.pid <= 0 || !isAlive(owner.pid)) return false
  const birth = birthOf(owner.pid)
  return birth === undefined || owner.birth === undefined || birth === owner.birth
}

/**
 * Creates the file with its content in one step, so that nobody ever reads half of it.
 * @param {string} file
 * @param {object} content
 */
function createWhole(file, content) {
  const draft = `${file}.${process.pid}.draft`
  writeFileSync(draft, JSON.stringify(content))
  try {
    linkSync(draft, file)
    return true
  } catch (error) {
    if (/** @type {NodeJS.ErrnoException} */ (error).code === 'EEXIST') return false
    throw error
  } finally {
    rmSync(draft, { force: true })
  }
}

/**
 * Removes a dead owner's lock. Two waiters may both have seen it dead: the later one would move the lock of the
 * earlier, so it looks at what it moved and puts a living owner's lock back.
 * @param {string} file
 * @returns {LockOwner | undefined} the dead owner
 */
function takeAway(file) {
  const aside = `${file}.${process.pid}.stale`
  try {
    renameSync(file, aside)
  } catch (error) {
    if (/** @type {NodeJS.ErrnoException} */ (error).code === 'ENOENT') return undefined
    throw error
  }
  const owner = readOwner(aside)
  if (owner !== undefined && isOwnerAlive(owner)) {
    renameSync(aside, file)
    return undefined
  }
  rmSync(aside, { force: true })
  return owner
}

/**
 * @param {string} file
 * @param {LockOwner} mine
 * @param {LockOwner | undefined} previous
 * @returns {HeldLock}
 */
function held(file, mine, previous) {
  return {
    previous,
    update(facts) {
      const draft = `${file}.${process.pid}.draft`
      writeFileSync(draft, JSON.stringify({ ...mine, ...facts }))
      renameSync(draft, file)
    },
    release() {
      if (readOwner(file)?.pid === mine.pid) rmSync(file, { force: true })
    },
  }
}
