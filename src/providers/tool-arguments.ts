import { isDeeperThan, MAX_JSON_DEPTH } from '../protocol/json-depth.ts'

/** The arguments of a call as `ModelEvent` wants them. */
export type ToolArguments = { arguments: Record<string, unknown>; malformedArguments?: string }

/** Parses the text of a call's arguments. No text at all is how many models call a tool that takes none. */
export function parseToolArguments(text: string): ToolArguments {
  if (text.trim() === '') return { arguments: {} }
  try {
    const value: unknown = JSON.parse(text)
    if (isUsable(value)) return { arguments: value }
  } catch {
    // Not JSON: handed on as it came, the router decides what the model hears of it.
  }
  return { arguments: {}, malformedArguments: text }
}

/** Takes arguments that a provider gives as a value: an object as a rule, text from some proxies. */
export function takeToolArguments(value: unknown): ToolArguments {
  if (value === undefined || value === null) return { arguments: {} }
  if (typeof value === 'string') return parseToolArguments(value)
  if (isUsable(value)) return { arguments: value }
  return { arguments: {}, malformedArguments: isTooDeep(value) ? '…' : JSON.stringify(value) }
}

const isTooDeep = (value: unknown): boolean => isDeeperThan(value, MAX_JSON_DEPTH)

/** An object, and not nested so deeply that it could not be stored and handed on. */
const isUsable = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value) && !isTooDeep(value)
