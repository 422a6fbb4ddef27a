import type { z } from 'zod'
import { nearest, suggestReference } from '../core/suggest.ts'
import { type ErrorCode, type Failure, failure } from '../protocol/execution/errors.ts'
import { LocalPreferences } from '../protocol/execution/execute.ts'
import {
  aboutReference,
  codeOfIssue,
  wrongName,
  wrongReference,
} from '../protocol/execution/unknown-names.ts'

/** Findings named in one answer; of the rest the number is told. */
export const MAX_ISSUES = 50

/** One thing that is wrong with a body, with its place, such as `policy.routing.rules.0.effort`. */
export type BodyIssue = {
  code: ErrorCode
  path: string
  message: string
  /** What was probably meant. */
  suggestion?: string
  /** What the details of the error say besides the issues when this one gives it its code. */
  details?: Record<string, unknown>
}

/** What a schema found wrong; its issues must carry their input. Names and model references come with what was meant. */
export const issuesOf = ({ issues }: z.ZodError): BodyIssue[] => issues.flatMap(read)

function read(issue: z.core.$ZodIssue): BodyIssue[] {
  const code = codeOfIssue(issue)
  const path = issue.path.map(String).join('.')
  if (issue.code === 'unrecognized_keys') return issue.keys.map((key) => unknownKey(issue.path, key))
  const reference = wrongReference(issue)
  if (reference !== undefined) {
    const { message } = aboutReference(reference)
    return [suggesting({ code, path, message }, suggestReference(reference))]
  }
  const wrong = wrongName(issue)
  return [suggesting({ code, path, message: issue.message }, wrong && nearest(wrong.word, wrong.names))]
}

/** The only object that refuses unknown keys is that of the preferences (EC 1). */
function unknownKey(path: z.core.$ZodIssue['path'], key: string): BodyIssue {
  const at = [...path, key].map(String).join('.')
  const issue = { code: 'invalid_request', path: at, message: 'there is no such preference' } as const
  return suggesting(issue, nearest(key, Object.keys(LocalPreferences.shape)))
}

export const suggesting = (issue: BodyIssue, suggestion: string | undefined): BodyIssue =>
  suggestion === undefined ? issue : { ...issue, suggestion }

/**
 * The refusal of a body for its issues: the first gives the code and the sentence (EC 3). At most `MAX_ISSUES` are
 * told, and how many more there are.
 */
export function misfit(first: BodyIssue, others: readonly BodyIssue[]): Failure {
  const { code, path, message, suggestion } = first
  const meant = suggestion === undefined ? '' : `; did you mean \`${suggestion}\`?`
  const more = others.length === 0 ? '' : ` (and ${others.length} more)`
  const where = path === '' ? '' : `\`${path}\`: `
  const told = [first, ...others].slice(0, MAX_ISSUES)
  return failure(code, `the body does not fit: ${where}${message}${meant}${more}`, {
    ...first.details,
    issues: told.map(({ code: _code, details: _details, ...issue }) => issue),
    ...(others.length < told.length ? {} : { more_issues: others.length + 1 - told.length }),
  })
}
