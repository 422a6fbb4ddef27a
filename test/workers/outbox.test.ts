import { evictDurableObject } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { writeCopy } from '../../src/storage/d1/copy.ts'
import { openDatabase } from '../../src/storage/d1/database.ts'
import { MAX_BATCH_STATEMENTS, MAX_D1_TEXT_BYTES } from '../../src/storage/limits.ts'
import { EMPTY_OUTBOX, loadCheckpoint, saveCheckpoint } from '../../src/storage/session/checkpoint.ts'
import { insertMessage, type StoredMessage } from '../../src/storage/session/messages.ts'
import { NOT_LISTED, type SessionRow } from '../../src/storage/session/session-row.ts'
import type { StoredTurn } from '../../src/storage/session/turns.ts'
import { makeExecute } from '../support/workers/bodies.ts'
import { setClock, stopClock } from '../support/workers/clock.ts'
import { copyOf, down, failStatements, onFlush } from '../support/workers/d1.ts'
import { Hold, until } from '../support/workers/hold.ts'
import { type Client, makeClient, turnAs, turnOf } from '../support/workers/router.ts'
import { scriptModels } from '../support/workers/scripted-models.ts'
import {
  alarmOf,
  checkpointOf,
  crash,
  inside,
  messagesOf,
  ringAlarm,
  turnsOf,
} from '../support/workers/session-object.ts'

const models = scriptModels()

let client: Client
let id: string
beforeAll(async () => {
  client = await makeClient()
})
beforeEach(async () => {
  id = await client.newSession()
  models.script({ text: ['Hello'] })
  stopClock()
  vi.spyOn(console, 'warn').mockImplementation(() => {})
})

const turn = async (text = 'hi') => turnAs(await client.execute(id, makeExecute(text)), 'completed')
/** What D1 is owed. What the live list is owed is no part of it. */
const outboxOf = async () => {
  const { listing: _, ...owed } = (await checkpointOf(id)).outbox
  return owed
}
const { listing: _, ...NOTHING_OWED } = EMPTY_OUTBOX
/** Rings the alarm at its time. */
async function ringInTime(): Promise<void> {
  setClock((await alarmOf(id)) ?? Date.now())
  await ringAlarm(id)
}

/** The object can store no checkpoint until this is taken back. */
const failStores = (sessionId: string) =>
  inside(sessionId, (_sql, { storage: { sql } }) => {
    const real = sql.exec.bind(sql)
    const spy = vi.spyOn(sql, 'exec').mockImplementation((query, ...values) => {
      if (/^INSERT INTO checkpoint/.test(query)) throw new Error('SQLITE_FULL')
      return real(query, ...values)
    })
    return { restore: () => spy.mockRestore() }
  })

/** The copy must tell what the object knows, row by row. */
async function expectCopied(): Promise<void> {
  const copy = await copyOf(id)
  const [messages, turns] = [await messagesOf(id), await turnsOf(id)]
  expect(copy.messages).toMatchObject(
    messages.map(({ seq, id, runId, role, text, interrupted, rev }) => ({
      seq,
      id,
      run_id: runId,
      role,
      content: text,
      interrupted: interrupted ? 1 : 0,
      rev,
    })),
  )
  expect(copy.turns).toMatchObject(
    turns.map(({ seq, turnId, status, trace, calls, rev }) => ({
      seq,
      id: turnId,
      status,
      trace: JSON.stringify(trace),
      calls: JSON.stringify(calls),
      rev,
    })),
  )
  expect(await outboxOf()).toEqual(NOTHING_OWED)
}

describe('a turn', () => {
  it('[D25] reaches D1 whole, in one batch, before its answer', async () => {
    let landed = 0
    const flush = onFlush(id, async (send) => {
      const results = await send()
      landed++
      return results
    })
    flush.mockClear()
    await turn()
    expect(landed).toBe(1)
    // One read in the Worker, one write by the object.
    expect(flush).toHaveBeenCalledTimes(2)
    await expectCopied()
  })

  it('[D25] with tools owes D1 the calls and their results', async () => {
    models.script({ calls: [{ name: 'read_file', arguments: { path: 'a' } }] }, { text: ['Done.'] })
    const paused = await turnAs(await client.execute(id, makeExecute('hi')), 'awaiting_tool')
    expect(JSON.parse(String((await copyOf(id)).messages[1]?.calls))).toMatchObject([{ name: 'read_file' }])
    const call_id = paused.data.tool_requests[0]?.call_id ?? ''
    const results = [{ call_id, content: 'R' }]
    await turnOf(await client.proceed(id, { type: 'tool_results', data: { results } }))
    expect(JSON.parse(String((await copyOf(id)).messages[1]?.calls))).toMatchObject([{ result: 'R' }])
    await expectCopied()
  })

  it('[D26] whatever a text is made of, it reaches D1 as the object has it', async () => {
    const odd = ['zero \u0000 byte', 'half \ud83d of a pair', '\uffff\u2028', '\u0001omitted:9']
    for (const text of odd) {
      models.script({ text: [text] })
      await turn(text)
    }
    await expectCopied()
    expect((await copyOf(id)).messages).toHaveLength(2 * odd.length)
  })
})

describe('while D1 fails', () => {
  it('[D26] the answer still leaves, and the alarm sends the rows later', async () => {
    const flush = onFlush(id, down)
    await turn()
    expect((await copyOf(id)).messages).toEqual([])
    expect(await outboxOf()).toMatchObject({ messagesFrom: 1, turnsFrom: 1, failures: 1 })
    expect(await alarmOf(id)).not.toBeNull()
    flush.mockRestore()
    await ringInTime()
    await expectCopied()
    expect(await alarmOf(id)).toBeNull()
  })

  it('[D26] retries come at growing intervals, and a success starts them over', async () => {
    const flush = onFlush(id, down)
    await turn()
    const waits: number[] = []
    for (let attempt = 1; attempt <= 5; attempt++) {
      const at = (await outboxOf()).retryAtMs ?? 0
      expect(await alarmOf(id)).toBe(at)
      setClock(at)
      await ringAlarm(id)
      waits.push(((await outboxOf()).retryAtMs ?? 0) - at)
    }
    expect(waits).toEqual([2000, 4000, 8000, 16_000, 32_000])
    flush.mockRestore()
    await ringInTime()
    expect(await outboxOf()).toEqual(NOTHING_OWED)
  })

  it('[D26] an alarm that rings too early does not knock', async () => {
    const flush = onFlush(id, down)
    await turn()
    flush.mockClear()
    const before = await alarmOf(id)
    await ringAlarm(id)
    expect(flush).not.toHaveBeenCalled()
    expect(await alarmOf(id)).toBe(before)
  })

  it('[D26] several turns pile up and arrive together', async () => {
    const flush = onFlush(id, down)
    for (const text of ['one', 'two', 'three']) await turn(text)
    flush.mockRestore()
    await ringInTime()
    await expectCopied()
    expect((await copyOf(id)).messages.map(({ content }) => content)).toEqual([
      'one',
      'Hello',
      'two',
      'Hello',
      'three',
      'Hello',
    ])
  })

  it('[D26] the next turn that gets through takes everything along', async () => {
    const flush = onFlush(id, down)
    await turn('one')
    flush.mockRestore()
    await turn('two')
    await expectCopied()
    expect(await alarmOf(id)).toBeNull()
  })

  it('[D26] a batch that fails after it was stored is stored once', async () => {
    const flush = onFlush(id, async (send) => {
      await send()
      return down()
    })
    await turn()
    expect((await copyOf(id)).messages).toHaveLength(2)
    flush.mockRestore()
    await ringInTime()
    await expectCopied()
  })

  it('[D26] a statement that cannot even be made is a failure like any other', async () => {
    const prepare = failStatements(/^insert into "messages"/i)
    await turn()
    expect(await outboxOf()).toMatchObject({ messagesFrom: 1, failures: 1 })
    prepare.mockRestore()
    await ringInTime()
    await expectCopied()
  })

  it('[D26] a renamed session answers with its new name, and the list follows', async () => {
    const flush = onFlush(id, down)
    const renamed = await client.send('PUT', `/api/v1/sessions/${id}`, { title: 'new' })
    expect(await renamed.json()).toMatchObject({ session: { title: 'new' } })
    expect((await copyOf(id)).session).toMatchObject({ title: 'a session' })
    flush.mockRestore()
    await ringInTime()
    expect((await copyOf(id)).session).toMatchObject({ title: 'new' })
    expect(await alarmOf(id)).toBeNull()
  })

  it('[D26] and the failure cannot even be noted, the answer leaves and the alarm is still set', async () => {
    vi.spyOn(console, 'error').mockImplementation(() => {})
    const failing: { restore(): void }[] = []
    const flush = onFlush(id, async () => {
      failing.push(await failStores(id))
      return down()
    })
    await turn()
    for (const { restore } of failing) restore()
    flush.mockRestore()
    expect(failing).toHaveLength(1)
    expect(await alarmOf(id)).not.toBeNull()
    await ringInTime()
    await expectCopied()
    expect(await alarmOf(id)).toBeNull()
  })
})

describe('while D1 is slow', () => {
  it('[D26] the answer does not wait for it, and the rows arrive when they arrive', async () => {
    const hold = new Hold()
    onFlush(id, async (send) => {
      await hold.wait()
      return send()
    })
    await turn()
    expect(hold.wasReached).toBe(true)
    expect((await copyOf(id)).messages).toEqual([])
    hold.release()
    await until(async () => (await outboxOf()).messagesFrom === null)
    await expectCopied()
    expect(await alarmOf(id)).toBeNull()
  })

  it('[D26] a turn whose answer waits for D1 is over: the next one may start, and both are answered', async () => {
    const hold = new Hold()
    models.script({ text: ['first'] }, { text: ['second'] })
    onFlush(id, async (send) => {
      await hold.wait()
      return send()
    })
    const first = turn('one')
    await hold.reached()
    const second = await turn('two')
    hold.release()
    expect([(await first).data.message.content, second.data.message.content]).toEqual(['first', 'second'])
  })

  it('[D26] what was committed meanwhile is sent behind it, one batch at a time', async () => {
    const hold = new Hold()
    let under = 0
    onFlush(id, async (send) => {
      expect(++under).toBe(1)
      await hold.wait()
      return send().finally(() => {
        under--
      })
    })
    await turn('one')
    await turn('two')
    hold.release()
    await until(async () => (await outboxOf()).messagesFrom === null)
    await expectCopied()
  })

  it('[D21] the alarm looks after a flush that hangs, without hurry', async () => {
    const hold = new Hold()
    const flush = onFlush(id, down)
    await turn()
    flush.mockRestore()
    onFlush(id, async (send) => {
      await hold.wait()
      return send()
    })
    const now = (await alarmOf(id)) ?? 0
    setClock(now)
    await ringAlarm(id)
    expect(hold.wasReached).toBe(true)
    expect(await alarmOf(id)).toBeGreaterThan(now + 10_000)
    hold.release()
    await until(async () => (await outboxOf()).messagesFrom === null)
    expect(await alarmOf(id)).toBeNull()
  })
})

describe('after a crash', () => {
  it('[D26] rows that were committed and not sent are sent by the alarm', async () => {
    const hold = new Hold()
    const flush = onFlush(id, async (send) => {
      await hold.wait()
      return send()
    })
    const served = client.execute(id, makeExecute('hi'))
    await hold.reached()
    expect(await alarmOf(id)).not.toBeNull()
    vi.spyOn(console, 'error').mockImplementation(() => {})
    await crash(id)
    await served
    flush.mockRestore()
    await ringInTime()
    await expectCopied()
    expect(await alarmOf(id)).toBeNull()
  })

  it('[D26] a batch of the object that died cannot undo what its successor stored', async () => {
    const late: (() => Promise<unknown>)[] = []
    const flush = onFlush(id, async (send) => {
      late.push(send)
      return new Promise(() => {})
    })
    await turn('one')
    await crash(id)
    flush.mockRestore()
    await client.send('PUT', `/api/v1/sessions/${id}`, { title: 'newer' })
    await turn('two')
    const before = await copyOf(id)
    await Promise.all(late.map((send) => send()))
    expect(late).toHaveLength(1)
    expect(await copyOf(id)).toEqual(before)
    await expectCopied()
  })
})

describe('a backlog', () => {
  /** Puts messages into the object that D1 has not got, as if it had been down for long. */
  async function pileUp(count: number, textOf = (n: number) => `message ${n}`): Promise<void> {
    await inside(id, (sql, state) =>
      state.storage.transactionSync(() => {
        const before = loadCheckpoint(sql)
        for (let n = 1; n <= count; n++) {
          const write = { w: 'user_message', id: `m${n}`, runId: 'run', text: textOf(n) } as const
          insertMessage(sql, n, write, Date.now(), 1)
        }
        saveCheckpoint(sql, {
          ...before,
          outbox: { ...EMPTY_OUTBOX, session: true, messagesFrom: 1 },
          counters: { ...before.counters, message: count, rev: 1 },
        })
      }),
    )
    await evictDurableObject(env.SESSION.getByName(id))
  }

  it('[D26] of more than 100 rows goes out in several batches, in order', async () => {
    await pileUp(250)
    const sizes: number[] = []
    onFlush(id, async (send, queries) => {
      sizes.push(queries.length)
      return send()
    })
    await turn()
    await until(async () => (await outboxOf()).messagesFrom === null)
    expect(sizes.length).toBeGreaterThan(2)
    expect(Math.max(...sizes)).toBeLessThanOrEqual(MAX_BATCH_STATEMENTS)
    await expectCopied()
    expect((await copyOf(id)).messages).toHaveLength(252)
  })

  it('[D26] that breaks off in the middle goes on there', async () => {
    await pileUp(250)
    let batches = 0
    const flush = onFlush(id, async (send) => (++batches === 2 ? down() : send()))
    await turn()
    await until(async () => (await outboxOf()).failures === 1)
    expect((await copyOf(id)).messages).toHaveLength(MAX_BATCH_STATEMENTS - 1)
    flush.mockRestore()
    await ringInTime()
    await until(async () => (await outboxOf()).messagesFrom === null)
    await expectCopied()
  })

  it('[D26][D27] of large rows goes out in batches of a bounded size, in which markers weigh nothing', async () => {
    const most = 'x'.repeat(MAX_D1_TEXT_BYTES)
    // Every fourth is one that D1 gets a marker for.
    await pileUp(20, (n) => (n % 4 === 0 ? `${most}!` : most))
    const flush = onFlush(id, down)
    await turn()
    await until(async () => (await outboxOf()).failures === 1)
    flush.mockRestore()
    const sizes: number[] = []
    onFlush(id, async (send, queries) => {
      sizes.push(queries.length)
      return send()
    })
    await ringInTime()
    await until(async () => (await outboxOf()).messagesFrom === null)
    // Eight of 512 KiB to a batch, the markers among them for nothing; the session's row comes with each, the turn last.
    expect(sizes).toEqual([11, 14])
    expect((await copyOf(id)).messages.map(({ content }) => String(content).length)).toEqual([
      ...Array.from({ length: 20 }, (_, n) =>
        n % 4 === 3 ? `\u0001omitted:${MAX_D1_TEXT_BYTES + 1}`.length : MAX_D1_TEXT_BYTES,
      ),
      2,
      5,
    ])
    expect(await outboxOf()).toEqual(NOTHING_OWED)
  }, 20_000)

  it('[D26] whose messages fill a batch to the last row keeps its turns for the next', async () => {
    const flush = onFlush(id, down)
    await pileUp(MAX_BATCH_STATEMENTS - 3)
    await turn()
    await until(async () => (await outboxOf()).failures === 1)
    flush.mockRestore()
    await ringInTime()
    await until(async () => (await outboxOf()).turnsFrom === null)
    expect((await copyOf(id)).messages).toHaveLength(MAX_BATCH_STATEMENTS - 1)
    expect((await copyOf(id)).turns).toHaveLength(1)
    await expectCopied()
  })

  it('[D26] too long for one flush is finished by those that follow, at a start, after a turn or by the alarm', async () => {
    await pileUp(4_200)
    await turn()
    await until(async () => {
      if ((await alarmOf(id)) !== null) await ringInTime()
      return (await outboxOf()).messagesFrom === null
    })
    expect((await copyOf(id)).messages).toHaveLength(4_202)
    expect(await alarmOf(id)).toBeNull()
  }, 20_000)
})

describe('a session that is gone from D1', () => {
  it('[D26] has its late rows discarded, not tried for ever', async () => {
    const flush = onFlush(id, down)
    await turn()
    flush.mockRestore()
    await env.DB.prepare('DELETE FROM sessions WHERE id = ?').bind(id).run()
    await ringInTime()
    expect(await outboxOf()).toEqual(NOTHING_OWED)
    expect(await alarmOf(id)).toBeNull()
    expect(await copyOf(id)).toEqual({ session: undefined, messages: [], turns: [] })
  })
})

describe('revisions', () => {
  const sessionRow = (rev: number): SessionRow => ({
    sessionId: id,
    userId: client.userId,
    title: `title ${rev}`,
    scope: null,
    keyId: null,
    createdAtMs: 1,
    updatedAtMs: rev,
    archivedAtMs: null,
    deletedAtMs: null,
    rev,
    ...NOT_LISTED,
  })
  const message = (rev: number, text = `text ${rev}`): StoredMessage => ({
    seq: 1,
    id: 'm1',
    runId: 'run',
    role: 'user',
    text,
    interrupted: false,
    calls: [],
    createdAtMs: 1,
    rev,
  })
  const storedTurn = (rev: number): StoredTurn => ({
    turnId: 't1',
    seq: 1,
    runId: 'run',
    turn: 1,
    status: 'done',
    trace: [],
    calls: [],
    outcome: null,
    startedAtMs: rev,
    endedAtMs: rev,
    rev,
  })
  const write = (rev: number, text?: string) =>
    writeCopy(openDatabase(env.DB), {
      session: sessionRow(rev),
      shown: { workspace: null, derivedTitle: null, messageCount: rev },
      messages: [message(rev, text)],
      turns: [storedTurn(rev)],
      memory: [],
      receipts: [],
    })

  it('[D26] an older row never overwrites a newer one, whatever order they arrive in', async () => {
    await write(3)
    await write(7)
    const newest = await copyOf(id)
    expect(newest).toMatchObject({
      session: { title: 'title 7' },
      messages: [{ content: 'text 7' }],
      turns: [{ ended_at: 7 }],
    })
    await write(5)
    await write(7, 'the same revision, told otherwise')
    expect(await copyOf(id)).toEqual(newest)
    await write(8)
    expect((await copyOf(id)).messages).toMatchObject([{ content: 'text 8', rev: 8 }])
  })
})
