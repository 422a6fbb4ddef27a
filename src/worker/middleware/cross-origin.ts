import { cors } from 'hono/cors'
import { createMiddleware } from 'hono/factory'
import type { AppEnv } from '../context.ts'

const REQUEST_HEADERS = new Set([
  'accept',
  'authorization',
  'content-type',
  'idempotency-key',
  'last-event-id',
  'x-smista-api-key',
  'x-smista-timeout-ms',
])
const PROVIDER_HEADER = /^x-smista-provider-[a-z0-9_-]+-api-key$/

/** Browsers of the configured origins may call the API; the provider headers are a family, so they are reflected (EC 1.5). */
export const crossOrigin = createMiddleware<AppEnv>(async (c, next) => {
  const allowed = (c.env.ALLOWED_ORIGINS ?? '').split(',').map((origin) => origin.trim())
  const origin = c.req.header('Origin')
  if (origin === undefined || origin === '' || !allowed.includes(origin)) return next()
  const requested = (c.req.header('Access-Control-Request-Headers') ?? '')
    .split(',')
    .map((name) => name.trim())
  return cors({
    origin,
    allowMethods: ['GET', 'POST', 'PUT', 'DELETE'],
    allowHeaders: requested.filter((name) => {
      const lower = name.toLowerCase()
      return REQUEST_HEADERS.has(lower) || PROVIDER_HEADER.test(lower)
    }),
    exposeHeaders: ['Retry-After'],
    maxAge: 600,
  })(c, next)
})
