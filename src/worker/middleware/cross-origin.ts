import { cors } from 'hono/cors'
import { createMiddleware } from 'hono/factory'
import type { AppEnv } from '../context.ts'
import { allowedOrigins } from '../origins.ts'
import { isSocketUpgrade } from '../socket-origin.ts'

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
  const origin = c.req.header('Origin')
  // An upgrade knows no such agreement: its own route decides who may open a socket.
  if (isSocketUpgrade(c.req.raw)) return next()
  if (origin === undefined || !allowedOrigins(c.env.ALLOWED_ORIGINS).includes(origin)) return next()
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
