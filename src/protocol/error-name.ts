/** What of an error may be logged anywhere: its message may quote what it stumbled over. */
export const errorName = (error: unknown): string => (error instanceof Error ? error.name : 'error')

/** The same with the places in the code that it came through, for a fault of our own. */
export function errorTrace(error: unknown): string {
  const places = error instanceof Error ? (error.stack?.match(/^\s+at .*$/gm) ?? []) : []
  return [errorName(error), ...places].join('\n')
}
