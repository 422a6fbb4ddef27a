import { vi } from 'vitest'
import { Gateway } from '../../../src/gateway/gateway.ts'
import type { UnlistReason } from '../../../src/gateway/rpc.ts'
import type { RemoteSessionInfo } from '../../../src/protocol/remote/session-info.ts'

type Gone = { sessionId: string; registrationEpoch: number; reason: UnlistReason }
/** What a gateway was told of a session, in order. */
export type ToldRow = { row: RemoteSessionInfo } | { gone: Gone }

export type WatchedList = {
  /** The session that is watched; others pass. */
  sessionId: string
  told: ToldRow[]
  rows(): RemoteSessionInfo[]
  gone(): Gone[]
  /** Called before the gateway hears of it: may throw in its place, or take its time. */
  before: ((told: ToldRow) => void | Promise<void>) | null
  /** The gateway says this of rows, without looking at them; null: what it has to say. */
  kept: boolean | null
}

/** Stands between one session and its user’s gateway until the mocks are restored. Once in a test: it does not nest. */
export function watchList(sessionId: string): WatchedList {
  const watched: WatchedList = {
    sessionId,
    told: [],
    rows: () => watched.told.flatMap((told) => ('row' in told ? [told.row] : [])),
    gone: () => watched.told.flatMap((told) => ('gone' in told ? [told.gone] : [])),
    before: null,
    kept: null,
  }
  const { putRow, removeRow } = Gateway.prototype
  vi.spyOn(Gateway.prototype, 'putRow').mockImplementation(async function (this: Gateway, userId, row) {
    if (row.session_id !== watched.sessionId) return putRow.call(this, userId, row)
    watched.told.push({ row })
    await watched.before?.({ row })
    return watched.kept ?? putRow.call(this, userId, row)
  })
  vi.spyOn(Gateway.prototype, 'removeRow').mockImplementation(async function (this: Gateway, userId, gone) {
    if (gone.sessionId !== watched.sessionId) return removeRow.call(this, userId, gone)
    watched.told.push({ gone })
    await watched.before?.({ gone })
    return removeRow.call(this, userId, gone)
  })
  return watched
}

/** A gateway that takes every row and does nothing with it: it has timers of its own, and they are not the session’s. */
export function quietGateway(): void {
  vi.spyOn(Gateway.prototype, 'putRow').mockResolvedValue(true)
  vi.spyOn(Gateway.prototype, 'removeRow').mockResolvedValue()
}
