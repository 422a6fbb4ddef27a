import type { RemoteErrorCode } from '../../protocol/remote/errors.ts'

/** Why an operation of a device is not done; `message` is a sentence that can be shown as it is. */
export type Refusal = { code: RemoteErrorCode; message: string }

export const refuse = (code: RemoteErrorCode, message: string): { ok: false; error: Refusal } => ({
  ok: false,
  error: { code, message },
})
