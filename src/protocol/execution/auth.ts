import { z } from 'zod'
import { Timestamp } from './ids.ts'

/** `GET /status` (EC 2.1). */
export const StatusResponse = z
  .object({ status: z.string(), version: z.string() })
  .meta({ id: 'StatusResponse' })
export type StatusResponse = z.infer<typeof StatusResponse>

/** `POST /auth/bootstrap` (EC 2.2). The key is shown this once. */
export const BootstrapResponse = z
  .object({ user_id: z.string(), api_key: z.string() })
  .meta({ id: 'BootstrapResponse' })
export type BootstrapResponse = z.infer<typeof BootstrapResponse>

/** `POST /auth/sign-in` (EC 2.3). */
export const SignInResponse = z
  .object({ token: z.string(), expires_at: Timestamp })
  .meta({ id: 'SignInResponse' })
export type SignInResponse = z.infer<typeof SignInResponse>

/** `POST /auth/sign-out` (EC 2.4). */
export const SignOutResponse = z.object({ revoked: z.boolean() }).meta({ id: 'SignOutResponse' })
export type SignOutResponse = z.infer<typeof SignOutResponse>

/** `GET /auth/me` (EC 2.5). */
export const MeResponse = z.object({ user_id: z.string() }).meta({ id: 'MeResponse' })
export type MeResponse = z.infer<typeof MeResponse>
