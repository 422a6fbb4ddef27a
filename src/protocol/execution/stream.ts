import { z } from 'zod'
import { ToolApproval, TurnResponse } from './turn.ts'
import { Usage } from './usage.ts'

const turnEnds = TurnResponse.options.map((option) =>
  z.object({ type: z.literal('turn_end'), ...option.shape }),
)

/** One server-sent event of a turn ("Streaming", EC 18). A stream ends with exactly one `turn_end`. */
export const TurnEvent = z
  .union([
    z.object({ type: z.literal('text_delta'), delta: z.string() }),
    z.object({ type: z.literal('reasoning_delta'), delta: z.string() }),
    z.object({ type: z.literal('tool_call_started'), call_id: z.string(), name: z.string() }),
    z.object({
      type: z.literal('tool_call_requested'),
      call_id: z.string(),
      name: z.string(),
      arguments: z.record(z.string(), z.unknown()).nullable(),
      requires_approval: ToolApproval,
    }),
    z.object({ type: z.literal('usage'), ...Usage.shape }),
    z.union(turnEnds),
  ])
  .meta({ id: 'TurnEvent' })
export type TurnEvent =
  | { type: 'text_delta'; delta: string }
  | { type: 'reasoning_delta'; delta: string }
  | { type: 'tool_call_started'; call_id: string; name: string }
  | {
      type: 'tool_call_requested'
      call_id: string
      name: string
      arguments: Record<string, unknown> | null
      requires_approval: ToolApproval
    }
  | ({ type: 'usage' } & Usage)
  | ({ type: 'turn_end' } & TurnResponse)
