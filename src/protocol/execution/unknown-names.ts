import type { z } from 'zod'
import type { ErrorCode } from './errors.ts'
import { BUILT_IN_PROVIDERS, INSTANCE_NAME, isBuiltInProvider } from './ids.ts'

/** Fields that hold a name of a fixed set, and what an unknown name in them is called (EC 3). */
const NAMED: Readonly<Record<string, ErrorCode>> = {
  intent: 'unknown_intent',
  default_intent: 'unknown_intent',
  command: 'unknown_intent',
  effort: 'unknown_effort',
}

/** Fields that hold a model reference, or a list of them. */
const REFERENCES: ReadonlySet<string> = new Set(['model', 'fallbacks', 'explicit_model'])

/** How providers are named in `provider/model` (EC 4), for messages. */
export const PROVIDER_NAMES = `${BUILT_IN_PROVIDERS.join(', ')} and openai-compat:<name>`

/**
 * The code of a request that does not fit because of this issue: one of its own for an unknown name and for a model
 * reference that is none (EC 3), `invalid_request` for everything else. The issue must carry its input.
 */
export function codeOfIssue(issue: z.core.$ZodIssue): ErrorCode {
  const reference = wrongReference(issue)
  if (reference !== undefined) return aboutReference(reference).code
  const field = fieldOf(issue)
  if (issue.code !== 'invalid_value' || typeof issue.input !== 'string' || field === undefined)
    return 'invalid_request'
  return NAMED[field] ?? 'invalid_request'
}

/** The text of an issue about a model reference that is none; undefined for every other issue. */
export function wrongReference(issue: z.core.$ZodIssue): string | undefined {
  const field = fieldOf(issue)
  if (issue.code !== 'invalid_format' || field === undefined || !REFERENCES.has(field)) return undefined
  return typeof issue.input === 'string' ? issue.input : undefined
}

/** The word that is none of the names of its field, with those names; undefined for every other issue. */
export function wrongName(issue: z.core.$ZodIssue): { word: string; names: readonly string[] } | undefined {
  if (issue.code === 'invalid_value' && typeof issue.input === 'string')
    return { word: issue.input, names: textsOf(issue.values) }
  if (issue.code !== 'invalid_union' || issue.discriminator === undefined || !('options' in issue))
    return undefined
  const word: unknown = Reflect.get(Object(issue.input), issue.discriminator)
  return typeof word === 'string' && Array.isArray(issue.options)
    ? { word, names: textsOf(issue.options) }
    : undefined
}

/** Why a text is no model reference (EC 4), as a code and as a sentence that says what a good one looks like. */
export function aboutReference(reference: string): { code: ErrorCode; message: string } {
  const slash = reference.indexOf('/')
  const provider = reference.slice(0, slash).toLowerCase()
  if (slash <= 0 || slash === reference.length - 1) return NO_REFERENCE
  if (isBuiltInProvider(provider)) return NO_REFERENCE
  const instance = /^openai-compat:(.*)$/s.exec(provider)?.[1]
  if (instance === undefined) {
    const message = `there is no provider "${provider.slice(0, 64)}"; the providers are ${PROVIDER_NAMES}`
    return { code: 'unknown_provider', message }
  }
  return INSTANCE_NAME.test(instance) ? NO_REFERENCE : NO_INSTANCE
}

const NO_REFERENCE = {
  code: 'invalid_model_reference',
  message: 'not a model reference; write provider/model, such as ollama/qwen3:8b or openai-compat:lab/large',
} as const

const NO_INSTANCE = {
  code: 'invalid_provider_name',
  message:
    'the name behind `openai-compat:` is made of lower-case letters, digits, `_` and `-`, as in openai-compat:my-lab/large',
} as const

const fieldOf = ({ path }: z.core.$ZodIssue): string | undefined => {
  const field = path.findLast((key) => typeof key === 'string')
  return typeof field === 'string' ? field : undefined
}

const textsOf = (values: readonly unknown[]): string[] => values.filter((value) => typeof value === 'string')
