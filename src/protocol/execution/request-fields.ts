/**
 * Optional fields of requests: `null` means the same as leaving the field out (EC 1). Lists use zod's own
 * `.default([])`, since for them only leaving out is promised.
 */

import { z } from 'zod'

/** An optional field with a documented default, which schemas publish too. */
export const withDefault = <T extends z.ZodType>(schema: T, value: z.output<T>) =>
  schema
    .nullish()
    .transform((given): z.output<T> => given ?? z.util.shallowClone(value))
    .meta({ default: value })

/** An optional field without a default, where inside `null` would only be a second way to say "not given". */
export const nullAsAbsent = <T extends z.ZodType>(schema: T) =>
  schema
    .nullish()
    .transform((given): z.output<T> | undefined => given ?? undefined)
    .optional()
