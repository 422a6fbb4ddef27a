import { type Context, Hono } from 'hono'
import { parseSessionId } from '../../protocol/execution/ids.ts'
import { openDatabase } from '../../storage/d1/database.ts'
import { ownGateway } from '../../storage/d1/gateways.ts'
import type { AppEnv } from '../context.ts'
import { gatewayStub, sessionStub } from '../env.ts'
import { failed } from '../errors.ts'
import { exportAccount, exportSession, sessionPage, toByteStream } from '../export.ts'
import { identify, ownSession } from '../middleware/identify.ts'
import { badQuery } from '../query.ts'

export const sessionExport = new Hono<AppEnv>()

/** One session, whole; an archived one as well, unlike `GET` (EC 2.8). */
sessionExport.get('/:session_id/export', identify, ownSession, async (c) => {
  const { sessionId } = c.var
  const { userId } = c.var.identity
  const lines = await sessionStub(c.env, sessionId).exportLines(userId)
  if (!lines.ok) return failed(c, lines.error)
  return download(c, `session-${sessionId}`, exportSession(userId, lines.value))
})

export const accountExport = new Hono<AppEnv>()

/** Everything that is kept of the user, in pages. */
accountExport.get('/', identify, async (c) => {
  const asked = c.req.query('after')
  const after = asked === undefined ? null : parseSessionId(asked)
  if (asked !== undefined && after === null)
    return failed(c, badQuery('`after` is the `next` of the page before'))
  const { userId } = c.var.identity
  const db = openDatabase(c.env.DB)
  const page = { ...(await sessionPage(db, userId, after)), first: after === null }
  const sources = {
    db,
    session: (id: string) => sessionStub(c.env, id),
    devices: async () => {
      const own = await ownGateway(db, userId, Date.now())
      return own === null ? [] : gatewayStub(c.env, userId).devices(own)
    },
  }
  return download(c, 'account', exportAccount(sources, userId, page))
})

function download(c: Context, name: string, chunks: AsyncGenerator<Uint8Array>): Response {
  return c.body(toByteStream(chunks), 200, {
    'Content-Type': 'application/x-ndjson',
    'Content-Disposition': `attachment; filename="switchyard-${name}.ndjson"`,
    'Cache-Control': 'no-store, no-transform',
  })
}
