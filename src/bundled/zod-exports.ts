/** What zod exports, but for its translations and what reads JSON Schema: nothing here needs them, and they are a third of it. */

export * from '../../node_modules/zod/v4/classic/checks.js'
export * as coerce from '../../node_modules/zod/v4/classic/coerce.js'
export * from '../../node_modules/zod/v4/classic/compat.js'
export { deepPartial } from '../../node_modules/zod/v4/classic/deep-partial.js'
export * from '../../node_modules/zod/v4/classic/errors.js'
export type { input, output } from '../../node_modules/zod/v4/classic/in-out.js'
export * as iso from '../../node_modules/zod/v4/classic/iso.js'
export {
  ZodISODate,
  ZodISODateTime,
  ZodISODuration,
  ZodISOTime,
} from '../../node_modules/zod/v4/classic/iso.js'
export * from '../../node_modules/zod/v4/classic/parse.js'
export * from '../../node_modules/zod/v4/classic/schemas.js'
export {
  $brand,
  $input,
  $output,
  clone,
  config,
  flattenError,
  formatError,
  globalRegistry,
  NEVER,
  prettifyError,
  regexes,
  registry,
  TimePrecision,
  treeifyError,
  util,
} from '../../node_modules/zod/v4/core/index.js'
export { toJSONSchema } from '../../node_modules/zod/v4/core/json-schema-processors.js'
