import { err, ok } from '../../protocol/result.ts'
import type { ToolResultOf } from './tool-output.ts'

/** The arguments of a call as they came from a model. */
export type ToolArguments = Readonly<Record<string, unknown>>

/** A required text argument. The empty text counts as given where `mayBeEmpty`. */
export function textArgument(
  args: ToolArguments,
  name: string,
  options: { mayBeEmpty?: boolean } = {},
): ToolResultOf<string> {
  const value = Object.hasOwn(args, name) ? args[name] : undefined
  if (typeof value !== 'string') return err({ message: `the argument \`${name}\` is missing; it is a text` })
  if (value === '' && !options.mayBeEmpty) return err({ message: `the argument \`${name}\` is empty` })
  return ok(value)
}

/** An optional text argument; empty counts as left out. */
export function optionalText(args: ToolArguments, name: string): ToolResultOf<string | undefined> {
  const value = Object.hasOwn(args, name) ? args[name] : undefined
  if (value === undefined || value === null || value === '') return ok(undefined)
  return typeof value === 'string' ? ok(value) : err({ message: `the argument \`${name}\` must be a text` })
}

/** An optional whole number from 1; models write numbers as text, too. */
export function optionalCount(args: ToolArguments, name: string): ToolResultOf<number | undefined> {
  const value = Object.hasOwn(args, name) ? args[name] : undefined
  if (value === undefined || value === null || value === '') return ok(undefined)
  const number = typeof value === 'string' && /^\d{1,9}$/.test(value.trim()) ? Number(value) : value
  if (typeof number === 'number' && Number.isSafeInteger(number) && number >= 1) return ok(number)
  return err({ message: `the argument \`${name}\` must be a whole number from 1` })
}
