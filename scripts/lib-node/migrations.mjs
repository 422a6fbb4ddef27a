// Applies the D1 migrations to the local state folder; `wrangler dev` does not.
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { runWrangler } from './wrangler.mjs'

/**
 * Asking wrangler whether there is anything to do takes seconds, so the answer is remembered. The note lies beside the
 * databases: who deletes those deletes it too.
 */
const NOTE = 'v3/d1/applied-migrations.json'

/**
 * @param {{ root: string, persistTo: string, shared: readonly string[] }} place `shared`: arguments that choose the configuration
 * @returns {Promise<{ ok: true, value: 'already' | 'applied' } | { ok: false, error: string }>} the error is wrangler's output
 */
export async function applyMigrations({ root, persistTo, shared }) {
  const wanted = digestOf(path.join(root, 'migrations'), shared)
  const note = path.join(persistTo, NOTE)
  if (readText(note) === wanted) return { ok: true, value: 'already' }
  const args = ['d1', 'migrations', 'apply', 'DB', '--local', ...shared]
  const { code, output } = await runWrangler(args, { cwd: root, persistTo })
  if (code !== 0) return { ok: false, error: output }
  mkdirSync(path.dirname(note), { recursive: true })
  writeFileSync(note, wanted)
  return { ok: true, value: 'applied' }
}

/**
 * @param {string} folder
 * @param {readonly string[]} shared
 */
function digestOf(folder, shared) {
  const hash = createHash('sha256').update(JSON.stringify(shared))
  const names = existsSync(folder) ? readdirSync(folder).filter((name) => name.endsWith('.sql')) : []
  for (const name of names.sort()) hash.update(`\0${name}\0`).update(readFileSync(path.join(folder, name)))
  return hash.digest('hex')
}

/** @param {string} file */
function readText(file) {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return undefined
  }
}
