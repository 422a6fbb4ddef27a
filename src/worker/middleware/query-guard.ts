import { createMiddleware } from 'hono/factory'
import { failure } from '../../protocol/execution/errors.ts'
import type { AppEnv } from '../context.ts'
import { failed } from '../errors.ts'

/** Parts of a query key that betray a credential (EC 1.2). */
const SUSPICIOUS = [
  'api-key',
  'api_key',
  'apikey',
  'authorization',
  'password',
  'secret',
  'token',
  'x-smista',
]

/** Refuses credentials in the query of any route: URLs end up in logs (EC 1.2). The keys are looked at as they came. */
export const queryGuard = createMiddleware<AppEnv>(async (c, next) => {
  const question = c.req.url.indexOf('?')
  const query = question < 0 ? '' : c.req.url.slice(question + 1)
  for (const pair of query.split('&')) {
    const key = (pair.split('=', 1)[0] ?? '').toLowerCase()
    if (SUSPICIOUS.some((part) => key.includes(part))) {
      return failed(
        c,
        failure('credentials_in_query', 'credentials do not belong in a URL; send them as headers'),
      )
    }
  }
  await next()
})
