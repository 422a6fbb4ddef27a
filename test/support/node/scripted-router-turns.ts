import type { ToolRequest, TurnResponse } from '../../../src/protocol/execution/turn.ts'

type End = { type: 'turn_end' } & TurnResponse

export const text = (delta: string) => ({ type: 'text_delta', delta }) as const

/** The end of a turn that answered. */
export const completed = (content: string, changes: Record<string, unknown> = {}): End => ({
  type: 'turn_end',
  status: 'completed',
  data: {
    message: { role: 'assistant', content, provider: 'ollama', model: 'small' },
    classification: { intent: 'chat', source: 'inferred', reason: 'no rule matched' },
    routing: {
      task_type: 'chat',
      provider: 'ollama',
      model: 'small',
      fallback_used: false,
      override_used: false,
    },
    context: { included: [], excluded: [] },
    usage: { input_tokens: 812, output_tokens: 44, actual_cost: '0.003096', currency: 'USD' },
    trace_id: 'trace:1',
    ...changes,
  },
})

export const idle: End = { type: 'turn_end', status: 'idle', data: { trace_id: 'trace:1' } }

export const call = (
  callId: string,
  name: string,
  args: Record<string, unknown>,
  requires_approval: 'allow' | 'ask' = 'allow',
): ToolRequest => ({ call_id: callId, name, arguments: args, requires_approval })

/** The end of a turn that waits for tools. */
export const awaitingTool = (...tool_requests: ToolRequest[]): End => ({
  type: 'turn_end',
  status: 'awaiting_tool',
  data: { tool_requests, trace_id: 'trace:1' },
  allowed_continuations: ['tool_results', 'inject', 'break'],
})

export const awaitingApproval = (
  approval_id: string,
  kind: 'remote_disclosure' | 'cost_limit' | 'plan',
  detail: Record<string, unknown>,
): End => ({
  type: 'turn_end',
  status: 'awaiting_approval',
  data: { approval: { approval_id, kind, detail }, trace_id: 'trace:1' },
  allowed_continuations: ['approval_decisions', 'break'],
})

export const failedTurn = (code: string): End => ({
  type: 'turn_end',
  status: 'error',
  data: { error: { code, message: `scripted ${code}` } },
})

export const SESSION = '0197d0a2-6c1e-7c52-9a55-0c6a6f1d2b11'
export const paths = {
  execute: `/api/v1/sessions/${SESSION}/execute`,
  continue: `/api/v1/sessions/${SESSION}/continue`,
  run: `/api/v1/sessions/${SESSION}/run`,
  usage: `/api/v1/sessions/${SESSION}/usage`,
}

/** As `POST /sessions` answers. */
export const sessionSummary = {
  id: SESSION,
  title: 'a title',
  encrypted: false,
  created_at: '2026-01-01T00:00:00.000Z',
  updated_at: '2026-01-01T00:00:00.000Z',
  archived: false,
}
