import type { RunInputEvent } from '../run/inputs.ts'
import type { RunState } from '../run/state.ts'

/** Begins the digest of every request that a device makes of the machine. */
const DEVICE_PREFIX = 'device:'

/**
 * Under which digest a request of a device reaches the machine. It is stored with the turn that the request starts: after a
 * crash it says that nobody but the session itself will ask again, and what the turn may use (D14).
 */
export const deviceDigest = (request: string, deploymentProviders: boolean): string =>
  `${DEVICE_PREFIX}${deploymentProviders ? 'deployment' : 'own'}:${request}`

/**
 * A turn that a crash cut off and that a device had started: asked for again, it goes on where it was accepted, and stores
 * nothing twice (U06). Null where there is none; what a client started waits for the client to send it again.
 */
export function cutOff(
  state: RunState | null,
): { input: RunInputEvent; deploymentProviders: boolean } | null {
  if (state === null || state.active !== null || !state.unsettled?.digest.startsWith(DEVICE_PREFIX))
    return null
  const { digest } = state.unsettled
  const input = repeated(state, digest, state.unsettled.kind)
  return input && { input, deploymentProviders: digest.startsWith(`${DEVICE_PREFIX}deployment:`) }
}

function repeated(state: RunState, digest: string, kind: string): RunInputEvent | null {
  const again = { type: 'continuation_received', digest, partial: null, localOnly: false } as const
  const { phase, driver } = state
  switch (kind) {
    // Its words were stored when it came first.
    case 'execute':
      return {
        type: 'execute_requested',
        digest,
        text: '',
        command: null,
        driver,
        policyDigest: null,
        localOnly: false,
      }
    case 'inject':
      return { ...again, message: { type: 'inject', data: { messages: [{ text: '' }] } } }
    case 'approval_decisions':
      return phase.k === 'AwaitingApproval' && phase.decided !== null
        ? {
            ...again,
            message: {
              type: 'approval_decisions',
              data: { decisions: [{ approval_id: phase.approvalId, decision: phase.decided }] },
            },
          }
        : null
    // What a device has answered is settled, and so is what came with it.
    case 'question_answered':
    case 'tool_results':
      return { ...again, message: { type: 'tool_results', data: { results: [] } } }
    default:
      return null
  }
}
