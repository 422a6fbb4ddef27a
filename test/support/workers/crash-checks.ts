import { env } from 'cloudflare:workers'
import { expect } from 'vitest'
import { SessionUsageResponse } from '../../../src/protocol/execution/usage.ts'
import { loadMessages } from '../../../src/storage/session/messages.ts'
import { loadSealed } from '../../../src/storage/session/sealed-contents.ts'
import type { SqlRow } from '../../../src/storage/session/sql.ts'
import { loadTurns } from '../../../src/storage/session/turns.ts'
import type { CrashClient } from './crash-client.ts'
import type { CrashSealing } from './crash-sealing.ts'
import { copyOf } from './d1.ts'
import { type Client, parsed } from './router.ts'
import { openOne } from './sealed-client.ts'
import { checkpointOf, inside } from './session-object.ts'

/** More rows than a play makes. */
const ALL = 100_000

/** The rows of a session at some moment. */
export type Snapshot = Awaited<ReturnType<typeof snapshotOf>>

/** What one call of a scripted model uses. */
const TOKENS_PER_CALL = 120

/** In a sealed session the texts are those of the envelopes; a row without one has an empty text. */
export async function snapshotOf(sessionId: string, sealing: CrashSealing | null) {
  const { messages, turns, rest, envelopes } = await inside(sessionId, (sql) => {
    const stored = loadMessages(sql, 1, ALL)
    const plans = sql.rows('SELECT id, content, status, version FROM plans ORDER BY version')
    const facts = sql.rows('SELECT id, key, content, local_only FROM memories ORDER BY key, created_at, id')
    const calls = sql.rows(
      'SELECT id, name, status, result, is_error, diff_status FROM tool_calls ORDER BY message_seq, ordinal',
    )
    const refs = [
      ...stored.flatMap(({ id }) => [`message:${id}`, `tool_call:${id}`]),
      ...calls.flatMap(({ id }) => [`tool_call:${id}`, `diff:${id}`]),
      ...plans.map(({ id }) => `plan:${id}`),
      ...facts.map(({ id }) => `memory:${id}`),
    ]
    return {
      messages: stored,
      turns: loadTurns(sql, 1, ALL),
      rest: {
        approvals: sql.rows('SELECT target_type, decision, outcome FROM approvals ORDER BY created_at, id'),
        plans,
        facts,
        calls,
      },
      envelopes: sealing === null ? {} : loadSealed(sql, refs),
    }
  })
  if (sealing === null) return { messages, turns, ...rest, unsealed: [] }
  const opened = (kind: string, id: unknown): string | null => {
    const ref = `${kind}:${id}`
    const envelope = envelopes[ref]
    return envelope === undefined ? null : openOne(sealing.session, ref, envelope)
  }
  return {
    messages: messages.map((message) => ({
      ...message,
      text: opened('message', message.id) ?? '',
      calls: message.calls.map((call) => ({ ...call, result: opened('tool_call', call.id) ?? call.result })),
    })),
    turns,
    approvals: rest.approvals,
    plans: rest.plans.map((plan): SqlRow => ({ ...plan, content: opened('plan', plan.id) })),
    facts: rest.facts.map((fact): SqlRow => ({ ...fact, content: opened('memory', fact.id) })),
    calls: rest.calls.map(
      (call): SqlRow => ({ ...call, result: opened('tool_call', call.id) ?? call.result ?? null }),
    ),
    unsealed: messages.flatMap(({ id }) => (opened('message', id) === null ? [id] : [])),
  }
}

/** What is said to have happened, without what differs from play to play. */
const storyOf = ({ messages, turns, approvals, plans, facts, calls }: Snapshot) => ({
  transcript: messages.flatMap(({ role, text, interrupted, calls: made }) =>
    interrupted
      ? []
      : [{ role, text, calls: made.map(({ name, result, isError }) => ({ name, result, isError })) }],
  ),
  turns: turns
    .filter(({ status }) => status === 'done' || status === 'failed')
    .map(({ turn, status }) => [turn, status]),
  approvals,
  plans: plans.map(({ id: _, ...plan }) => plan),
  facts: facts.map(({ id: _, ...fact }) => fact),
  calls: calls.map(({ id: _, ...call }) => call),
})

/**
 * Of a sealed session. A turn whose texts were lost is served again, so turns are more, and what it asked the first time,
 * which nobody saw, is superseded. And words that were never sealed
 * are gone with the object: those that their sender broke off before he was asked for their ciphertext.
 */
const sealedStory = ({ turns: _, ...story }: ReturnType<typeof storyOf>, losable: readonly string[]) => ({
  ...story,
  approvals: story.approvals.filter(({ outcome }) => outcome !== 'superseded'),
  transcript: story.transcript.filter(({ text }) => !losable.includes(text)),
})

const answered = ({ turns }: Pick<Snapshot, 'turns'>): number =>
  turns.flatMap(({ calls }) => calls).filter(({ usage }) => usage !== null).length

const partialsOf = ({ messages }: Snapshot): string[] =>
  messages.flatMap(({ text, interrupted }) => (interrupted ? [text] : []))

export type Played = { sessionId: string; player: CrashClient; chats: number; deaths: number }

/** Everything that must hold once a script was played, whatever died meanwhile. */
export async function expectSound(
  client: Client,
  { sessionId, player, chats, deaths }: Played,
  snapshot: Snapshot,
  undisturbed: { snapshot: Snapshot; runs: number },
  losable: readonly string[],
): Promise<void> {
  const { messages, turns } = snapshot
  const { sealing } = player
  const story = (of: Snapshot) => (sealing ? sealedStory(storyOf(of), losable) : storyOf(of))
  expect(story(snapshot)).toEqual(story(undisturbed.snapshot))
  for (const partial of partialsOf(snapshot)) expect(partialsOf(undisturbed.snapshot)).toContain(partial)
  expectUnique(messages.map(({ id }) => id))
  expectUnique(messages.flatMap(({ calls }) => calls.map(({ id }) => id)))

  expect([...player.ran.values()].every((times) => times === 1)).toBe(true)
  expect(player.ran.size).toBe(undisturbed.runs)

  await expectAccounted(client, { sessionId, player, chats, deaths }, snapshot, undisturbed.snapshot)

  const { state, outbox } = await checkpointOf(sessionId)
  expect(state).toMatchObject({ phase: { k: 'Idle' }, active: null })
  expect({ ...outbox, failures: 0 }).toMatchObject({
    session: false,
    messagesFrom: null,
    turnsFrom: null,
    memory: false,
    retryAtMs: null,
  })
  expect(turns.every(({ status }) => status !== 'running')).toBe(true)
  await expectCopied(sessionId, snapshot, sealing === null)
  if (sealing) expect(snapshot.unsealed).toEqual([])
}

/** Each call that left is on record, with what it used or as one of which nobody knows. */
async function expectAccounted(
  client: Client,
  { sessionId, player, chats, deaths }: Played,
  { turns }: Snapshot,
  undisturbed: Snapshot,
): Promise<void> {
  const usage = await parsed(
    await client.send('GET', `/api/v1/sessions/${sessionId}/usage`),
    SessionUsageResponse,
  )
  const requests = usage.by_model.reduce((sum, { request_count: count }) => sum + count, 0)
  expect(requests).toBeGreaterThanOrEqual(chats)
  expect(requests).toBeLessThanOrEqual(chats + deaths)
  expect(requests).toBe(turns.reduce((sum, { calls }) => sum + calls.length, 0))
  // What the calls of a sealed session used stands in its sealed trace.
  if (player.sealing) return
  const unknown = turns.flatMap(({ calls }) =>
    calls.filter((call) => call.usage === null && call.status !== 'failed'),
  )
  expect(usage.total.unknown_count ?? 0).toBe(unknown.length)
  expect(usage.total.total_tokens ?? 0).toBe(answered({ turns }) * TOKENS_PER_CALL)
  expect(answered({ turns })).toBe(answered(undisturbed))
}

/** What was committed when the object died is there, unchanged but for what moves forward. */
export function expectKept(before: Snapshot, after: Snapshot): void {
  const words = ({ messages }: Snapshot) =>
    messages.map(({ seq, id, runId, role, text, interrupted }) => ({
      seq,
      id,
      runId,
      role,
      text,
      interrupted,
    }))
  expect(words(after).slice(0, before.messages.length)).toEqual(words(before))
  const results = ({ messages }: Snapshot) =>
    new Map(messages.flatMap(({ calls }) => calls.map(({ id, result }) => [id, result] as const)))
  for (const [id, result] of results(before))
    if (result !== undefined) expect(results(after).get(id)).toBe(result)
  const ended = ({ turns }: Snapshot) =>
    turns.flatMap(({ turnId, status }) => (status === 'running' ? [] : [`${turnId} ${status}`]))
  expect(ended(after)).toEqual(expect.arrayContaining(ended(before)))
}

const expectUnique = (ids: string[]): void => expect(ids).toEqual([...new Set(ids)])

async function expectCopied(
  sessionId: string,
  { messages, turns, facts }: Snapshot,
  isClear: boolean,
): Promise<void> {
  const copy = await copyOf(sessionId)
  expect(copy.messages.map(({ seq, id, role, rev }) => ({ seq, id, role, rev }))).toEqual(
    messages.map(({ seq, id, role, rev }) => ({ seq, id, role, rev })),
  )
  expect(copy.turns.map(({ seq, id, status, rev }) => ({ seq, id, status, rev }))).toEqual(
    turns.map(({ seq, turnId, status, rev }) => ({ seq, id: turnId, status, rev })),
  )
  if (!isClear) return
  expect(copy.messages.map(({ content }) => content)).toEqual(messages.map(({ text }) => text))
  const { results } = await env.DB.prepare(
    'SELECT key, content FROM context_memory WHERE session_id = ? AND forgotten_at IS NULL ORDER BY key',
  )
    .bind(sessionId)
    .all()
  expect(results).toEqual(facts.map(({ key, content }) => ({ key, content })))
}

/** No text of a sealed session is anywhere in clear: not in its object, not in D1. */
export async function expectNothingClear(sessionId: string, secrets: readonly string[]): Promise<void> {
  const stored = await inside(sessionId, (sql) =>
    sql
      .rows("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE '\\_cf%' ESCAPE '\\'")
      .map(({ name }) => JSON.stringify(sql.rows(`SELECT * FROM "${name}"`)))
      .join('\n'),
  )
  const { messages, turns } = await copyOf(sessionId)
  for (const secret of secrets) {
    expect(stored).not.toContain(secret)
    expect(JSON.stringify([messages, turns])).not.toContain(secret)
  }
}

/** Timers that somebody still waits for, after a moment for those that are about to be cleared. */
export async function expectNoTimers(pending: () => { ms: number }[]): Promise<void> {
  for (let look = 0; look < 50 && pending().length > 0; look++) await scheduler.wait(2)
  expect(pending()).toEqual([])
}
