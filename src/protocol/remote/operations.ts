/** What a client asks for after the handshake (remote protocol, "Operations" and the sections it points to). */

import { z } from 'zod'
import { nullAsAbsent } from '../execution/request-fields.ts'
import { MAX_SAVED_SESSIONS_PAGE } from './limits.ts'

const count = z.int().nonnegative()

/** Where a client stopped reading a session, so that it gets what came after it. */
export const ResumeCursor = z
  .object({
    gateway_id: z.string(),
    instance_id: nullAsAbsent(z.string()),
    last_sequence: count,
    snapshot_id: nullAsAbsent(z.string()),
  })
  .meta({ id: 'ResumeCursor' })
export type ResumeCursor = z.infer<typeof ResumeCursor>

export const RemoteAnswer = z
  .discriminatedUnion('type', [
    z.object({ type: z.literal('selected'), options: z.array(z.string()) }),
    z.object({ type: z.literal('custom'), text: z.string() }),
  ])
  .meta({ id: 'RemoteAnswer' })
export type RemoteAnswer = z.infer<typeof RemoteAnswer>

export const ApprovalChoice = z.enum(['approve', 'deny']).meta({ id: 'ApprovalChoice' })
export type ApprovalChoice = z.infer<typeof ApprovalChoice>

/**
 * The settings that a device may write, and no other. What is left out keeps its value; null is another thing than
 * leaving out, and takes the value away.
 */
const HostSettingsChange = z
  .strictObject({
    harness: z.string().nullable().optional(),
    model: z.string().nullable().optional(),
    effort: z.string().nullable().optional(),
  })
  .meta({ id: 'HostSettingsChange' })

const operation = <T extends string, Fields extends z.ZodRawShape>(type: T, fields: Fields) =>
  z.object({ type: z.literal(type), ...fields })

const prompt = { prompt: z.string() }
const sessionId = { session_id: z.string() }

export const RemoteOperation = z
  .discriminatedUnion('type', [
    operation('list_sessions', {}),
    operation('subscribe_sessions', {}),
    operation('attach_session', { resume: nullAsAbsent(ResumeCursor) }),
    operation('detach_session', {}),
    operation('get_history', { cursor: nullAsAbsent(z.string()), limit: count }),
    operation('get_content', { content_id: z.string(), offset: count, max_bytes: count }),
    operation('get_changes', {}),
    operation('submit_prompt', prompt),
    operation('steer', prompt),
    operation('queue', prompt),
    operation('cancel_turn', { turn_id: z.string() }),
    operation('answer_question', { question_id: z.string(), answer: RemoteAnswer }),
    operation('cancel_question', { question_id: z.string() }),
    operation('resolve_approval', { batch_id: z.string(), choice: ApprovalChoice }),
    operation('set_session_settings', { model: z.string(), reasoning_effort: z.string() }),
    operation('execute_command', { command: z.string() }),
    operation('upload_image', {
      attachment_id: z.string(),
      mime_type: z.string(),
      offset: count,
      total_bytes: count,
      data_base64: z.string(),
    }),
    operation('get_request_status', { target_request_id: z.string() }),
    operation('list_directories', { path: nullAsAbsent(z.string()) }),
    operation('create_session', {
      path: nullAsAbsent(z.string()),
      harness: nullAsAbsent(z.string()),
      model: nullAsAbsent(z.string()),
    }),
    // The contract names this one without its fields; it is never served (D37).
    operation('request_share', {}),
    operation('list_saved_sessions', {
      cursor: nullAsAbsent(z.string()),
      limit: nullAsAbsent(z.int().min(1).max(MAX_SAVED_SESSIONS_PAGE)),
      query: nullAsAbsent(z.string()),
    }),
    operation('resume_session', sessionId),
    operation('get_usage', {}),
    operation('get_settings', {}),
    operation('set_settings', { settings: HostSettingsChange }),
    operation('pin_thread', sessionId),
    operation('unpin_thread', sessionId),
    operation('settle_thread', sessionId),
    operation('unsettle_thread', sessionId),
  ])
  .meta({ id: 'RemoteOperation' })
export type RemoteOperation = z.infer<typeof RemoteOperation>
