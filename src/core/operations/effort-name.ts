import { DEFAULT_EFFORT } from './session-settings.ts'

/** Other words for an effort that people type (RF 21). */
const EFFORT_ALIASES: Readonly<Record<string, string>> = {
  off: DEFAULT_EFFORT,
  none: DEFAULT_EFFORT,
  med: 'medium',
}

/** The effort that is meant. */
export function effortName(typed: string): string {
  const name = typed.toLowerCase()
  return Object.hasOwn(EFFORT_ALIASES, name) ? (EFFORT_ALIASES[name] ?? name) : name
}
