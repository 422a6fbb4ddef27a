/** Stands for `zod` in what is deployed (`alias` in wrangler.toml). Tests and tools use the package itself. */

import * as z from './zod-exports.ts'

export * from './zod-exports.ts'
export { z, z as default }
