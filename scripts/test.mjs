// `npm test`: installs what is missing, runs vitest, and ends with a line `N passed, N failed`. Arguments are passed on
// to vitest; `--long` selects the tests in `*.long.test.ts` files instead of the others; `--full` those and the ones in
// `*.full.test.ts` files, and lets them try everything where they would sample otherwise.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { ensureInstalled } from './lib-node/ensure-installed.mjs'
import { OWN_NODE, ROOT, VITEST } from './lib-node/repository.mjs'
import { runChild } from './lib-node/run-child.mjs'
import { exitCodeOf, readCounts } from './lib-node/test-counts.mjs'

/**
 * @param {string[]} given
 * @returns {Promise<number>} the exit code
 */
async function test(given) {
  const installed = await ensureInstalled()
  if (!installed.ok) {
    console.error(installed.error.message)
    return installed.error.exitCode
  }
  const full = given.includes('--full')
  const long = full || given.includes('--long')
  const folder = mkdtempSync(path.join(tmpdir(), 'switchyard-test-'))
  const countsFile = path.join(folder, 'counts.json')
  try {
    const reporter = path.join(ROOT, 'scripts/lib-node/counting-reporter.mjs')
    const rest = given.filter((arg) => arg !== '--long' && arg !== '--full')
    const args = [VITEST, 'run', '--reporter=default', `--reporter=${reporter}`, ...rest]
    const env = {
      ...process.env,
      SWITCHYARD_LONG: long ? '1' : '0',
      ...(full ? { SWITCHYARD_FULL: '1' } : {}),
      SWITCHYARD_TEST_COUNTS: countsFile,
    }
    const code = await runChild(OWN_NODE, args, { cwd: ROOT, env })
    const counts = readCounts(readText(countsFile))
    console.log(`${counts.passed} passed, ${counts.failed} failed`)
    return exitCodeOf(code, counts)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** @param {string} file */
function readText(file) {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return ''
  }
}

process.exitCode = await test(process.argv.slice(2))
