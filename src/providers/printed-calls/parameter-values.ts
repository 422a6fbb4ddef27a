import type { OfferedTool } from '../../core/prompt.ts'

/**
 * Gives a parameter that was printed as bare text the type that the tool's schema names. Text that does not fit the type
 * stays text: the tool says better what is wrong with it.
 */
export function typedValue(tool: OfferedTool, parameter: string, printed: string): unknown {
  const { properties } = tool.parameters
  const types = typesOf(isObject(properties) ? Object.entries(properties) : [], parameter)
  if (types.size === 0 || types.has('string')) return printed
  const text = printed.trim()
  // Models that have seen much Python print its words.
  const word = /^(?:true|false|none|null)$/i.test(text) ? text.toLowerCase().replace('none', 'null') : text
  try {
    const value: unknown = JSON.parse(word)
    return types.has(typeName(value)) || (types.has('number') && Number.isInteger(value)) ? value : printed
  } catch {
    return printed
  }
}

function typesOf(properties: [string, unknown][], parameter: string): Set<string> {
  const schema = properties.find(([key]) => key === parameter)?.[1]
  const alternatives = isObject(schema) ? [schema, ...listOf(schema.anyOf), ...listOf(schema.oneOf)] : []
  return new Set(
    alternatives
      .flatMap((one) => (isObject(one) ? [one.type].flat() : []))
      .filter((type) => typeof type === 'string'),
  )
}

function typeName(value: unknown): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'array'
  return Number.isInteger(value) ? 'integer' : typeof value
}

const listOf = (value: unknown): unknown[] => (Array.isArray(value) ? value : [])

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
