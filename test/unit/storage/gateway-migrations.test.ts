import { expect, test } from 'vitest'
import { loadIdentity, saveIdentity } from '../../../src/storage/gateway/identity.ts'
import { loadRows, saveRow } from '../../../src/storage/gateway/live-rows.ts'
import { GATEWAY_MIGRATIONS, migrateGateway } from '../../../src/storage/gateway/migrations.ts'
import { makeNodeSql } from '../../support/node/node-sql.ts'

const IDENTITY = { userId: 'u', gatewayId: 'g', instanceId: 'i', listenUntilMs: 5 }
const ROW = {
  row: {
    session_id: 's',
    registration_epoch: 1,
    title: 'a session',
    model: '',
    activity: 'idle',
    attention: { approval: false, question: false },
    health: 'live',
  },
  touchedAtMs: 7,
  isAsked: true,
} as const

test('[D32] a gateway of the first release is brought up to date, and keeps what it knows', () => {
  const sql = makeNodeSql()
  migrateGateway(sql, GATEWAY_MIGRATIONS.slice(0, 1))
  saveIdentity(sql, IDENTITY)
  saveRow(sql, ROW)
  migrateGateway(sql)
  expect(loadIdentity(sql)).toEqual(IDENTITY)
  expect(loadRows(sql)).toEqual([ROW])
  for (const table of ['request_sessions', 'host_receipts'])
    expect(sql.rows(`SELECT count(*) AS n FROM ${table}`)).toEqual([{ n: 0 }])
})
