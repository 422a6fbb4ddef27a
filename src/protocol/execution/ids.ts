import { z } from 'zod'

/** A lower-case hyphenated UUID, as every identifier in a JSON body (EC 1). */
export const Uuid = z.uuid().meta({ id: 'Uuid' })

export const SessionId = Uuid.brand<'SessionId'>()
export type SessionId = z.infer<typeof SessionId>

/** A path parameter: any spelling of a UUID, of whatever version, is accepted and normalised (EC 1). */
export function parseSessionId(text: string): SessionId | null {
  const hex = text
    .toLowerCase()
    .replace(/^urn:uuid:/, '')
    .replace(/[{}-]/g, '')
  if (!/^[0-9a-f]{32}$/.test(hex)) return null
  const dashed = `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`
  return dashed as SessionId
}

/** RFC 3339 in UTC. Written with milliseconds, read with any number of digits (EC 1). */
export const Timestamp = z.iso.datetime({ offset: true }).meta({ id: 'Timestamp' })

/** Money: a plain decimal string, without exponent (EC 1, D49). */
export const Decimal = z
  .string()
  .regex(/^\d{1,18}(\.\d{1,18})?$/)
  .meta({ id: 'Decimal' })
export type Decimal = z.infer<typeof Decimal>

/** Tokens, priorities, indexes: integers from 0. */
export const Count = z.int().nonnegative()

export const CONTENT_KINDS = ['message', 'tool_call', 'diff', 'plan', 'memory', 'trace', 'run_input'] as const
export type ContentKind = (typeof CONTENT_KINDS)[number]

/** `kind:id`, the name of one piece of sealed content (EC 4, "Decrypt and encrypt"). */
export const ContentRef = z
  .string()
  .regex(new RegExp(`^(${CONTENT_KINDS.join('|')}):.+$`))
  .meta({ id: 'ContentRef' })
export type ContentRef = z.infer<typeof ContentRef>

export const BUILT_IN_PROVIDERS = ['anthropic', 'gemini', 'openai', 'ollama'] as const

/** The name part of an OpenAI-compatible instance. */
export const INSTANCE_NAME = /^[a-z0-9_-]+$/

/** A canonical provider id: one of the four built-in ones or `openai-compat:<name>` (EC 4). */
export const Provider = z
  .string()
  .regex(new RegExp(`^(${BUILT_IN_PROVIDERS.join('|')}|openai-compat:[a-z0-9_-]+)$`))
  .meta({ id: 'Provider' })
export type Provider = z.infer<typeof Provider>

export const isBuiltInProvider = (name: string): boolean =>
  (BUILT_IN_PROVIDERS as readonly string[]).includes(name)

/**
 * `provider/model`, split at the first slash. The provider part is lower-cased on input and given out canonical;
 * the model part is case-sensitive and may contain slashes (EC 4, name normalisation).
 */
export const ModelReference = z
  .string()
  .overwrite((text) => {
    const slash = text.indexOf('/')
    return slash < 0 ? text : text.slice(0, slash).toLowerCase() + text.slice(slash)
  })
  .regex(new RegExp(`^(${BUILT_IN_PROVIDERS.join('|')}|openai-compat:[a-z0-9_-]+)/.+$`, 's'))
  // Published as what is accepted: the expression above sees the provider part only after lower-casing.
  .meta({ id: 'ModelReference', pattern: '^[A-Za-z0-9:_-]+/[\\s\\S]+$' })
export type ModelReference = z.infer<typeof ModelReference>

/** Splits a parsed reference into its canonical provider and its model name. */
export function splitModelReference(reference: ModelReference): { provider: Provider; model: string } {
  const slash = reference.indexOf('/')
  return { provider: reference.slice(0, slash), model: reference.slice(slash + 1) }
}
