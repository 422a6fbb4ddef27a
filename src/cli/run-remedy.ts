import { type ClientFailure, codeOf } from '../client/failure.ts'
import type { PendingApproval } from '../protocol/execution/turn.ts'
import type { ApproveMode } from './approver.ts'
import { globalConfigPath } from './config-file.ts'

/** What happened in a run that bears on how to mend it. */
export type RunFacts = {
  /** The gate that was declined last. */
  declined: PendingApproval | undefined
  approve: ApproveMode
  /** Whether somebody could be asked. */
  isTty: boolean
}

/** How a run fails that needed a model and was left without (EC 13). */
const NO_MODEL: ReadonlySet<string> = new Set(['no_route', 'override_not_allowed', 'fallback_exhausted'])

/** What to do about a failed run; undefined where the failure alone says it (`failureText`). */
export function runRemedy(failure: ClientFailure, facts: RunFacts): string | undefined {
  const code = codeOf(failure)
  // Other commands show archived sessions as they are; only a run has to have them back first.
  if (code === 'session_not_found')
    return '`switchyard sessions list --archived` shows your sessions; `switchyard sessions archive ID --restore` brings one back'
  return NO_MODEL.has(code) ? disclosureRemedy(facts) : undefined
}

/** What lets a disclosure pass that nobody could be asked about; undefined when there was none, or the user said no. */
function disclosureRemedy({ declined, approve, isTty }: RunFacts): string | undefined {
  if (declined?.kind !== 'remote_disclosure' || (approve === 'ask' && isTty)) return undefined
  const table = declined.detail?.local === true ? '[privacy.local]' : '[privacy.remote]'
  const lasting = `set mode = "allow" under ${table} in ${globalConfigPath()}`
  return `the disclosure was declined: ${approve === 'ask' ? `add --yes, or ${lasting}` : lasting}`
}
