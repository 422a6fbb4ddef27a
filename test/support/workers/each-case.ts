import { describe, it } from 'vitest'

/** One test per case, under a title made of the case. Vitest’s own `$name` puts texts into quotes and cuts them. */
export function eachCase<Case>(
  cases: readonly Case[],
  title: (one: Case) => string,
  check: (one: Case) => void | Promise<void>,
  timeoutMs?: number,
): void {
  for (const one of cases) it(title(one), () => check(one), timeoutMs)
}

export function describeEach<Case>(
  cases: readonly Case[],
  title: (one: Case) => string,
  tests: (one: Case) => void,
): void {
  for (const one of cases) describe(title(one), () => tests(one))
}
