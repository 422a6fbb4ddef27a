import type { ApprovalKind } from '../../protocol/execution/turn.ts'
import {
  MAX_APPROVAL_BYTES,
  MAX_SUMMARY_CHARS,
  MIN_APPROVAL_ACTION_BYTES,
} from '../../protocol/remote/limits.ts'
import type { BoundedText } from '../../protocol/remote/message.ts'
import type { RemoteApprovalBatch } from '../../protocol/remote/question.ts'
import { headCut } from './bounded-text.ts'
import { approvalContentId } from './content-ids.ts'
import { label, toolName } from './labels.ts'

/**
 * What a batch asks to approve, one entry per call. `details`: the literal arguments, or their beginning with the size of
 * the whole in UTF-8 bytes where the rest was not read.
 */
export type BatchAction = {
  toolName: string
  /** What it is about, in a line; absent where nobody can tell. */
  target?: string | undefined
  details: { text: string; totalBytes?: number }
  risk: string
}

/** A hundred of them stand in one frame beside everything else. */
const MAX_SUMMARY_BYTES = 320

export const CALL_RISK =
  'It runs on your computer, with your rights. What it changes stays changed: read its arguments whole before you approve.'

const GATE_RISKS: Readonly<Record<ApprovalKind, string>> = {
  remote_disclosure:
    'These files, and what was said, are sent to this provider. What has been sent cannot be taken back.',
  cost_limit: 'This call may cost more than the limit that your rule sets.',
  plan: 'With your approval the plan is carried out; each of its changes still asks as your permissions say.',
}
const LOCAL_RISK = 'These files, and what was said, are shown to a model on a machine of yours.'

/** What an approval risks: one fixed sentence for each kind of it. */
export const gateRisk = (kind: ApprovalKind, isLocal: boolean): string =>
  kind === 'remote_disclosure' && isLocal ? LOCAL_RISK : GATE_RISKS[kind]

/** How much of the details of each action is shown, in bytes: they share what a batch may take (RF 19). */
export const actionBytes = (actions: number): number =>
  Math.max(Math.floor(MAX_APPROVAL_BYTES / Math.max(1, actions)), MIN_APPROVAL_ACTION_BYTES)

/** A batch as a device sees it (RF 19). Every action is listed; only their details are cut. */
export function approvalBatch(batchId: string, actions: readonly BatchAction[]): RemoteApprovalBatch {
  const bytes = actionBytes(actions.length)
  return {
    batch_id: batchId,
    actions: actions.map(({ toolName: name, target, details, risk }, index) => ({
      tool_name: toolName(name),
      summary: summary(name, target),
      risk,
      details: cutDetails(details, bytes, approvalContentId(batchId, index)),
    })),
  }
}

function summary(name: string, target: string | undefined): string {
  const text = target === undefined || target === '' ? toolName(name) : `${toolName(name)} · ${target}`
  return label(text, MAX_SUMMARY_BYTES, MAX_SUMMARY_CHARS)
}

function cutDetails(
  { text, totalBytes }: BatchAction['details'],
  maxBytes: number,
  contentId: string,
): BoundedText {
  const cut = headCut(text, maxBytes, contentId)
  if (totalBytes === undefined) return cut
  return { ...cut, truncated: cut.truncated || totalBytes > cut.total_bytes, total_bytes: totalBytes }
}
