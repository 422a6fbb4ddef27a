/** One comparison that can be run by itself. */
export type Bench = {
  name: string
  /** One line for `--help`. */
  what: string
  run(print: (line: string) => void): Promise<void>
}

/** A figure beside what it may be at most; a bench judges nothing, its reader does. */
export function figure(label: string, value: string, budget?: string): string {
  const told = `${label.padEnd(58)} ${value.padStart(16)}`
  return budget === undefined ? told : `${told}   budget ${budget}`
}

export const ms = (value: number): string => `${value.toFixed(value < 10 ? 2 : 1)} ms`
export const times = (value: number): string => `${value.toFixed(2)} ×`
