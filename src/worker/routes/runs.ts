import { type Context, Hono } from 'hono'
import { ContinueRequest } from '../../protocol/execution/continue.ts'
import { ExecuteRequest } from '../../protocol/execution/execute.ts'
import type { TurnAnswer, TurnOptions } from '../../session/rpc.ts'
import { type Body, readBody } from '../body.ts'
import { callerOf } from '../caller.ts'
import type { AppEnv } from '../context.ts'
import { sessionStub } from '../env.ts'
import { failed } from '../errors.ts'
import { readIdempotencyKey } from '../idempotency-key.ts'
import { checkSession, identify, ownSession } from '../middleware/identify.ts'

export const runs = new Hono<AppEnv>()

runs.use('/:session_id/*', identify)

runs.post('/:session_id/execute', (c) => execute(c, wantsStream(c)))

/** `execute` that always streams. */
runs.post('/:session_id/stream', (c) => execute(c, true))

runs.post('/:session_id/continue', async (c) => {
  const body = await readBody(c, ContinueRequest)
  if (!body.ok) return failed(c, body.error)
  const refused = checkSession(c)
  if (refused) return failed(c, refused)
  const options = turnOptions(c, body.value, wantsStream(c))
  if (!options.ok) return failed(c, options.error)
  const session = sessionStub(c.env, c.var.sessionId)
  return answer(c, await session.continueRun(callerOf(c), body.value.value, options.value))
})

runs.post('/:session_id/preview', async (c) => {
  const body = await readBody(c, ExecuteRequest)
  if (!body.ok) return failed(c, body.error)
  const refused = checkSession(c)
  if (refused) return failed(c, refused)
  const preview = await sessionStub(c.env, c.var.sessionId).preview(callerOf(c), body.value.value)
  return preview.ok ? c.json(preview.value) : failed(c, preview.error)
})

runs.get('/:session_id/run', ownSession, async (c) => {
  const view = { stream: wantsStream(c), lastEventId: c.req.header('Last-Event-ID') ?? null }
  return answer(c, await sessionStub(c.env, c.var.sessionId).currentRun(c.var.identity.userId, view))
})

async function execute(c: Context<AppEnv>, stream: boolean): Promise<Response> {
  const body = await readBody(c, ExecuteRequest)
  if (!body.ok) return failed(c, body.error)
  const refused = checkSession(c)
  if (refused) return failed(c, refused)
  const options = turnOptions(c, body.value, stream)
  if (!options.ok) return failed(c, options.error)
  const session = sessionStub(c.env, c.var.sessionId)
  return answer(c, await session.execute(callerOf(c), body.value.value, options.value))
}

function turnOptions(c: Context<AppEnv>, { digest }: Body<unknown>, stream: boolean) {
  const key = readIdempotencyKey(c)
  if (!key.ok) return key
  const value: TurnOptions = { stream, digest, idempotencyKey: key.value }
  return { ok: true as const, value }
}

/** Streaming is chosen only by the exact media range (EC 1.1). */
const wantsStream = (c: Context): boolean =>
  (c.req.header('Accept') ?? '')
    .split(',')
    .some((range) => range.split(';', 1)[0]?.trim() === 'text/event-stream')

function answer(c: Context, turn: TurnAnswer): Response {
  switch (turn.kind) {
    case 'json':
      return c.json(turn.body)
    case 'failure':
      return failed(c, turn.failure)
    case 'stream':
      return new Response(turn.stream, {
        headers: {
          'Content-Type': 'text/event-stream',
          'Cache-Control': 'no-store, no-transform',
          'X-Accel-Buffering': 'no',
        },
      })
  }
}
