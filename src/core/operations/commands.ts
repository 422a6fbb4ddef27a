import { ok, type Result } from '../../protocol/result.ts'
import { type Refusal, refuse } from './refusal.ts'

/** The commands that a device may have executed, each with what it takes behind its name; null: nothing (RF 21). */
export const COMMANDS = [
  { name: '/about', takes: null },
  { name: '/change_title', takes: '<title>' },
  { name: '/context', takes: null },
  { name: '/effort', takes: '[value]' },
  { name: '/help', takes: null },
  { name: '/info', takes: null },
  { name: '/mcp', takes: null },
  { name: '/model', takes: '[profile]' },
  { name: '/perf', takes: null },
  { name: '/status', takes: null },
  { name: '/tasks', takes: null },
  { name: '/title', takes: '<title>' },
  { name: '/usage', takes: null },
] as const satisfies readonly { name: `/${string}`; takes: string | null }[]

export type CommandName = (typeof COMMANDS)[number]['name']

export type Command = {
  name: CommandName
  /** Trimmed; empty for none. */
  argument: string
}

/** The name is the first word, in lower case (RF 21). Everything that is not in the list above is refused. */
export function readCommand(text: string): Result<Command, Refusal> {
  const trimmed = text.trim()
  const word = /^\S+/.exec(trimmed)?.[0] ?? ''
  const argument = trimmed.slice(word.length).trim()
  const name = word.replace(/[A-Z]/g, (letter) => letter.toLowerCase())
  const command = COMMANDS.find((known) => known.name === name)
  if (!command)
    return refuse('unsupported_operation', 'there is no such command; /help names those there are')
  if (command.takes === null && argument !== '')
    return refuse('unsupported_operation', `${command.name} takes nothing behind its name`)
  return ok({ name: command.name, argument })
}
