import { env } from 'cloudflare:workers'
import { beforeEach, expect, it, vi } from 'vitest'
import { HostRig } from '../support/workers/host-operations.ts'
import { type Client, makeClient } from '../support/workers/router.ts'

const DAY_MS = 24 * 60 * 60 * 1000

let owner: Client
let rig: HostRig
let sessionId: string
let seq = 0
beforeEach(async () => {
  vi.restoreAllMocks()
  owner = await makeClient()
  rig = await HostRig.make(owner)
  sessionId = await owner.newSession()
})

const today = () => new Date().toISOString().slice(0, 10)
const dayBefore = (days: number) => new Date(Date.now() - days * DAY_MS).toISOString().slice(0, 10)

const call = (fields: object = {}) => ({
  provider: 'anthropic',
  model: 'claude',
  status: 'answered',
  usage: { inputTokens: 100, outputTokens: 10, cachedTokens: 40 },
  cost: '0.1',
  ...fields,
})

/** A turn as the outbox copies it. */
async function addTurn(runId: string, calls: unknown, daysAgo = 0, inSession = sessionId): Promise<void> {
  const atMs = Date.now() - daysAgo * DAY_MS
  await env.DB.prepare(
    `INSERT INTO turns (session_id, seq, id, run_id, status, trace, calls, started_at, ended_at, rev)
     VALUES (?, ?, ?, ?, 'done', '[]', ?, ?, ?, 1)`,
  )
    .bind(
      inSession,
      ++seq,
      `t${seq}`,
      runId,
      typeof calls === 'string' ? calls : JSON.stringify(calls),
      atMs,
      atMs,
    )
    .run()
}

const usage = async () => {
  const { receipt, result } = await rig.ask({ type: 'get_usage' })
  expect(receipt).toBeNull()
  if (result.type !== 'usage') throw new Error(`refused: ${JSON.stringify(result)}`)
  return result
}

it('[RF 26] get_usage adds up the calls of 30 days by day, harness and model', async () => {
  await addTurn('r1', [
    call(),
    call({ model: 'small', usage: { inputTokens: 5, outputTokens: 1 }, cost: '0.2' }),
  ])
  await addTurn('r1', [call()])
  await addTurn('r2', [call({ cost: undefined })], 3)
  const claude = { input_tokens: 300, output_tokens: 30, cached_tokens: 120, cost_usd: 0.2, turns: 2 }
  const small = { input_tokens: 5, output_tokens: 1, cost_usd: 0.2, turns: 1 }
  const totals = { input_tokens: 305, output_tokens: 31, cached_tokens: 120, cost_usd: 0.4, turns: 2 }
  expect(await usage()).toEqual({
    type: 'usage',
    since: dayBefore(29),
    until: today(),
    totals,
    by_day: [
      {
        day: today(),
        usage: { input_tokens: 205, output_tokens: 21, cached_tokens: 80, cost_usd: 0.4, turns: 1 },
      },
      { day: dayBefore(3), usage: { input_tokens: 100, output_tokens: 10, cached_tokens: 40, turns: 1 } },
    ],
    by_harness: [{ harness: 'switchyard', usage: totals }],
    by_model: [
      { harness: 'switchyard', model: 'anthropic/claude', usage: claude },
      { harness: 'switchyard', model: 'anthropic/small', usage: small },
    ],
  })
})

it('[RF 26] what is older than 30 days, and what others used, is no part of it', async () => {
  const other = await makeClient()
  await addTurn('r1', [call()], 30)
  await addTurn('r2', [call()], 0, await other.newSession())
  expect((await usage()).totals).toEqual({ turns: 0 })
  await addTurn('r3', [call()], 29)
  expect((await usage()).totals.turns).toBe(1)
})

it('[U43] [D27] a call of a sealed session, or a list too long for D1, is never zero tokens', async () => {
  await addTurn('r1', [call({ usage: null, cost: undefined, sealed: true })])
  await addTurn('r2', '\u0001omitted:600000')
  expect((await usage()).totals).toEqual({ turns: 1 })
})
