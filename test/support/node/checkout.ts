import { cpSync, symlinkSync } from 'node:fs'
import path from 'node:path'
import { tempFolder } from './temp-folder.ts'

const ROOT = path.join(import.meta.dirname, '../../..')

/** A checkout that can be deployed from: this one's sources, with a `.wrangler` folder and settings of its own. */
export function deployableCheckout(files: Readonly<Record<string, string>> = {}): string {
  const root = tempFolder(files)
  for (const name of ['wrangler.toml', 'package.json', 'migrations']) {
    cpSync(path.join(ROOT, name), path.join(root, name), { recursive: true })
  }
  for (const name of ['src', 'schemas', 'node_modules'])
    symlinkSync(path.join(ROOT, name), path.join(root, name))
  return root
}
