import { mkdtempSync, rmSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'

export type StatefulFolder = { path: string; remove(): void }

/** A fresh folder that outlives one test; whoever makes it removes it. */
export function statefulFolder(): StatefulFolder {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'switchyard-e2e-'))
  return { path: folder, remove: () => rmSync(folder, { recursive: true, force: true }) }
}
