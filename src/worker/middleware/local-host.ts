import { createMiddleware } from 'hono/factory'
import { failure } from '../../protocol/execution/errors.ts'
import type { AppEnv } from '../context.ts'
import { isLocalDev } from '../env.ts'
import { failed } from '../errors.ts'

const LOOPBACK = /^(localhost|127(\.\d{1,3}){3}|\[::1\])$/

/** The name under which the request came, without its port. */
export const hostName = (host: string): string => host.replace(/:\d+$/, '').toLowerCase()

/** A local router answers to loopback names only: a web page that rebinds its own name to 127.0.0.1 gets nothing (D43). */
export const localHost = createMiddleware<AppEnv>(async (c, next) => {
  if (isLocalDev(c.env)) {
    const host = c.req.header('Host') ?? new URL(c.req.url).host
    if (!LOOPBACK.test(hostName(host))) {
      return failed(c, failure('forbidden', 'a local router answers to localhost and 127.0.0.1 only'))
    }
  }
  await next()
})
