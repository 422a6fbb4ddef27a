import type { Evidence } from './evidence.ts'

/** A call that would help. */
export type Wish = { name: string; arguments: Record<string, string> }

/**
 * How to answer one question. `stages` are tried in order: the first that holds a call which is on offer and was not
 * made yet is made whole. When none is left, `answer` is given with what is known by then.
 */
export type Plan = { stages: Wish[][]; answer: () => string[] }

/** Makes the plan for what is known so far; asked anew in each turn, since nothing is remembered between turns. */
export type Planner = (evidence: Evidence) => Plan

export const readFile = (path: string): Wish => ({ name: 'read_file', arguments: { path } })
export const listFiles = (path: string): Wish => ({ name: 'list_files', arguments: { path } })
export const searchFiles = (query: string): Wish => ({ name: 'search_files', arguments: { query } })

/** The lines that tell what could not be looked at. */
export function failureLines({ failures }: Evidence): string[] {
  return failures.map(({ what, reason }) => `Not done: ${what} (${reason})`)
}
