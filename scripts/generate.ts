/** `npm run generate`: writes schemas/ anew from the zod types, and removes what no type stands behind. */

import { mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { schemaFolders } from './lib/schema-files.ts'

for (const [path, files] of schemaFolders()) {
  const folder = join(import.meta.dirname, '..', path)
  mkdirSync(folder, { recursive: true })
  for (const name of readdirSync(folder)) if (!files.has(name)) rmSync(join(folder, name))
  for (const [name, text] of files) writeFileSync(join(folder, name), text)
  console.log(`${path}: ${files.size} files`)
}
