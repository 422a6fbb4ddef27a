import { isPrivateAddress, parseBaseUrl } from './base-url.ts'
import type { OllamaConfig } from './config.ts'

/** Fits the memory of a machine that runs such models, and the files of a coding session. */
const DEFAULT_MAX_CONTEXT_TOKENS = 32_768

/** Ollama's own service: remote, whatever anyone declares (D14). */
const isOllamaCloud = (baseUrl: string): boolean => /(^|\.)ollama\.com$/.test(new URL(baseUrl).hostname)

/** Takes a fault as a sentence for the owner; `ofProvider` when the provider is not usable because of it. */
type Report = (message: string, ofProvider: boolean) => void

/** The daemon of the deployment (D13), see `parseProviderConfig` for the variables. Undefined when there is none to use. */
export function parseOllamaDaemon(
  vars: Record<string, string | undefined>,
  report: Report,
): OllamaConfig | undefined {
  const text = vars.OLLAMA_BASE_URL?.trim()
  if (!text) return undefined
  const baseUrl = parseBaseUrl(text, 'none')
  if (!baseUrl.ok) {
    report(`OLLAMA_BASE_URL ${baseUrl.error}`, true)
    return undefined
  }
  const declared = vars.OLLAMA_LOCAL?.trim() || undefined
  // Locality decides what may be sent there, so a doubtful value is not guessed at.
  if (declared !== undefined && declared !== 'true' && declared !== 'false') {
    report('OLLAMA_LOCAL must be true or false', true)
    return undefined
  }
  if (isOllamaCloud(baseUrl.value)) {
    const why =
      declared === 'true'
        ? 'OLLAMA_LOCAL cannot be true for a cloud service'
        : 'OLLAMA_BASE_URL is for a daemon; Ollama’s cloud belongs into OLLAMA_CLOUD_BASE_URL'
    report(why, true)
    return undefined
  }
  const allowedModels = parseNames(vars.OLLAMA_ALLOWED_MODELS)
  return {
    baseUrl: baseUrl.value,
    local: declared === undefined ? isPrivateAddress(baseUrl.value) : declared === 'true',
    maxContextTokens: parseMaxContextTokens(vars.OLLAMA_MAX_CONTEXT_TOKENS, report),
    ...(allowedModels === undefined ? {} : { allowedModels }),
  }
}

/** The address of Ollama's cloud; undefined when it is not used. */
export function parseOllamaCloud(
  vars: Record<string, string | undefined>,
  report: Report,
): { baseUrl: string } | undefined {
  const text = vars.OLLAMA_CLOUD_BASE_URL?.trim()
  if (!text) return undefined
  const baseUrl = parseBaseUrl(text, 'none')
  if (baseUrl.ok) return { baseUrl: baseUrl.value }
  report(`OLLAMA_CLOUD_BASE_URL ${baseUrl.error}`, true)
  return undefined
}

/** Exact names, comma-separated. */
function parseNames(text: string | undefined): string[] | undefined {
  const names = (text ?? '').split(',').flatMap((name) => name.trim() || [])
  return names.length === 0 ? undefined : names
}

/** A wrong number only costs the wish: the default is safe, and the daemon goes on serving. */
function parseMaxContextTokens(text: string | undefined, report: Report): number {
  const given = text?.trim()
  if (!given) return DEFAULT_MAX_CONTEXT_TOKENS
  const tokens = /^\d{1,9}$/.test(given) ? Number(given) : 0
  if (tokens > 0) return tokens
  report(
    `OLLAMA_MAX_CONTEXT_TOKENS must be a whole number above 0; ${DEFAULT_MAX_CONTEXT_TOKENS} is used`,
    false,
  )
  return DEFAULT_MAX_CONTEXT_TOKENS
}
