/**
 * `npm run golden:update`: puts formatting and order of existing golden files right and derives again what follows
 * from their wire forms. It adds no case, removes none, and never runs in CI: its diff is reviewed like code.
 */

import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { EXECUTION_GOLDEN, goldenText, loadGolden } from './lib/golden.ts'
import { loadRemoteGolden, REMOTE_GOLDEN, remoteGoldenText } from './lib/remote-golden.ts'

if (process.env.CI !== undefined) {
  console.error('golden files are not rewritten in CI')
  process.exit(1)
}

const root = join(import.meta.dirname, '..')
// All texts first: a file that contradicts its shape stops everything before anything is written.
const files = [
  ...loadGolden(join(root, EXECUTION_GOLDEN)).map((file) => ({
    path: join(EXECUTION_GOLDEN, file.path),
    text: file.text,
    due: goldenText(file),
  })),
  ...loadRemoteGolden(join(root, REMOTE_GOLDEN)).map((file) => ({
    path: join(REMOTE_GOLDEN, file.path),
    text: file.text,
    due: remoteGoldenText(file),
  })),
]
const changed = files.filter(({ text, due }) => text !== due)
for (const { path, due } of changed) {
  writeFileSync(join(root, path), due)
  console.log(`rewrote ${path}`)
}
console.log(`${files.length} golden files, ${changed.length} rewritten`)
