import { evictDurableObject } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { RevokeGrantResponse, RunResponse } from '../../src/protocol/execution/turn.ts'
import { type BodyChanges, makeExecute, routeTo } from '../support/workers/bodies.ts'
import { Hold } from '../support/workers/hold.ts'
import { type Client, makeClient, parsed, refused, turnAs, turnOf } from '../support/workers/router.ts'
import { scriptModels } from '../support/workers/scripted-models.ts'
import { checkpointOf, crash, inside } from '../support/workers/session-object.ts'

const models = scriptModels()

let client: Client
let id: string
beforeAll(async () => {
  client = await makeClient()
})
beforeEach(async () => {
  id = await client.newSession()
})

const CLOUD = { 'X-Smista-Provider-Cloud-Api-Key': 'k' }
const BREAK = { type: 'break' as const }
const NOBODY = '0197d0a2-6c1e-7c52-9a55-0c6a6f1d2b11'
const READ = { id: 'p1', name: 'read_file', arguments: { path: 'b.ts' } }
const FILE = { path: 'a.ts', content: 'A', content_hash: '', required: false }

/** A prompt for a model that is asked about: a remote one, unless said otherwise. */
const asked = (changes: BodyChanges = {}) =>
  makeExecute('do it', {
    ...changes,
    policy: { ...routeTo('openai-compat:cloud/big'), ...changes.policy },
    attachments: { files: [FILE], ...changes.attachments },
  })
const gateOf = async (response: Response) => (await turnAs(response, 'awaiting_approval')).data.approval
const ask = async (changes: BodyChanges = {}) => gateOf(await client.execute(id, asked(changes), CLOUD))
const decide = (...decisions: [approvalId: string, decision: 'approved' | 'rejected'][]) =>
  client.proceed(
    id,
    {
      type: 'approval_decisions',
      data: { decisions: decisions.map(([approval_id, decision]) => ({ approval_id, decision })) },
    },
    CLOUD,
  )
const report = (callId: string, content = 'R') =>
  client.proceed(id, { type: 'tool_results', data: { results: [{ call_id: callId, content }] } }, CLOUD)
const inject = (text: string) => client.proceed(id, { type: 'inject', data: { messages: [{ text }] } }, CLOUD)
const show = async () => parsed(await client.run(id), RunResponse)
const grants = async () => (await show()).grants
const revoke = (grantId: string) => client.send('DELETE', `/api/v1/sessions/${id}/grants/${grantId}`)
const evict = () => evictDurableObject(env.SESSION.getByName(id))
const UNKNOWN_GRANT = { status: 404, code: 'invalid_request' }

/** A run that was allowed to disclose and waits for a call. */
async function granted() {
  const gate = await ask()
  models.script({ calls: [READ] })
  const paused = await turnAs(await decide([gate.approval_id, 'approved']), 'awaiting_tool')
  const [grant] = (await grants()) ?? []
  return { gate, callId: paused.data.tool_requests[0]?.call_id ?? '', grantId: grant?.id ?? '' }
}

describe('[U23] what the user allowed for the rest of a run', () => {
  it('is listed with the run, also after the object was evicted, and is not asked again', async () => {
    const { callId, grantId } = await granted()
    const listed = [
      {
        id: grantId,
        kind: 'remote_disclosure',
        provider: 'openai-compat:cloud',
        model: 'big',
        paths: ['a.ts'],
      },
    ]
    expect(await grants()).toEqual(listed)
    await evict()
    expect(await show()).toMatchObject({ status: 'awaiting_tool', grants: listed })
    models.script({ text: ['done'] })
    await turnAs(await report(callId), 'completed')
    expect(await show()).not.toHaveProperty('grants')
  })

  it('can be taken back: what comes next is asked again, under another id', async () => {
    const { gate, callId, grantId } = await granted()
    expect(await parsed(await revoke(grantId), RevokeGrantResponse)).toEqual({ revoked: true })
    expect(await grants()).toBe(undefined)
    await evict()
    expect(await refused(await revoke(grantId))).toMatchObject({
      ...UNKNOWN_GRANT,
      details: { grant_id: grantId },
    })
    const again = await gateOf(await report(callId))
    expect(again).toMatchObject({ kind: 'remote_disclosure', detail: gate.detail })
    expect(again.approval_id).not.toBe(gate.approval_id)
    models.script({ text: ['done'] })
    await turnAs(await decide([again.approval_id, 'approved']), 'completed')
    expect(models.chats).toHaveLength(2)
  })

  it('can be taken back while the model speaks: the answer comes, and the next call is asked for', async () => {
    const gate = await ask()
    const hold = new Hold()
    models.script({ text: ['one '], hold: hold.wait, calls: [READ] })
    const served = decide([gate.approval_id, 'approved'])
    await hold.reached()
    const running = await show()
    expect(running).toMatchObject({ status: 'running', grants: [{ provider: 'openai-compat:cloud' }] })
    await parsed(await revoke(running.grants?.[0]?.id ?? ''), RevokeGrantResponse)
    expect(await show()).not.toHaveProperty('grants')
    hold.release()
    const paused = await turnAs(await served, 'awaiting_tool')
    expect(await gateOf(await report(paused.data.tool_requests[0]?.call_id ?? ''))).toMatchObject({
      kind: 'remote_disclosure',
    })
  })

  it('does not come back with the approval that is sent again after a crash', async () => {
    const gate = await ask()
    const hold = new Hold()
    models.script({ text: ['one '], hold: hold.wait })
    const lost = decide([gate.approval_id, 'approved']).catch(() => null)
    await hold.reached()
    await parsed(await revoke((await grants())?.[0]?.id ?? ''), RevokeGrantResponse)
    await crash(id)
    await lost
    const again = await gateOf(await decide([gate.approval_id, 'approved']))
    expect(again.approval_id).not.toBe(gate.approval_id)
  })

  it('ends with a stop, and stays over what is injected', async () => {
    const { grantId } = await granted()
    models.script({ calls: [READ] })
    await turnAs(await inject('and this'), 'awaiting_tool')
    expect(await grants()).toMatchObject([{ id: grantId }])
    await turnAs(await client.proceed(id, BREAK), 'idle')
    expect(await grants()).toBe(undefined)
    expect(await refused(await revoke(grantId))).toMatchObject(UNKNOWN_GRANT)
    expect(await gateOf(await inject('another run'))).toMatchObject({ kind: 'remote_disclosure' })
  })

  it('is refused for what is no id, no grant, or no session of the user', async () => {
    await granted()
    expect(await refused(await revoke('nonsense'))).toMatchObject({ status: 400, code: 'invalid_request' })
    expect(await refused(await revoke(NOBODY))).toMatchObject({
      ...UNKNOWN_GRANT,
      details: { grant_id: NOBODY },
    })
    id = await client.newSession()
    expect(await refused(await revoke(NOBODY))).toMatchObject(UNKNOWN_GRANT)
    const { send } = await makeClient()
    const foreign = await send('DELETE', `/api/v1/sessions/${id}/grants/${NOBODY}`)
    expect(await refused(foreign)).toMatchObject({ status: 404, code: 'session_not_found' })
  })
})

describe('[EC 13][U23] a cost beyond the limit of a rule', () => {
  // The scripted models make a call of up to 4,096 tokens cost more than this.
  const limited = (limit = '0.001') =>
    makeExecute('do it', {
      policy: {
        routing: { rules: [{ name: 'cheap', model: 'openai-compat:cloud/big', cost_limit: limit }] },
        privacy: { remote: { mode: 'allow' } },
      },
    })
  const money = (detail: Record<string, unknown> | null, field: string) => Number(detail?.[field])

  it('is accepted for the rest of the run, up to twice what was shown; beyond that it is asked again', async () => {
    const gate = await gateOf(await client.execute(id, limited(), CLOUD))
    expect(gate).toMatchObject({ kind: 'cost_limit', detail: { rule: 'cheap', limit: '0.001' } })
    expect(money(gate.detail, 'up_to')).toBeCloseTo(2 * money(gate.detail, 'estimated_max'), 12)
    models.script({ calls: [READ] }, { calls: [READ] }, { text: ['done'] })
    const paused = await turnAs(await decide([gate.approval_id, 'approved']), 'awaiting_tool')
    const listed = {
      id: expect.any(String),
      kind: 'cost_limit',
      provider: 'openai-compat:cloud',
      model: 'big',
      paths: [],
      rule: 'cheap',
    }
    const [grant] = (await grants()) ?? []
    expect(grant).toEqual({ ...listed, up_to: gate.detail?.up_to })
    await evict()
    const next = await turnAs(await report(paused.data.tool_requests[0]?.call_id ?? ''), 'awaiting_tool')
    const long = 'a long result. '.repeat(5000)
    const again = await gateOf(await report(next.data.tool_requests[0]?.call_id ?? '', long))
    expect(money(again.detail, 'estimated_max')).toBeGreaterThan(Number(grant?.up_to))
    expect(models.chats).toHaveLength(2)
    await turnAs(await decide([again.approval_id, 'approved']), 'completed')
    expect(await grants()).toBe(undefined)
  })

  it('can be taken back: the next call is asked for', async () => {
    const gate = await gateOf(await client.execute(id, limited(), CLOUD))
    models.script({ calls: [READ] })
    const paused = await turnAs(await decide([gate.approval_id, 'approved']), 'awaiting_tool')
    await parsed(await revoke((await grants())?.[0]?.id ?? ''), RevokeGrantResponse)
    expect(await grants()).toBe(undefined)
    const again = await gateOf(await report(paused.data.tool_requests[0]?.call_id ?? ''))
    expect(again.kind).toBe('cost_limit')
    expect(again.approval_id).not.toBe(gate.approval_id)
    expect(models.chats).toHaveLength(1)
  })
})

describe('[EC 9] a policy that asks about local models, too', () => {
  const local: BodyChanges = {
    policy: { ...routeTo('ollama/small'), privacy: { local: { mode: 'ask' } } },
  }

  it('asks once in a run, and says that the model is local', async () => {
    const gate = await ask(local)
    expect(gate).toMatchObject({
      kind: 'remote_disclosure',
      detail: { provider: 'ollama', model: 'small', paths: ['a.ts'], local: true },
    })
    models.script({ calls: [READ] }, { text: ['done'] })
    const paused = await turnAs(await decide([gate.approval_id, 'approved']), 'awaiting_tool')
    await turnAs(await report(paused.data.tool_requests[0]?.call_id ?? ''), 'completed')
  })

  it('leaves no route where the user says no', async () => {
    const gate = await ask(local)
    expect(await refused(await decide([gate.approval_id, 'rejected']))).toMatchObject({ code: 'no_route' })
    expect(models.chats).toEqual([])
  })
})

describe('[U21][U22] answering what was settled', () => {
  const settled = async (response: Promise<Response>) => {
    const { status, code, details } = await refused(await response)
    expect(code).toBe(status === 409 ? 'run_in_flight' : 'invalid_request')
    return details as { settled?: unknown } | undefined
  }

  it('tells the outcome of an approval in any phase, and nothing reopens', async () => {
    const { gate, callId } = await granted()
    const late = () => settled(decide([NOBODY, 'approved'], [gate.approval_id, 'rejected']))
    const told = [{ approval_id: gate.approval_id, outcome: 'approved', decision: 'approved' }]
    expect(await late()).toEqual({ phase: 'AwaitingTool', settled: told })
    await evict()
    expect(await late()).toMatchObject({ settled: told })
    models.script({ text: ['done'] })
    await turnAs(await report(callId), 'completed')
    expect(await late()).toEqual({ phase: 'Idle', settled: told })
    const next = await ask()
    expect(await late()).toEqual({ approval_id: next.approval_id, settled: told })
    expect((await show()).status).toBe('awaiting_approval')
    expect(await inside(id, (sql) => sql.rows('SELECT id, outcome FROM approvals'))).toEqual([
      { id: gate.approval_id, outcome: 'approved' },
    ])
  })

  it('while the decided turn is served tells it beside the refusal', async () => {
    const gate = await ask()
    const hold = new Hold()
    models.script({ text: ['one '], hold: hold.wait, after: ['two'] })
    const first = decide([gate.approval_id, 'approved'])
    await hold.reached()
    expect(await settled(decide([gate.approval_id, 'rejected']))).toEqual({
      settled: [{ approval_id: gate.approval_id, outcome: 'approved', decision: 'approved' }],
    })
    hold.release()
    await turnAs(await first, 'completed')
  })

  it('tells a stop from new input, and both from a no', async () => {
    const endings: [string, () => Promise<Response>][] = [
      ['cancelled', () => client.proceed(id, BREAK)],
      ['superseded', () => inject('something else')],
      ['superseded', () => client.execute(id, asked(), CLOUD)],
    ]
    for (const [outcome, end] of endings) {
      const gate = await ask()
      await turnOf(await end())
      expect(await settled(decide([gate.approval_id, 'approved']))).toMatchObject({
        settled: [{ approval_id: gate.approval_id, outcome }],
      })
    }
    const gate = await ask()
    await decide([gate.approval_id, 'rejected'])
    expect(await settled(decide([gate.approval_id, 'approved']))).toMatchObject({
      settled: [{ approval_id: gate.approval_id, outcome: 'rejected', decision: 'rejected' }],
    })
  })

  it('tells it of a plan', async () => {
    models.script({ text: ['1. do it'] })
    const plan = await gateOf(await client.execute(id, makeExecute('hi', { input: { command: 'plan' } })))
    await turnAs(await decide([plan.approval_id, 'rejected']), 'idle')
    expect(await settled(decide([plan.approval_id, 'approved']))).toMatchObject({
      settled: [{ approval_id: plan.approval_id, outcome: 'rejected', decision: 'rejected' }],
    })
  })

  it('tells how a call ended whose result comes late', async () => {
    const { callId } = await granted()
    await turnAs(await client.proceed(id, BREAK), 'idle')
    expect(await settled(report(callId))).toEqual({
      phase: 'Idle',
      settled: [{ call_id: callId, status: 'failed', outcome: 'cancelled' }],
    })
    models.script({ calls: [READ] })
    const next = await turnAs(await client.execute(id, makeExecute('again')), 'awaiting_tool')
    expect(await settled(report(callId, 'LATE'))).toEqual({
      call_id: callId,
      settled: [{ call_id: callId, status: 'failed', outcome: 'cancelled' }],
    })
    models.script({ text: ['done'] })
    const nextCall = next.data.tool_requests[0]?.call_id ?? ''
    await turnAs(await report(nextCall), 'completed')
    expect(await settled(report(nextCall, 'LATE'))).toMatchObject({
      settled: [{ call_id: nextCall, status: 'completed' }],
    })
    expect(
      JSON.stringify(await inside(id, (sql) => sql.rows('SELECT result FROM tool_calls'))),
    ).not.toContain('LATE')
  })

  it('[U22] tells what the user decided about a call, and whether new input ended it', async () => {
    const waiting = async () => {
      models.script({ calls: [READ] })
      const paused = await turnAs(await client.execute(id, makeExecute('do it')), 'awaiting_tool')
      return paused.data.tool_requests[0]?.call_id ?? ''
    }
    const declined = await waiting()
    models.script({ text: ['done'] })
    const rejection = { call_id: declined, content: 'No.', decision: 'rejected' as const }
    await turnAs(
      await client.proceed(id, { type: 'tool_results', data: { results: [rejection] } }),
      'completed',
    )
    expect(await settled(report(declined))).toMatchObject({
      settled: [{ call_id: declined, status: 'failed', decision: 'rejected' }],
    })
    const replaced = await waiting()
    models.script({ text: ['done'] })
    await turnAs(await inject('something else'), 'completed')
    expect(await settled(report(replaced))).toMatchObject({
      settled: [{ call_id: replaced, status: 'failed', outcome: 'superseded' }],
    })
  })

  it('of ids that the session never had says so', async () => {
    await granted()
    const strange = await refused(await decide([NOBODY, 'approved']))
    expect(strange.message).toContain('no such approval')
    expect(strange.details).not.toHaveProperty('settled')
    for (const callId of [NOBODY, 'x'.repeat(5000)]) {
      const unknown = await refused(await report(callId))
      expect(unknown.message).toContain('no such call')
      expect(unknown.details).not.toHaveProperty('settled')
    }
    const many = Array.from({ length: 500 }, (_, n) => ({ call_id: `call ${n}`, content: '' }))
    const flood = await client.proceed(id, { type: 'tool_results', data: { results: many } })
    expect((await refused(flood)).message).not.toContain('no such call')
  })
})

describe('what a run keeps of how it was started', () => {
  it('[U37] words that no remote model was to hear are marked, in what is injected as well', async () => {
    const said = () =>
      inside(id, (sql) => sql.rows("SELECT local_only FROM messages WHERE role = 'user' ORDER BY seq"))
    models.script({ text: ['done'] })
    const quiet = { local_preferences: { no_network: true } }
    await turnAs(await client.execute(id, makeExecute('quiet', quiet)), 'completed')
    await turnAs(await inject('quiet, too'), 'completed')
    const denied = { policy: { privacy: { remote: { mode: 'deny' as const } } } }
    await turnAs(await client.execute(id, makeExecute('quiet again', denied)), 'completed')
    await turnAs(await client.execute(id, makeExecute('aloud')), 'completed')
    await turnAs(await inject('aloud, too'), 'completed')
    expect((await said()).map((row) => row.local_only)).toEqual([1, 1, 1, 0, 0])
  })

  it('the digest of its policy: the same for the same policy, also in a run that injected words begin', async () => {
    const digest = async () => (await checkpointOf(id)).state?.policyDigest
    models.script({ text: ['done'] })
    await turnAs(await client.execute(id, makeExecute('one')), 'completed')
    const first = await digest()
    expect(first).toMatch(/^sha256:[0-9a-f]{64}$/)
    await turnAs(await inject('two'), 'completed')
    expect(await digest()).toBe(first)
    await turnAs(await client.execute(id, makeExecute('three')), 'completed')
    expect(await digest()).toBe(first)
    const other = { policy: { privacy: { restricted_paths: ['x'] } } }
    await turnAs(await client.execute(id, makeExecute('four', other)), 'completed')
    expect(await digest()).not.toBe(first)
  })
})
