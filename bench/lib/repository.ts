import path from 'node:path'

export const ROOT = path.resolve(import.meta.dirname, '../..')
export const WRANGLER = path.join(ROOT, 'node_modules/wrangler/bin/wrangler.js')
