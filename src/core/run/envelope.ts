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

/** A completed turn; terminal, unless there is something to seal (`withToEncrypt`). */
export function completed(
  text: string,
  ending: AnswerEnding | null,
  { classification, routing, context }: TurnReport,
  usage: Usage,
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
      trace_id: traceId,
    },
  }
}

export const awaitingTool = (toolRequests: ToolRequest[], traceId: string): TurnResponse => ({
  status: 'awaiting_tool',
  data: { tool_requests: toolRequests, trace_id: traceId },
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

export const awaitingApproval = (approval: PendingApproval, traceId: string): TurnResponse => ({
  status: 'awaiting_approval',
  data: { approval, trace_id: traceId },
  allowed_continuations: NEXT.awaiting_approval,
})

export const awaitingDecrypt = (toDecrypt: SealedMap, traceId: string): TurnResponse => ({
  status: 'awaiting_decrypt',
  data: { to_decrypt: toDecrypt, trace_id: traceId },
  allowed_continuations: NEXT.awaiting_decrypt,
})

/** Content is left to seal, and nothing else is waited for (EC 5.5). */
export const awaitingEncrypt = (toEncrypt: PlainMap, traceId: string, ended?: EndedRun): TurnResponse => ({
  status: 'awaiting_encrypt',
  data: { to_encrypt: toEncrypt, trace_id: traceId, ...(ended === undefined ? {} : { ended }) },
  allowed_continuations: NEXT.awaiting_encrypt,
})

/** An outcome with the texts that the client has to seal (EC 17.3); an ending that has no place for them stays as it is. */
export function withToEncrypt(outcome: TurnResponse, toEncrypt: PlainMap): TurnResponse {
  if (Object.keys(toEncrypt).length === 0) return outcome
  switch (outcome.status) {
    case 'completed':
      return {
        ...outcome,
        data: { ...outcome.data, to_encrypt: toEncrypt },
        allowed_continuations: NEXT.awaiting_encrypt,
      }
    case 'awaiting_tool':
      return { ...outcome, data: { ...outcome.data, to_encrypt: toEncrypt } }
    case 'awaiting_approval':
      return { ...outcome, data: { ...outcome.data, to_encrypt: toEncrypt } }
    case 'awaiting_decrypt':
      return { ...outcome, data: { ...outcome.data, to_encrypt: toEncrypt } }
    case 'awaiting_encrypt':
      return { ...outcome, data: { ...outcome.data, to_encrypt: toEncrypt } }
    default:
      return outcome
  }
}

export const idle = (traceId: string, ended?: EndedRun): TurnResponse => ({
  status: 'idle',
  data: { trace_id: traceId, ...(ended === undefined ? {} : { ended }) },
})

export const failed = (failure: Failure): TurnResponse => ({
  status: 'error',
  data: { error: toErrorBody(failure) },
})
