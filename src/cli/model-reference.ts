/** How providers are named in `provider/model` (EC 4), for messages. */
export const PROVIDER_NAMES = 'anthropic, gemini, openai, ollama and openai-compat:<name>'

/** What a wrong model reference is answered with: a provider that nobody has, or no reference at all. */
export function notAModel(reference: string): string {
  const slash = reference.indexOf('/')
  if (slash > 0 && slash < reference.length - 1)
    return `there is no provider "${reference.slice(0, slash)}"; the providers are ${PROVIDER_NAMES}`
  return `"${reference}" is not a model reference; write provider/model, such as ollama/qwen3:8b or openai-compat:lab/large`
}
