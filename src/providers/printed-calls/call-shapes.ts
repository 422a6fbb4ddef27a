import type { OfferedTool } from '../../core/prompt.ts'
import { isDeeperThan, MAX_JSON_DEPTH } from '../../protocol/json-depth.ts'
import { type ToolArguments, takeToolArguments } from '../tool-arguments.ts'

/** A call that was printed, under a name that was offered. */
export type PrintedCall = { name: string } & ToolArguments

/** The tools that may be called, by name. */
export type Offered = ReadonlyMap<string, OfferedTool>

const CALL_KEYS: ReadonlySet<string> = new Set(['name', 'arguments', 'parameters', 'type', 'id', 'index'])
const WRAPPER_KEYS: ReadonlySet<string> = new Set(['function', 'type', 'id', 'index'])

/** Whether a key may stand in the outermost object of an unmarked call. */
export const isCallKey = (key: string): boolean =>
  CALL_KEYS.has(key) || WRAPPER_KEYS.has(key) || key === 'tool_calls'

/**
 * Reads JSON values as calls: `{name, arguments | parameters}`, `{function: {name, arguments}}`, `{tool_calls: […]}` or
 * lists of them.
 * @param exact for calls without a mark: no other keys, and arguments with which the tool could be called
 * @returns undefined unless every value is a call of an offered tool
 */
export function readCalls(
  values: readonly unknown[],
  offered: Offered,
  exact: boolean,
): PrintedCall[] | undefined {
  const calls: PrintedCall[] = []
  for (const candidate of values.flatMap((value) => candidatesIn(value, exact))) {
    const call = readCall(candidate, offered, exact)
    if (call === undefined) return undefined
    calls.push(call)
  }
  return calls.length === 0 ? undefined : calls
}

/** A call whose name and arguments stand apart. Undefined for arguments too deeply nested to be handed on. */
export function makeCall(name: string, value: unknown): PrintedCall | undefined {
  return isDeeperThan(value, MAX_JSON_DEPTH) ? undefined : { name, ...takeToolArguments(value) }
}

function candidatesIn(value: unknown, exact: boolean): unknown[] {
  if (Array.isArray(value)) return value
  const fields = fieldsOf(value)
  const list = fields?.get('tool_calls')
  return Array.isArray(list) && !(exact && fields?.size !== 1) ? list : [value]
}

function readCall(value: unknown, offered: Offered, exact: boolean): PrintedCall | undefined {
  const outer = fieldsOf(value)
  const inner = fieldsOf(outer?.get('function'))
  const fields = inner ?? outer
  if (outer === undefined || fields === undefined) return undefined
  const name = fields.get('name')
  const tool = typeof name === 'string' ? offered.get(name) : undefined
  if (tool === undefined) return undefined
  const given = ['arguments', 'parameters'].filter((key) => fields.has(key))
  const call = makeCall(tool.name, fields.get(given[0] ?? ''))
  if (call === undefined || !exact) return call
  const isExact =
    given.length === 1 &&
    hasOnly(fields, CALL_KEYS) &&
    (inner === undefined || hasOnly(outer, WRAPPER_KEYS)) &&
    [undefined, 'function'].includes(typeOf(outer)) &&
    call.malformedArguments === undefined &&
    requiredOf(tool).every((key) => Object.hasOwn(call.arguments, key))
  return isExact ? call : undefined
}

const fieldsOf = (value: unknown): Map<string, unknown> | undefined =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
    ? new Map<string, unknown>(Object.entries(value))
    : undefined

const hasOnly = (fields: ReadonlyMap<string, unknown>, keys: ReadonlySet<string>): boolean =>
  [...fields.keys()].every((key) => keys.has(key))

function typeOf(fields: ReadonlyMap<string, unknown>): string | undefined {
  const type = fields.get('type')
  return type === undefined ? undefined : String(type)
}

function requiredOf({ parameters }: OfferedTool): string[] {
  const { required } = parameters
  return Array.isArray(required) ? required.filter((key) => typeof key === 'string') : []
}
