import { Hono } from 'hono'
import type { EventCursor } from '../../session/rpc.ts'
import { openDatabase } from '../../storage/d1/database.ts'
import { wantsStream } from '../accept.ts'
import type { AppEnv } from '../context.ts'
import { sessionStub } from '../env.ts'
import { failed } from '../errors.ts'
import { eventStreamResponse } from '../event-stream-response.ts'
import { identify, ownSession } from '../middleware/identify.ts'
import { badQuery } from '../query.ts'
import { whileSignedIn } from '../while-signed-in.ts'

/** How long a request for events waits while there are none: less than proxies do. */
const POLL_WAIT_MS = 25_000

/** `<sequence>`, or `<sequence>.<id of a snapshot>`. */
const PLACE = /^(\d{1,15})(?:\.([\w-]{1,64}))?$/

export const sessionEvents = new Hono<AppEnv>()

/** What happens in a session, for programs that cannot or will not hold a socket (D38, U46). */
sessionEvents.get('/:session_id/events', identify, ownSession, async (c) => {
  const stream = wantsStream(c)
  // A stream that comes back names the last event it has; its address may still name where it once began.
  const asked = (stream ? c.req.header('Last-Event-ID') : undefined) ?? c.req.query('after')
  const cursor = asked === undefined ? null : parsePlace(asked)
  if (asked !== undefined && cursor === null)
    return failed(c, badQuery('`after` is the `next_after` of an earlier answer, or the id of an event'))
  const view = stream
    ? { cursor, stream: true as const }
    : { cursor, stream: false as const, waitMs: POLL_WAIT_MS }
  const answer = await sessionStub(c.env, c.var.sessionId).events(c.var.identity.userId, view)
  switch (answer.kind) {
    case 'failure':
      return failed(c, answer.failure)
    case 'page':
      return c.body(answer.body, 200, { 'Content-Type': 'application/json', 'Cache-Control': 'no-store' })
    case 'stream':
      return eventStreamResponse(whileSignedIn(answer.stream, openDatabase(c.env.DB), c.var.identity.tokenId))
  }
})

function parsePlace(text: string): EventCursor | null {
  const [, sequence, snapshotId] = PLACE.exec(text) ?? []
  return sequence === undefined ? null : { after: Number(sequence), snapshotId: snapshotId ?? null }
}
