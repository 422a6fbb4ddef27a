// What wrangler tells programs.

/**
 * @template {import('zod').z.ZodType} T
 * @param {T} schema
 * @param {string} text
 * @returns {import('zod').z.infer<T> | undefined} undefined when it is no JSON, or of another shape
 */
export function parseJson(schema, text) {
  try {
    return schema.safeParse(JSON.parse(text)).data
  } catch {
    return undefined
  }
}
