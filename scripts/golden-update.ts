/**
 * `npm run golden:update`: puts formatting and order of existing golden files right and derives again what follows
 * from their wire forms. It adds no case, removes none, and never runs in CI: its diff is reviewed like code.
 */

import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { EXECUTION_GOLDEN, goldenText, loadGolden } from './lib/golden.ts'

if (process.env.CI !== undefined) {
  console.error('golden files are not rewritten in CI')
  process.exit(1)
}

const folder = join(import.meta.dirname, '..', EXECUTION_GOLDEN)
const files = loadGolden(folder)
// All texts first: a file that contradicts its shape stops everything before anything is written.
const changed = files
  .map((file) => ({ file, text: goldenText(file) }))
  .filter(({ file, text }) => text !== file.text)
for (const { file, text } of changed) {
  writeFileSync(join(folder, file.path), text)
  console.log(`rewrote ${file.path}`)
}
console.log(`${files.length} golden files, ${changed.length} rewritten`)
