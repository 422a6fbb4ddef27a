import type { ContinueKind } from '../../protocol/execution/continue.ts'
import { type Failure, toErrorBody } from '../../protocol/execution/errors.ts'
import type { PlainMap, SealedMap } from '../../protocol/execution/sealed.ts'
import type {
  AnswerEnding,
  EndedRun,
  PendingApproval,
  ToolRequest,
  TurnResponse,
} from '../../protocol/execution/turn.ts'
import type { Usage } from '../../protocol/execution/usage.ts'
import { acceptedUpTo } from './cost-grants.ts'
import type { Gate, TurnReport } from './inputs.ts'

/** What may answer each pause, in the contract's order (EC 5.5). */
const NEXT = {
  awaiting_tool: ['tool_results', 'inject', 'break'],
  awaiting_approval: ['approval_decisions', 'break'],
  awaiting_decrypt: ['decrypted', 'break'],
  awaiting_encrypt: ['sealed', 'break'],
} satisfies Record<string, ContinueKind[]>

const sealing = (toEncrypt: PlainMap | null) => (toEncrypt === null ? {} : { to_encrypt: toEncrypt })

/** A completed turn: terminal in a plaintext session, waiting for its ciphertext in a sealed one. */
export function completed(
  text: string,
  ending: AnswerEnding | null,
  { classification, routing, context }: TurnReport,
  usage: Usage,
  toEncrypt: PlainMap | null,
  traceId: string,
): TurnResponse {
  const { provider, model, fallback_used, override_used, matched_rule } = routing
  return {
    status: 'completed',
    data: {
      message: { role: 'assistant', content: text, provider, model },
      ...(ending === null ? {} : { ending }),
      classification,
      routing: {
        task_type: classification.intent,
        provider,
        model,
        ...(matched_rule == null ? {} : { matched_rule }),
        fallback_used,
        override_used,
      },
      context,
      usage,
      ...sealing(toEncrypt),
      trace_id: traceId,
    },
    ...(toEncrypt === null ? {} : { allowed_continuations: NEXT.awaiting_encrypt }),
  }
}

export const awaitingTool = (
  toolRequests: ToolRequest[],
  toEncrypt: PlainMap | null,
  traceId: string,
): TurnResponse => ({
  status: 'awaiting_tool',
  data: { tool_requests: toolRequests, ...sealing(toEncrypt), trace_id: traceId },
  allowed_continuations: NEXT.awaiting_tool,
})

/** What a gate is about, as it is shown; of a cost with what a yes would allow (U23). */
export function gateDetail(gate: Gate): Record<string, unknown> {
  if (gate.kind === 'remote_disclosure') return { ...gate.disclosure }
  const { rule, provider, model, limit, estimate } = gate.cost
  return {
    rule,
    limit,
    ...(estimate === null
      ? { reason: 'price_unknown' }
      : { estimated_min: estimate.min, estimated_max: estimate.max, up_to: acceptedUpTo(estimate) }),
    currency: 'USD',
    provider,
    model,
  }
}

export const awaitingApproval = (
  approval: PendingApproval,
  toEncrypt: PlainMap | null,
  traceId: string,
): TurnResponse => ({
  status: 'awaiting_approval',
  data: { approval, ...sealing(toEncrypt), trace_id: traceId },
  allowed_continuations: NEXT.awaiting_approval,
})

export const awaitingDecrypt = (
  toDecrypt: SealedMap,
  toEncrypt: PlainMap | null,
  traceId: string,
): TurnResponse => ({
  status: 'awaiting_decrypt',
  data: { to_decrypt: toDecrypt, ...sealing(toEncrypt), trace_id: traceId },
  allowed_continuations: NEXT.awaiting_decrypt,
})

export const idle = (traceId: string, ended?: EndedRun): TurnResponse => ({
  status: 'idle',
  data: { trace_id: traceId, ...(ended === undefined ? {} : { ended }) },
})

export const failed = (failure: Failure): TurnResponse => ({
  status: 'error',
  data: { error: toErrorBody(failure) },
})
