import { createMiddleware } from 'hono/factory'
import { type Bucket, takeToken } from '../../core/token-bucket.ts'
import { failure } from '../../protocol/execution/errors.ts'
import type { AppEnv } from '../context.ts'
import { numberVar } from '../env.ts'
import { failed } from '../errors.ts'

/** One token every 10 ms (EC 1.5). */
const DEFAULT_PERIOD_MS = 10
/** (EC 1.5) */
const DEFAULT_BURST = 200
/** Addresses that are remembered; the longest silent go first, and by then their bucket is full again. */
const MAX_BUCKETS = 10_000

const buckets = new Map<string, Bucket>()

/**
 * A token bucket per client address, in this isolate's memory: it holds a single loud client down and costs no round
 * trip. `RATE_LIMIT_BURST=0` switches it off.
 */
export const rateLimit = createMiddleware<AppEnv>(async (c, next) => {
  const burst = numberVar(c.env.RATE_LIMIT_BURST, DEFAULT_BURST)
  const periodMs = numberVar(c.env.RATE_LIMIT_PERIOD_MS, DEFAULT_PERIOD_MS)
  if (burst > 0) {
    const address = c.req.header('CF-Connecting-IP') ?? 'unknown'
    const taken = takeToken(buckets.get(address), { periodMs, burst }, Date.now())
    buckets.delete(address)
    buckets.set(address, taken.bucket)
    if (buckets.size > MAX_BUCKETS) {
      const oldest = buckets.keys().next().value
      if (oldest !== undefined) buckets.delete(oldest)
    }
    if (taken.waitMs > 0) {
      const seconds = Math.max(1, Math.ceil(taken.waitMs / 1000))
      return failed(
        c,
        failure('rate_limited', 'too many requests; slow down', { retry_after_ms: taken.waitMs }),
        {
          'Retry-After': String(seconds),
        },
      )
    }
  }
  await next()
})
