import { env } from 'cloudflare:workers'
import { beforeAll, expect, it, vi } from 'vitest'
import { openDatabase } from '../../src/storage/d1/database.ts'
import { writeReceipts } from '../../src/storage/d1/receipts.ts'
import { cleanUp } from '../../src/worker/clean-up.ts'
import { HostRig } from '../support/workers/host-operations.ts'
import { type Client, makeClient } from '../support/workers/router.ts'
import { rowsWith } from '../support/workers/tables.ts'

const DAY_MS = 24 * 60 * 60 * 1000
const db = () => openDatabase(env.DB)

let owner: Client
let rig: HostRig
beforeAll(async () => {
  owner = await makeClient()
  rig = await HostRig.make(owner)
})

const copied = (requestId: string, fields: object = {}) => ({
  seq: 1,
  deviceId: 'd1',
  requestId,
  epoch: 3,
  receipt: 'applied' as const,
  code: 'turn_cancelled',
  createdAtMs: Date.now(),
  ...fields,
})
const status = (requestId: string, fields: { sessionId?: string; epoch?: number; deviceId?: string } = {}) =>
  rig.within((host) =>
    host.deletedStatus({ deviceId: 'd1', requestId, sessionId: null, epoch: null, ...fields }),
  )

it('[D26] the copies of receipts outlive their session, and tell what became of a request', async () => {
  const sessionId = await owner.newSession()
  const owned = { userId: owner.userId, sessionId }
  await writeReceipts(db(), owned, [copied('r1'), copied('r2', { receipt: 'rejected', code: 'busy' })])
  await owner.send('DELETE', `/api/v1/sessions/${sessionId}`)
  expect(await status('r1')).toEqual({ receipt: 'applied' })
  expect(await status('r2')).toMatchObject({ receipt: 'rejected', result: { type: 'error', code: 'busy' } })
  expect(await status('r3')).toBeNull()
})

it('[RF 28] "Only the asking device\'s own receipts are visible", and only of the session and epoch that are named', async () => {
  const owned = { userId: owner.userId, sessionId: 'gone' }
  await writeReceipts(db(), owned, [copied('named')])
  expect(await status('named', { sessionId: 'gone', epoch: 3 })).toEqual({ receipt: 'applied' })
  expect(await status('named', { deviceId: 'd2' })).toBeNull()
  expect(await status('named', { sessionId: 'other' })).toBeNull()
  expect(await status('named', { epoch: 4 })).toBeNull()
  const stranger = await HostRig.make(await makeClient())
  const target = { deviceId: 'd1', requestId: 'named', sessionId: null, epoch: null }
  expect(await stranger.within((host) => host.deletedStatus(target))).toBeNull()
})

it('[D26] a receipt that is copied twice stays as it was', async () => {
  const owned = { userId: owner.userId, sessionId: 'twice' }
  await writeReceipts(db(), owned, [copied('twice')])
  await writeReceipts(db(), owned, [copied('twice', { receipt: 'rejected', code: 'busy' }), copied('once')])
  expect(await status('twice')).toEqual({ receipt: 'applied' })
  expect(await status('once')).toEqual({ receipt: 'applied' })
})

it('[D31] clean-up takes copies of receipts away after 30 days', async () => {
  const owned = { userId: owner.userId, sessionId: 'old' }
  await writeReceipts(db(), owned, [
    copied('too-old', { createdAtMs: Date.now() - 31 * DAY_MS }),
    copied('old', { createdAtMs: Date.now() - 29 * DAY_MS }),
  ])
  const unused = () => {
    throw new Error('no object is asked')
  }
  vi.spyOn(console, 'error').mockImplementation(() => {})
  await cleanUp({
    db: db(),
    session: unused,
    gateway: unused,
    retention: { archivedDays: 0, sessionsDays: 0, tracesDays: 0 },
    now: Date.now,
  })
  expect(await status('too-old')).toBeNull()
  expect(await status('old')).toEqual({ receipt: 'applied' })
})

it('a deleted account leaves no receipt, no setting and no policy behind', async () => {
  const client = await makeClient()
  const theirs = await HostRig.make(client)
  await writeReceipts(db(), { userId: client.userId, sessionId: 's' }, [copied('secret-request')])
  await theirs.ask({ type: 'set_settings', settings: { model: 'secret/model' } })
  const policy = {
    version: 1,
    source: 'secret-source',
    classification: {},
    routing: {},
    tools: {},
    privacy: {},
  }
  expect((await client.send('PUT', '/api/v1/settings/policy', { policy })).status).toBe(200)
  for (const word of ['secret-request', 'secret/model', 'secret-source'])
    expect(await rowsWith(word)).not.toEqual({})
  await client.send('DELETE', '/api/v1/auth/me', undefined, { 'X-Smista-Api-Key': client.key })
  for (const word of ['secret-request', 'secret/model', 'secret-source'])
    expect(await rowsWith(word)).toEqual({})
})
