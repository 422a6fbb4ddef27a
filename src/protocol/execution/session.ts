import { z } from 'zod'
import { Provider, Timestamp, Uuid } from './ids.ts'
import { EncryptedPayload } from './sealed.ts'

export const MessageRole = z.enum(['system', 'user', 'assistant', 'tool']).meta({ id: 'MessageRole' })
export type MessageRole = z.infer<typeof MessageRole>

/** A session as lists show it. `title` is always present (EC 1, omission rules). */
export const SessionSummary = z
  .object({
    id: Uuid,
    title: z.string().nullable(),
    scope: z.string().nullable().optional(),
    encrypted: z.boolean(),
    key_id: z.string().nullable().optional(),
    created_at: Timestamp,
    updated_at: Timestamp,
    archived: z.boolean(),
    shared: z
      .boolean()
      .optional()
      .describe(
        'The session is listed live on the paired devices of its user. In lists of sessions the first turn has to end before it shows.',
      ),
    pinned: z.boolean().optional().describe('In lists: a device has pinned the session.'),
    settled: z.boolean().optional().describe('In lists: a device has marked the session as done.'),
  })
  .meta({ id: 'SessionSummary' })
export type SessionSummary = z.infer<typeof SessionSummary>

export const MessageContent = z
  .union([z.object({ plaintext: z.string() }), z.object({ encrypted: EncryptedPayload })])
  .meta({ id: 'MessageContent' })
export type MessageContent = z.infer<typeof MessageContent>

/** One transcript message. `provider` and `model` on assistant messages only (EC 2.8); `interrupted` is our addition. */
export const SessionMessageDetail = z
  .object({
    role: MessageRole,
    content: MessageContent,
    provider: Provider.nullable().optional(),
    model: z.string().nullable().optional(),
    interrupted: z.boolean().optional().describe('The message was cut short; what is here is all there is.'),
    id: Uuid.optional().describe('In an encrypted session: sealed content is bound to `message:<id>`.'),
  })
  .meta({ id: 'SessionMessageDetail' })
export type SessionMessageDetail = z.infer<typeof SessionMessageDetail>

/** `GET /sessions/{id}` (EC 2.8): messages oldest first. */
export const SessionDetail = z
  .object({
    id: Uuid,
    title: z.string(),
    scope: z.string().nullable().optional(),
    key_id: z.string().nullable().optional(),
    created_at: Timestamp,
    updated_at: Timestamp,
    messages: z.array(SessionMessageDetail),
    metadata: z.record(z.string(), z.unknown()).nullable(),
  })
  .meta({ id: 'SessionDetail' })
export type SessionDetail = z.infer<typeof SessionDetail>

/** `POST /sessions` (EC 2.6): `key_id` makes the session encrypted for life. */
export const CreateSessionRequest = z
  .object({ title: z.string(), scope: z.string().nullish(), key_id: z.string().nullish() })
  .meta({ id: 'CreateSessionRequest' })
export type CreateSessionRequest = z.infer<typeof CreateSessionRequest>

/** `PUT /sessions/{id}` (EC 2.9): absent or null fields stay as they are. `shared` is our addition. */
export const UpdateSessionRequest = z
  .object({
    title: z.string().nullish(),
    archived: z.boolean().nullish(),
    shared: z
      .boolean()
      .nullish()
      .describe('`true` lists the session live; `false` takes it off, and runs do not list it again.'),
  })
  .meta({ id: 'UpdateSessionRequest' })
export type UpdateSessionRequest = z.infer<typeof UpdateSessionRequest>

export const CreateSessionResponse = z
  .object({ session: SessionSummary })
  .meta({ id: 'CreateSessionResponse' })
export type CreateSessionResponse = z.infer<typeof CreateSessionResponse>

export const UpdateSessionResponse = z
  .object({ session: SessionSummary })
  .meta({ id: 'UpdateSessionResponse' })
export type UpdateSessionResponse = z.infer<typeof UpdateSessionResponse>

export const GetSessionResponse = z.object({ session: SessionDetail }).meta({ id: 'GetSessionResponse' })
export type GetSessionResponse = z.infer<typeof GetSessionResponse>

export const ListSessionsResponse = z
  .object({ sessions: z.array(SessionSummary) })
  .meta({ id: 'ListSessionsResponse' })
export type ListSessionsResponse = z.infer<typeof ListSessionsResponse>

export const DeleteSessionResponse = z.object({ deleted: z.boolean() }).meta({ id: 'DeleteSessionResponse' })
export type DeleteSessionResponse = z.infer<typeof DeleteSessionResponse>
