import type { ClientFailure } from '../client/failure.ts'

/** Where to look for a model to name. */
export const WHAT_THERE_IS = '`switchyard models` shows what there is'

/** What the user can do about the codes that have a remedy on this machine. */
const REMEDIES: Readonly<Record<string, string>> = {
  missing_provider_credentials:
    'set the key of that provider (ANTHROPIC_API_KEY, OPENAI_API_KEY, GEMINI_API_KEY or SWITCHYARD_PROVIDER_<NAME>_API_KEY)',
  invalid_provider_credentials: 'the provider does not accept its key: check the environment variable',
  provider_authentication: 'the provider does not accept its key: check the environment variable',
  context_window_exceeded: `attach less, or name a model with a larger window; ${WHAT_THERE_IS}`,
  fallback_exhausted: WHAT_THERE_IS,
  model_not_found: WHAT_THERE_IS,
  run_in_flight: 'another program is being served in this session: wait for it, or stop it there',
  session_not_found: '`switchyard sessions list` shows your sessions; archived ones with --archived',
  token_expired: 'run `switchyard login`',
  token_revoked: 'run `switchyard login`',
  invalid_token: 'run `switchyard login`',
}

/**
 * A failure as one line, with its code and a remedy where there is one.
 * @param known what the caller knows to be the remedy, from what went before
 */
export function failureText(failure: ClientFailure, known?: string): string {
  switch (failure.kind) {
    case 'http':
    case 'turn': {
      const remedy = known ?? REMEDIES[failure.code]
      return `${failure.message} (${failure.code})${remedy === undefined ? '' : `\n  ${remedy}`}`
    }
    case 'locked':
      return `${failure.message}; import it with \`switchyard keys import\``
    case 'not_json':
    case 'unexpected_body':
      return `the router's answer cannot be understood: ${failure.message}`
    default:
      return failure.message
  }
}
