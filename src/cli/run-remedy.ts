import { z } from 'zod'
import { type ClientFailure, codeOf } from '../client/failure.ts'
import type { PendingApproval } from '../protocol/execution/turn.ts'
import type { ApproveMode } from './approver.ts'
import { globalConfigPath } from './config-file.ts'
import { WHAT_THERE_IS } from './failure-text.ts'

/** What happened in a run that bears on how to mend it. */
export type RunFacts = {
  /** Absent while there is no session. */
  sessionId: string | undefined
  /** The gate that was declined last. */
  declined: PendingApproval | undefined
  approve: ApproveMode
  /** Whether somebody could be asked. */
  isTty: boolean
  /** The paths that the user attached, from the workspace root. */
  attached: readonly string[]
  /** Calls that were answered. */
  toolCalls: number
}

/** What a refusal says of itself, as far as remedies ask. */
const Details = z
  .object({
    reason: z.string(),
    local_because: z.string(),
    local_about: z.string(),
    capability: z.string(),
    candidates: z.array(z.object({ model: z.string(), reason: z.string() })),
  })
  .partial()
type Details = z.infer<typeof Details>

/** What to do about a failed run; undefined where the failure alone says it (`failureText`). */
export function runRemedy(failure: ClientFailure, facts: RunFacts): string | undefined {
  const details = detailsOf(failure)
  switch (codeOf(failure)) {
    // Other commands show archived sessions as they are; only a run has to have them back first.
    case 'session_not_found':
      return `if it is archived, \`switchyard sessions archive ${facts.sessionId ?? 'ID'} --restore\` brings it back; \`switchyard sessions list --archived\` shows your sessions`
    case 'no_route':
      return disclosureRemedy(details.local_because, facts) ?? noRouteRemedy(details, facts)
    case 'override_not_allowed':
      return disclosureRemedy(details.reason, facts) ?? overrideRemedy(details, facts)
    case 'fallback_exhausted':
      return disclosureRemedy(undefined, facts)
    case 'routing_unsupported_capability':
      return unsupportedRemedy(details)
    case 'missing_capability':
      return `the rule asks for it by \`requires_capabilities\`: name a model that has it, or take it out of the rule; ${WHAT_THERE_IS}`
    default:
      return undefined
  }
}

const detailsOf = (failure: ClientFailure): Details =>
  failure.kind === 'http' || failure.kind === 'turn' ? (Details.safeParse(failure.details).data ?? {}) : {}

/**
 * What lets a disclosure pass that nobody could be asked about; undefined when there was none, or the user said no.
 * @param cause what binds the turn, where the failure tells: content that only local models may see is not disclosed
 *   whatever the user says
 */
function disclosureRemedy(
  cause: string | undefined,
  { declined, approve, isTty }: RunFacts,
): string | undefined {
  if (declined?.kind !== 'remote_disclosure' || (approve === 'ask' && isTty)) return undefined
  if (cause !== undefined && cause !== 'remote_declined') return undefined
  const [table, other] =
    declined.detail?.local === true ? ['[privacy.local]', 'remote'] : ['[privacy.remote]', 'local']
  const ways = [
    ...(approve === 'ask' ? ['add --yes'] : []),
    `set mode = "allow" under ${table} in ${globalConfigPath()}`,
    `name a ${other} model`,
  ]
  return `the disclosure was declined: ${ways.join(', or ')}; ${WHAT_THERE_IS}`
}

function noRouteRemedy(details: Details, facts: RunFacts): string {
  if (details.reason === 'local_denied')
    return `name a remote model in [routing], or set mode = "allow" under [privacy.local] in ${globalConfigPath()}; ${WHAT_THERE_IS}`
  const ways = [fittingModel(details, facts), ...wayOut(details.local_because, details.local_about, facts)]
  return `${ways.join(', or ')}; ${WHAT_THERE_IS}`
}

/** The model that the route would need, by what is amiss with the local one that it names. */
function fittingModel({ candidates = [] }: Details, { sessionId }: RunFacts): string {
  const local = candidates.find(({ reason }) => reason !== 'remote')
  switch (local?.reason) {
    case 'window':
      return `${local.model} is too small for this prompt: name a local model with a larger window, or attach less`
    case 'capability':
      return `${local.model} lacks what the turn needs: name a local model that has it (\`switchyard explain ${sessionId ?? 'SESSION'}\` says what)`
    case 'absent':
      return `its provider does not have ${local.model}: name a local model that it has`
    case 'unavailable':
      return `the provider of ${local.model} cannot be asked: start it, or name another local model`
    case 'failed':
      return `${local.model} did not answer: try again, or name another local model`
    case 'credential':
      return `there is no key for ${local.model}: set one, or name another local model`
    default:
      return 'name a local model in [routing]'
  }
}

function overrideRemedy({ reason, local_about }: Details, facts: RunFacts): string {
  const ways = ['leave --model out or name a local model with it', ...wayOut(reason, local_about, facts)]
  return `${ways.join(', or ')}; ${WHAT_THERE_IS}`
}

/** What frees the turn from local models, by what binds it to them. */
function wayOut(cause: string | undefined, about: string | undefined, facts: RunFacts): string[] {
  switch (cause) {
    case 'required_content':
      return [withoutContent(about, facts)]
    case 'preference':
      return [`set ${about ?? 'local_only'} = false under [local_preferences]`]
    case 'rule':
      return [`take local_only out of the rule${about === undefined ? '' : ` "${about}"`}`]
    case 'remote_denied':
      return [`set mode = "ask" under [privacy.remote] in ${globalConfigPath()}`]
    default:
      return []
  }
}

/** As the router tells of constrained content: the path, then the pattern and the list that it matches. */
const CONSTRAINED_PATH = /^`([^`]+)` matches /

function withoutContent(about: string | undefined, { attached, toolCalls }: RunFacts): string {
  const path = CONSTRAINED_PATH.exec(about ?? '')?.[1]
  if (path !== undefined && attached.some((one) => path === one || path.startsWith(`${one}/`)))
    return `take \`${path}\` out of the prompt`
  const it = path === undefined ? 'the private content' : `\`${path}\``
  return toolCalls > 0
    ? `ask for something that does not need ${it}: a tool call of this run named or showed it`
    : `keep ${it} out of this run`
}

function unsupportedRemedy({ capability = '' }: Details): string {
  const asked = capability.split(', ')
  const ways = [
    ...(asked.includes('reasoning')
      ? [
          'the rule asks for reasoning by its effort (high or xhigh): name a model that has it, or lower the `effort`',
        ]
      : []),
    ...(asked.includes('images')
      ? ['a picture is attached: name a model that takes images, or leave the picture out']
      : []),
  ]
  return [...ways, WHAT_THERE_IS].join('; ')
}
