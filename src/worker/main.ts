import { Gateway } from '../gateway/gateway.ts'
import { Session } from '../session/session.ts'
import { app } from './app.ts'
import type { Env } from './env.ts'
import { scheduled } from './scheduled.ts'

export { Gateway, Session }
export default { fetch: app.fetch, scheduled } satisfies ExportedHandler<Env>
