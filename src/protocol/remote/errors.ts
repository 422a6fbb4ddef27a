import { z } from 'zod'

/**
 * Why a request was refused (remote protocol, "Operations"). `unauthorized`, `receipt_capacity` and `open_elsewhere`
 * are reserved and never sent (D37).
 */
export const RemoteErrorCode = z
  .enum([
    'incompatible_version',
    'unauthorized',
    'invalid_request',
    'unsupported_operation',
    'frame_too_large',
    'rate_limited',
    'not_found',
    'stale_session',
    'busy',
    'not_running',
    'stale_turn',
    'stale_question',
    'invalid_answer',
    'stale_approval',
    'stale_cursor',
    'request_conflict',
    'receipt_capacity',
    'owner_unavailable',
    'open_elsewhere',
    'internal',
  ])
  .meta({ id: 'RemoteErrorCode' })
export type RemoteErrorCode = z.infer<typeof RemoteErrorCode>

export const RemoteError = z
  .object({
    type: z.literal('error'),
    code: RemoteErrorCode,
    message: z.string(),
    supported_versions: z.array(z.int().nonnegative()).optional().describe('With `incompatible_version`.'),
  })
  .meta({ id: 'RemoteError' })
export type RemoteError = z.infer<typeof RemoteError>
