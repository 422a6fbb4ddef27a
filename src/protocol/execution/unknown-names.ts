import type { z } from 'zod'
import type { ErrorCode } from './errors.ts'
import { INSTANCE_NAME, isBuiltInProvider } from './ids.ts'

/** Fields that hold a name of a fixed set, and what an unknown name in them is called (EC 3). */
const NAMED: Readonly<Record<string, ErrorCode>> = {
  intent: 'unknown_intent',
  default_intent: 'unknown_intent',
  command: 'unknown_intent',
  effort: 'unknown_effort',
}

/** Fields that hold a model reference, or a list of them. */
const REFERENCES: ReadonlySet<string> = new Set(['model', 'fallbacks', 'explicit_model'])

/**
 * The code of a request that does not fit because of this issue: one of its own for an unknown name and for a model
 * reference that is none (EC 3), `invalid_request` for everything else. The issue must carry its input.
 */
export function codeOfIssue({ code, path, input }: z.core.$ZodIssue): ErrorCode {
  const field = path.findLast((key) => typeof key === 'string')
  if (typeof field !== 'string' || typeof input !== 'string') return 'invalid_request'
  if (code === 'invalid_value') return NAMED[field] ?? 'invalid_request'
  if (code === 'invalid_format' && REFERENCES.has(field)) return codeOfReference(input)
  return 'invalid_request'
}

function codeOfReference(reference: string): ErrorCode {
  const slash = reference.indexOf('/')
  if (slash < 0 || slash === reference.length - 1) return 'invalid_model_reference'
  const provider = reference.slice(0, slash).toLowerCase()
  if (isBuiltInProvider(provider)) return 'invalid_model_reference'
  const instance = /^openai-compat:(.*)$/s.exec(provider)?.[1]
  if (instance === undefined) return 'unknown_provider'
  return INSTANCE_NAME.test(instance) ? 'invalid_model_reference' : 'invalid_provider_name'
}
