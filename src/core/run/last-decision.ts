import type { DeviceDecision, RunState } from './state.ts'

/**
 * Keeps in mind what a device decided last, for as long as the run goes on: a pause forgets it when its turn reaches a
 * checkpoint, and devices show it until then and afterwards (D10).
 */
export function withLastDecision(before: RunState | null, after: RunState, nowMs: number): RunState {
  const { lastDecision, ...rest } = after
  const known = before?.runId === after.runId ? before.lastDecision : undefined
  const made = decisionIn(after)
  if (made === null) return known === undefined ? rest : { ...rest, lastDecision: known }
  const { batchId, decision, isActedOn } = made
  const actedOnAtMs = (known?.batchId === batchId ? known.actedOnAtMs : undefined) ?? nowMs
  return { ...rest, lastDecision: { ...decision, batchId, ...(isActedOn ? { actedOnAtMs } : {}) } }
}

/** The decision of a device that the pause of a run knows of. It is acted on when results come, or the run goes on with it. */
function decisionIn({ phase }: RunState): {
  batchId: string
  decision: DeviceDecision
  isActedOn: boolean
} | null {
  if (phase.k === 'AwaitingApproval' && phase.byDevice !== undefined)
    return { batchId: phase.approvalId, decision: phase.byDevice, isActedOn: phase.decided !== null }
  if (phase.k !== 'AwaitingTool' || phase.batchId === undefined) return null
  for (const { decision, settled } of phase.calls)
    if (decision !== undefined) return { batchId: phase.batchId, decision, isActedOn: settled }
  return null
}
