import { Hono } from 'hono'
import type { StatusResponse } from '../protocol/execution/auth.ts'
import { failure } from '../protocol/execution/errors.ts'
import { ROUTER_VERSION } from '../protocol/version.ts'
import { StorageFault } from '../storage/d1/fault.ts'
import type { AppEnv } from './context.ts'
import { failed } from './errors.ts'
import { crossOrigin } from './middleware/cross-origin.ts'
import { localHost } from './middleware/local-host.ts'
import { queryGuard } from './middleware/query-guard.ts'
import { rateLimit } from './middleware/rate-limit.ts'
import { account } from './routes/account.ts'
import { auth } from './routes/auth.ts'
import { connectRequests } from './routes/connect-requests.ts'
import { devices } from './routes/devices.ts'
import { sessionEvents } from './routes/events.ts'
import { accountExport, sessionExport } from './routes/export.ts'
import { gatewaySocket } from './routes/gateway-socket.ts'
import { gatewayStream } from './routes/gateway-stream.ts'
import { keys } from './routes/keys.ts'
import { llm } from './routes/llm.ts'
import { memory } from './routes/memory.ts'
import { pairing } from './routes/pairing.ts'
import { runs } from './routes/runs.ts'
import { sessions } from './routes/sessions.ts'
import { settings } from './routes/settings.ts'

/** The HTTP side of the router. Checks run in the contract's order (EC 1.3); no business rule lives in a route. */
export const app = new Hono<AppEnv>()

app.use(localHost, crossOrigin, queryGuard, rateLimit)

app.get('/status', (c) => c.json({ status: 'ok', version: ROUTER_VERSION } satisfies StatusResponse))
// Loaded when it is asked for: a Worker that starts would evaluate all of it.
app.get('/api/v1/openapi.json', async (c) =>
  c.json((await import('../../schemas/execution/openapi.json')).default),
)
app.route('/', gatewaySocket)
app.route('/api/v1/auth/keys', keys)
app.route('/api/v1/auth', account)
app.route('/api/v1/auth', auth)
app.route('/api/v1/connect-requests', connectRequests)
app.route('/api/v1/devices', devices)
app.route('/api/v1/export', accountExport)
app.route('/api/v1/gateway', gatewayStream)
app.route('/api/v1/llm', llm)
app.route('/api/v1/memory', memory)
app.route('/api/v1/pairing', pairing)
app.route('/api/v1/sessions', runs)
app.route('/api/v1/sessions', sessions)
app.route('/api/v1/sessions', sessionEvents)
app.route('/api/v1/sessions', sessionExport)
app.route('/api/v1/settings', settings)

/** An unknown path, or a known one with another method: both in the error shape (D49). */
app.notFound(async (c) => {
  // All shapes of the API hang on it: built when somebody misses, and not when the Worker starts.
  const { ROUTES } = await import('../protocol/execution/routes.ts')
  const methods = ROUTES.filter(({ path }) => pathPattern(path).test(c.req.path)).map(({ method }) =>
    method.toUpperCase(),
  )
  if (methods.length > 0 && !methods.includes(c.req.method)) {
    const allow = methods.join(', ')
    return failed(
      c,
      { ...failure('invalid_request', `${c.req.method} is not served here; use ${allow}`), status: 405 },
      { Allow: allow },
    )
  }
  return failed(c, { ...failure('invalid_request', `there is nothing at ${c.req.path}`), status: 404 })
})

app.onError((error, c) => {
  if (error instanceof StorageFault) {
    console.error(`${c.req.method} ${c.req.path}: D1 failed:`, error.cause)
    return failed(c, failure('storage_error', 'the database did not answer; try again'))
  }
  console.error(`${c.req.method} ${c.req.path} failed:`, error)
  return failed(c, failure('internal_error', 'the router failed to serve this request'))
})

const pathPattern = (path: string): RegExp => new RegExp(`^${path.replace(/\{[^}]+\}/g, '[^/]+')}$`)
