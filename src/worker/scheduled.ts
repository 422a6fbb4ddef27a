import { openDatabase } from '../storage/d1/database.ts'
import { type CleanUpReport, cleanUp } from './clean-up.ts'
import { type Env, gatewayStub, sessionStub } from './env.ts'
import { parseRetention } from './retention-config.ts'

/** The Worker's cron trigger (wrangler.toml): the hourly clean-up (D31). */
export async function scheduled(
  _controller: ScheduledController,
  env: Env,
  _context: ExecutionContext,
): Promise<void> {
  const { retention, problems } = parseRetention(env)
  for (const problem of problems) console.warn(problem)
  const report: CleanUpReport = await cleanUp({
    db: openDatabase(env.DB),
    session: (id) => sessionStub(env, id),
    gateway: (userId) => gatewayStub(env, userId),
    retention,
    now: Date.now,
  })
  console.info(`clean-up: ${JSON.stringify(report)}`)
}
