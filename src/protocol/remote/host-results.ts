/** Answers about the account rather than one live session (remote protocol, "Sessions", "Saved sessions", "Usage, host settings and thread status"). */

import { z } from 'zod'
import { ParentSession, RemoteSessionInfo } from './session-info.ts'

const count = z.int().nonnegative()
const timestamp = z.iso.datetime({ offset: true })

/** Optional host-wide features. They stand in answers and never in a pushed list. */
export const HostCapability = z
  .enum([
    'saved_sessions',
    'session_changes',
    'thread_create_options',
    'usage_summary',
    'settings_get',
    'settings_set',
    'thread_pin',
    'thread_unpin',
    'thread_settle',
    'thread_unsettle',
    'token_rotation',
    'connect_requests',
    'desktops',
    'flow_ack',
  ])
  .meta({ id: 'HostCapability' })
export type HostCapability = z.infer<typeof HostCapability>

export const SessionsResult = z.object({
  type: z.literal('sessions'),
  gateway_id: z.string(),
  instance_id: z.string().optional(),
  sessions: z.array(RemoteSessionInfo),
  subscribed: z.boolean(),
  capabilities: z.array(HostCapability).optional(),
})

/** `open` and `open_in` are typed and never sent: nothing here holds a session without listing it (D03). */
export const SavedSession = z
  .object({
    session_id: z.string(),
    title: z.string(),
    project: z.string().optional(),
    parent: ParentSession.optional(),
    workspace: z.string().optional(),
    updated_at: timestamp,
    message_count: count,
    state: z.enum(['saved', 'shared', 'open']),
    open_in: z.enum(['app', 'terminal', 'remote']).optional(),
  })
  .meta({ id: 'SavedSession' })
export type SavedSession = z.infer<typeof SavedSession>

export const SavedSessionsResult = z.object({
  type: z.literal('saved_sessions'),
  sessions: z.array(SavedSession),
  next_cursor: z.string().optional(),
})

export const DirectoriesResult = z.object({
  type: z.literal('directories'),
  path: z.string(),
  parent: z.string().optional(),
  directories: z.array(z.object({ name: z.string(), path: z.string() })),
  truncated: z.boolean(),
})

/** What was reported, and only that: an absent amount is unknown, not zero. Money is a number here (D49). */
export const RemoteUsage = z
  .object({
    input_tokens: count.optional(),
    output_tokens: count.optional(),
    cached_tokens: count.optional(),
    cache_write_tokens: count.optional(),
    cost_usd: z.number().nonnegative().optional(),
    turns: count,
  })
  .meta({ id: 'RemoteUsage' })
export type RemoteUsage = z.infer<typeof RemoteUsage>

export const UsageResult = z.object({
  type: z.literal('usage'),
  since: z.iso.date(),
  until: z.iso.date(),
  totals: RemoteUsage,
  by_day: z.array(z.object({ day: z.iso.date(), usage: RemoteUsage })),
  by_harness: z.array(z.object({ harness: z.string(), usage: RemoteUsage })),
  by_model: z.array(z.object({ harness: z.string(), model: z.string(), usage: RemoteUsage })),
})

/** What new sessions start with; a setting that nobody made is absent. */
export const SettingsResult = z.object({
  type: z.literal('settings'),
  harness: z.string().optional(),
  model: z.string().optional(),
  effort: z.string().optional(),
})
