import { type Context, Hono } from 'hono'
import { ContinueRequest } from '../../protocol/execution/continue.ts'
import { failure } from '../../protocol/execution/errors.ts'
import { ExecuteRequest } from '../../protocol/execution/execute.ts'
import { parseSessionId } from '../../protocol/execution/ids.ts'
import type { RevokeGrantResponse } from '../../protocol/execution/turn.ts'
import type { TurnAnswer, TurnOptions } from '../../session/rpc.ts'
import { wantsStream } from '../accept.ts'
import { type Body, readBody } from '../body.ts'
import { callerOf } from '../caller.ts'
import type { AppEnv } from '../context.ts'
import { sessionStub } from '../env.ts'
import { failed } from '../errors.ts'
import { eventStreamResponse } from '../event-stream-response.ts'
import { readIdempotencyKey } from '../idempotency-key.ts'
import { checkSession, identify, ownSession } from '../middleware/identify.ts'
import { loosenedPermissions, tooManyPatterns, unknownCapabilities } from '../policy-refusals.ts'
import { beyondBounds, CONTINUE_BOUNDS, EXECUTE_BOUNDS } from '../request-bounds.ts'

export const runs = new Hono<AppEnv>()

runs.use('/:session_id/*', identify)

runs.post('/:session_id/execute', (c) => execute(c, wantsStream(c)))

/** `execute` that always streams. */
runs.post('/:session_id/stream', (c) => execute(c, true))

runs.post('/:session_id/continue', async (c) => {
  const body = await readBody(c, ContinueRequest, beyondBounds(CONTINUE_BOUNDS))
  if (!body.ok) return failed(c, body.error)
  const refused = checkSession(c)
  if (refused) return failed(c, refused)
  const options = turnOptions(c, body.value, wantsStream(c))
  if (!options.ok) return failed(c, options.error)
  const session = sessionStub(c.env, c.var.sessionId)
  return answer(c, await session.continueRun(callerOf(c), body.value.value, options.value))
})

runs.post('/:session_id/preview', async (c) => {
  const body = await readBody(c, ExecuteRequest, notToPreview)
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

runs.delete('/:session_id/grants/:grant_id', ownSession, async (c) => {
  const grantId = parseSessionId(c.req.param('grant_id'))
  if (grantId === null) {
    return failed(c, { ...failure('invalid_request', 'the id of a grant is a UUID'), status: 400 })
  }
  const revoked = await sessionStub(c.env, c.var.sessionId).revokeGrant(c.var.identity.userId, grantId)
  if (!revoked.ok) return failed(c, revoked.error)
  return c.json({ revoked: true } satisfies RevokeGrantResponse)
})

async function execute(c: Context<AppEnv>, stream: boolean): Promise<Response> {
  const body = await readBody(c, ExecuteRequest, notToCarryOut)
  if (!body.ok) return failed(c, body.error)
  const refused = checkSession(c)
  if (refused) return failed(c, refused)
  const options = turnOptions(c, body.value, stream)
  if (!options.ok) return failed(c, options.error)
  const session = sessionStub(c.env, c.var.sessionId)
  return answer(c, await session.execute(callerOf(c), body.value.value, options.value))
}

/** A preview shows such permissions as a warning instead (EC 2.13). */
const notToCarryOut = (json: unknown) => [...notToPreview(json), ...loosenedPermissions(json)]

const notToPreview = (json: unknown) => [
  ...unknownCapabilities(json),
  ...tooManyPatterns(json),
  ...beyondBounds(EXECUTE_BOUNDS)(json),
]

function turnOptions(c: Context<AppEnv>, { digest }: Body<unknown>, stream: boolean) {
  const key = readIdempotencyKey(c)
  if (!key.ok) return key
  const value: TurnOptions = { stream, digest, idempotencyKey: key.value }
  return { ok: true as const, value }
}

function answer(c: Context, turn: TurnAnswer): Response {
  switch (turn.kind) {
    case 'json':
      return c.json(turn.body)
    case 'failure':
      return failed(c, turn.failure)
    case 'stream':
      return eventStreamResponse(turn.stream)
  }
}
