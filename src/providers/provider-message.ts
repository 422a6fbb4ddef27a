import type { ProviderErrorCategory } from '../protocol/execution/models.ts'
import { MAX_RETRY_AFTER_MS } from './bounds.ts'

/** What a provider says about an error, before it is cleaned. */
export type ProviderSaid = {
  /** Its sentence, if it has one. */
  text?: string
  /** Sentence, type and code, for telling the category. */
  hints: string
  /** An HTTP status inside the body: gateways report an upstream's error so in the middle of a stream. */
  status?: number
  /** How long it asks to wait, where the body tells and not a header. */
  retryAfterMs?: number
}

/** What must not come back in a message: the key of this call, and every text that was sent. */
export type Redaction = { credential?: string; texts: readonly string[]; names: readonly string[] }

/**
 * What is read of a text that a provider sent, in characters: what tells a cause stands at its beginning, and the
 * expressions that look for it, and for what must not be repeated, take time with the square of the length.
 */
const MAX_READ_CHARS = 2000

/** Plain-text bodies longer than this are pages, not messages. */
const MAX_PLAIN_BODY_CHARS = 500

/** Reads an error body: JSON in any of the usual shapes, or a short plain text. A page of HTML says nothing. */
export function readErrorBody(body: string): ProviderSaid {
  try {
    return readError(JSON.parse(body))
  } catch {
    const text = body.trim()
    return text === '' || text.length > MAX_PLAIN_BODY_CHARS || text.startsWith('<')
      ? { hints: '' }
      : { text, hints: text }
  }
}

/**
 * Reads `"text"`, `{message}`, `{detail}`, `{error: "text"}`, `{error: {message, type, code, status, details}}`,
 * `{response: {error}}` or a list of one of them.
 */
export function readError(value: unknown): ProviderSaid {
  if (typeof value === 'string') return { text: value, hints: value.slice(0, MAX_READ_CHARS) }
  if (Array.isArray(value)) return readError(value[0])
  if (typeof value !== 'object' || value === null) return { hints: '' }
  const fields = new Map<string, unknown>(Object.entries(value))
  const inner = fields.get('error') ?? fields.get('errors') ?? fields.get('response')
  if (inner !== undefined && inner !== null) return readError(inner)
  const text = [fields.get('message'), fields.get('detail')].find((said) => typeof said === 'string')
  const code = fields.get('code')
  const status = typeof code === 'number' && code >= 400 && code < 600 ? { status: code } : {}
  const details = fields.get('details')
  const hints = [text, fields.get('type'), code, fields.get('status')]
    .flatMap((part) => (typeof part === 'string' ? part.slice(0, MAX_READ_CHARS) : []))
    .join(' ')
  return { ...(typeof text === 'string' ? { text } : {}), hints, ...status, ...readRetryInfo(details) }
}

/** Google's APIs tell the wait in the body: a list of details, one of which has `retryDelay: "7.5s"`. */
function readRetryInfo(details: unknown): { retryAfterMs?: number } {
  if (!Array.isArray(details)) return {}
  for (const detail of details) {
    const delay = typeof detail === 'object' && detail !== null && 'retryDelay' in detail && detail.retryDelay
    const seconds = typeof delay === 'string' ? /^(\d{1,6}(?:\.\d+)?)s$/.exec(delay)?.[1] : undefined
    if (seconds !== undefined)
      return { retryAfterMs: Math.min(Math.ceil(Number(seconds) * 1000), MAX_RETRY_AFTER_MS) }
  }
  return {}
}

const SENTENCES: Record<ProviderErrorCategory, string> = {
  authentication: 'the provider does not let this account do that',
  context_length: 'the prompt is longer than the model accepts',
  invalid_configuration: 'the provider is not configured correctly',
  invalid_credentials: 'the provider refused the API key',
  invalid_request: 'the provider refused the request',
  missing_credentials: 'the provider needs an API key and none was given',
  model_not_found: 'the provider does not offer this model',
  provider_unavailable: 'the provider is not available',
  rate_limit: 'the rate limit of the provider is reached',
  storage: 'storage failed',
  timeout: 'the provider took too long',
  unknown: 'the provider failed',
  unsupported_capability: 'the model lacks a capability that the request needs',
}

/** The message for a client: our sentence, the status, and what the provider said as far as that is safe to repeat. */
export function describeFailure(
  category: ProviderErrorCategory,
  { status, text }: { status?: number; text?: string },
  redaction: Redaction,
): string {
  const sentence = SENTENCES[category] + (status === undefined ? '' : ` (HTTP ${status})`)
  // Providers like to repeat a part of a refused key.
  const detail = category === 'invalid_credentials' || !text ? undefined : sanitize(text, redaction)
  return detail ? `${sentence}: ${detail}` : sentence
}

/** Long enough for "model … not found, try pulling it first", too short for a body. */
const MAX_DETAIL_CHARS = 200
/** A run of this many characters that also stands in the prompt counts as an echo of it. */
const ECHO_CHARS = 16
/** Texts shorter than this ("hi") are in too many sentences to mean anything. */
const MIN_ECHO_CHARS = 4

/** What stands in quotation marks. */
const QUOTED = /(["`])(.*?)\1|(?<!\w)'(.*?)'(?!\w)/gs
/** The same in a text that was cut: a quotation may have lost its end. */
const QUOTED_OR_CUT = /(["`])(.*?)(?:\1|$)|(?<!\w)'(.*?)(?:'(?!\w)|$)/gs

function sanitize(text: string, { credential, texts, names }: Redaction): string | undefined {
  const whole = credential ? text.replaceAll(credential, '[key]') : text
  const isCut = whole.length > MAX_READ_CHARS
  // The last word goes whole: half a key, a link or a mark of ours would not be known for what it is.
  let clean = isCut ? whole.slice(0, MAX_READ_CHARS).replace(/\S*$/, '') : whole
  clean = clean
    .replace(/\b(?:(?:sk|pk|key)[-_]|bearer )[\w*.-]{8,}/gi, '[key]')
    .replace(/\bhttps?:\/\/\S+/gi, '[link]')
    // A quotation is often the offending input; names of the request are fine.
    .replace(isCut ? QUOTED_OR_CUT : QUOTED, (quoted, _mark, a?: string, b?: string) =>
      names.includes(a ?? b ?? '') ? quoted : '“…”',
    )
    .replace(/[\s\p{Cc}]+/gu, ' ')
    .trim()
  if (clean.length > MAX_DETAIL_CHARS) clean = `${clean.slice(0, MAX_DETAIL_CHARS)}…`
  return clean === '' || texts.some((sent) => echoes(clean, sent)) ? undefined : clean
}

function echoes(message: string, sent: string): boolean {
  const prompt = sent.replace(/\s+/g, ' ').trim()
  if (prompt.length < MIN_ECHO_CHARS) return false
  if (prompt.length <= ECHO_CHARS) return message.includes(prompt)
  for (let at = 0; at + ECHO_CHARS <= message.length; at += 1) {
    if (prompt.includes(message.slice(at, at + ECHO_CHARS))) return true
  }
  return false
}
