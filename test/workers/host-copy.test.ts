import { env } from 'cloudflare:workers'
import { beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { loadCheckpoint, saveCheckpoint } from '../../src/storage/session/checkpoint.ts'
import { saveReceipt } from '../../src/storage/session/receipts.ts'
import { makeExecute } from '../support/workers/bodies.ts'
import { setClock, stopClock } from '../support/workers/clock.ts'
import { copyOf, down, onFlush } from '../support/workers/d1.ts'
import { until } from '../support/workers/hold.ts'
import { type Client, makeClient, turnAs } from '../support/workers/router.ts'
import { scriptModels } from '../support/workers/scripted-models.ts'
import { newSealedSession } from '../support/workers/sealed-client.ts'
import { alarmOf, checkpointOf, crash, inside, ringAlarm } from '../support/workers/session-object.ts'

const models = scriptModels()

let client: Client
let id: string
beforeAll(async () => {
  client = await makeClient()
})
beforeEach(async () => {
  id = await client.newSession(' ')
  models.script({ text: ['Hello'] })
  stopClock()
  vi.spyOn(console, 'warn').mockImplementation(() => {})
})

const turn = async (text = 'hi') => turnAs(await client.execute(id, makeExecute(text)), 'completed')

describe('what lists show of a session', () => {
  it('[RF 25] its folder, the title that was said and the number of messages reach D1 with its turn', async () => {
    await turn('Fix the parser\nand more')
    expect((await copyOf(id)).session).toMatchObject({
      workspace: makeExecute('hi').workspace.root,
      derived_title: 'Fix the parser',
      message_count: 2,
    })
    models.script({ text: ['Hello again'] })
    await turn('More of it')
    expect((await copyOf(id)).session).toMatchObject({ derived_title: 'Fix the parser', message_count: 4 })
  })

  it('[D47] of a sealed session no title is derived', async () => {
    const sealed = await newSealedSession(client)
    await client.execute(sealed.id, makeExecute('a word that must not be known'))
    const { session } = await copyOf(sealed.id)
    expect(session).toMatchObject({ derived_title: null })
  })
})

describe('receipts', () => {
  /** Receipts in the object that D1 has not got. */
  const pileUp = async (count: number): Promise<void> => {
    await inside(id, (sql, state) =>
      state.storage.transactionSync(() => {
        const result = { type: 'turn_cancelled', turn_id: 'turn:1' } as const
        for (let n = 1; n <= count; n++)
          saveReceipt(
            sql,
            { deviceId: 'd1', epoch: 3, requestId: `r${n}`, digest: 'x', receipt: 'applied', result },
            Date.now(),
          )
        const before = loadCheckpoint(sql)
        saveCheckpoint(sql, { ...before, outbox: { ...before.outbox, receiptsFrom: 1 } })
      }),
    )
    await crash(id)
  }
  const copied = async () =>
    (
      await env.DB.prepare('SELECT request_id, user_id, epoch, code FROM receipts WHERE session_id = ?')
        .bind(id)
        .all()
    ).results

  it('[D26] reach D1 by the outbox, more of them than a batch holds in several', async () => {
    await pileUp(250)
    await turn()
    await until(async () => (await checkpointOf(id)).outbox.receiptsFrom === null)
    const rows = await copied()
    expect(rows).toHaveLength(250)
    expect(rows).toContainEqual({
      request_id: 'r250',
      user_id: client.userId,
      epoch: 3,
      code: 'turn_cancelled',
    })
  })

  it('[D26] that D1 has not got when their session is deleted reach it all the same', async () => {
    await pileUp(150)
    const flush = onFlush(id, (send, queries) =>
      /^insert into "receipts"/.test(queries[0] ?? '') ? send() : down(),
    )
    await client.send('DELETE', `/api/v1/sessions/${id}`)
    flush.mockRestore()
    await until(async () => (await copyOf(id)).session === undefined)
    expect(await copied()).toHaveLength(150)
  })

  it('[D26] are owed on while D1 is down, and come when it is back', async () => {
    await pileUp(1)
    const flush = onFlush(id, down)
    await turn()
    await until(async () => (await checkpointOf(id)).outbox.failures > 0)
    expect(await copied()).toEqual([])
    flush.mockRestore()
    setClock((await alarmOf(id)) ?? Date.now())
    await ringAlarm(id)
    await until(async () => (await checkpointOf(id)).outbox.receiptsFrom === null)
    expect(await copied()).toHaveLength(1)
  })
})
