/** What an answer says, by the `type` of its result (remote protocol, "Operations"). */

import { z } from 'zod'
import { RemoteError } from './errors.ts'
import { ResyncReason } from './events.ts'
import {
  DirectoriesResult,
  SavedSessionsResult,
  SessionsResult,
  SettingsResult,
  UsageResult,
} from './host-results.ts'
import { RemoteMessage } from './message.ts'
import { ApprovalChoice } from './operations.ts'
import { RemoteSessionInfo } from './session-info.ts'
import { RemoteSessionSettings } from './session-settings.ts'
import { RemoteSnapshot } from './snapshot.ts'

const count = z.int().nonnegative()

/** What became of a mutation. `received`: it is there and not decided yet. */
export const ReceiptState = z
  .enum(['applied', 'rejected', 'received', 'unknown'])
  .meta({ id: 'ReceiptState' })
export type ReceiptState = z.infer<typeof ReceiptState>

const result = <T extends string, Fields extends z.ZodRawShape>(type: T, fields: Fields) =>
  z.object({ type: z.literal(type), ...fields })

const gateway = { gateway_id: z.string(), instance_id: z.string().optional() }

/**
 * One changed file. The contract says in words what an entry holds and leaves the names of its fields open; these are
 * ours.
 */
export const ChangedFile = z
  .object({
    path: z.string(),
    status: z.string().describe('added, modified, deleted, renamed, untracked, …'),
    added: count,
    removed: count,
    diff: z.string().describe('Unified.'),
    diff_truncated: z.boolean().optional(),
  })
  .meta({ id: 'ChangedFile' })
export type ChangedFile = z.infer<typeof ChangedFile>

/** Uncommitted changes of a workspace. Not available is a success that says why. */
const ChangesResult = result('changes', {
  available: z.boolean(),
  reason: z.string().optional(),
  captured_at: z.iso.datetime({ offset: true }),
  workspace: z.string(),
  head: z.string().optional(),
  branch: z.string().optional(),
  files: z.array(ChangedFile),
  omitted_files: count,
})

/** Every result but the one that may hold another. */
export const OutrightResult = z
  .discriminatedUnion('type', [
    RemoteError,
    SessionsResult,
    result('attached', { ...gateway, resync: ResyncReason.optional(), snapshot: RemoteSnapshot }),
    result('resumed', { ...gateway, next_sequence: count }),
    result('detached', {}),
    result('history', {
      history_revision: z.string(),
      messages: z.array(RemoteMessage),
      next_cursor: z.string().optional(),
    }),
    result('content', {
      content_id: z.string(),
      offset: count,
      text: z.string(),
      total_bytes: count,
      next_offset: count.optional(),
    }),
    ChangesResult,
    result('prompt_accepted', { disposition: z.enum(['started', 'queued', 'steered']) }),
    result('turn_cancelled', { turn_id: z.string() }),
    result('question_answered', { question_id: z.string() }),
    result('question_cancelled', { question_id: z.string() }),
    result('approval_resolved', { batch_id: z.string(), choice: ApprovalChoice }),
    result('session_settings_updated', { settings: RemoteSessionSettings }),
    result('command_executed', { command: z.string(), title: z.string(), output: z.string() }),
    result('image_uploaded', {
      attachment_id: z.string(),
      next_offset: count,
      total_bytes: count,
      complete: z.boolean(),
      prompt_reference: z.string().optional(),
    }),
    DirectoriesResult,
    result('session_created', { session: RemoteSessionInfo }),
    SavedSessionsResult,
    result('session_resumed', { session: RemoteSessionInfo }),
    UsageResult,
    SettingsResult,
    result('thread_pinned', { session_id: z.string(), pinned: z.boolean() }),
    result('thread_settled', { session_id: z.string(), settled: z.boolean() }),
  ])
  .meta({ id: 'OutrightResult' })
export type OutrightResult = z.infer<typeof OutrightResult>

/** What became of an earlier request; with its result once that is decided. */
const RequestStatusResult = result('request_status', {
  target_request_id: z.string(),
  receipt: ReceiptState,
  result: OutrightResult.optional(),
})

export const RemoteResult = z
  .discriminatedUnion('type', [OutrightResult, RequestStatusResult])
  .meta({ id: 'RemoteResult' })
export type RemoteResult = z.infer<typeof RemoteResult>
