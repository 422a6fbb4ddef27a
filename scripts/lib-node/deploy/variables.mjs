// The variables of a deployment, read as the router will read them: what it would only answer with later is said before
// anything is uploaded.
import { parseProviderConfig, textVars } from '../../../src/providers/config.ts'
import { parseRetention } from '../../../src/worker/retention-config.ts'

/**
 * @param {Record<string, unknown>} vars
 * @returns {string[]} what the router would find wrong, a sentence each; none repeats a value
 */
export function problemsOf(vars) {
  const texts = textVars(vars)
  const providers = parseProviderConfig(texts).problems.map(({ failure }) => failure.message)
  return [...providers, ...parseRetention(texts).problems]
}
