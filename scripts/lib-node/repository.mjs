// Where things are in this checkout. Plain JavaScript: the first run has Node 20 and no packages yet.
import path from 'node:path'
import { fileURLToPath } from 'node:url'

export const ROOT = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../..')

/** Scratch files of this checkout: local router state, logs, locks. Git ignores it. */
export const SCRATCH = path.join(ROOT, '.wrangler')

export const DEFAULT_STATE = path.join(SCRATCH, 'state')

/** The Node that the project runs on, from its own packages; the PATH may hold an older one. */
export const OWN_NODE = path.join(ROOT, 'node_modules/.bin/node')

export const WRANGLER = path.join(ROOT, 'node_modules/wrangler/bin/wrangler.js')
export const VITEST = path.join(ROOT, 'node_modules/vitest/vitest.mjs')

/** A `node --import` argument that ends a process when the one that started it is gone. */
export const DIE_WITH_PARENT = path.join(ROOT, 'scripts/lib-node/die-with-parent.mjs')
