import { Attaching } from './attach.ts'
import { Authentication } from './authentication.ts'
import { CatchUp } from './catch-up.ts'
import { ConnectRequests } from './connect-requests.ts'
import { Delivery } from './delivery.ts'
import { Devices } from './devices.ts'
import { FanOut } from './fan-out.ts'
import { Forward } from './forward.ts'
import { Host } from './host/host.ts'
import { ListPush } from './list-push.ts'
import { LiveList } from './live-list.ts'
import { Pairing } from './pairing.ts'
import type { GatewayParts } from './parts.ts'
import { RequestStatus } from './request-status.ts'
import { Requests } from './requests.ts'
import { type ListedSession, SessionCalls } from './session-calls.ts'
import { Subscriptions } from './subscriptions.ts'

/** What a gateway is made of, once it knows whose it is. */
export type Running = {
  devices: Devices
  pairing: Pairing
  connect: ConnectRequests
  authentication: Authentication
  list: LiveList
  listPush: ListPush
  calls: SessionCalls
  catchUp: CatchUp
  fanOut: FanOut
  requests: Requests
}

export type Surroundings = {
  db: D1Database
  session(sessionId: string): ListedSession
  /** Known before the gateway has been named. */
  userId(): string
}

/** Puts the parts together, with what was stored and what was kept with the sockets. */
export function assemble(parts: GatewayParts, { db, session, userId }: Surroundings): Running {
  const { sql, sockets, arm, keepAlive } = parts
  const devices = new Devices(parts)
  const pairing = new Pairing(parts)
  const connect = new ConnectRequests(parts, pairing)
  connect.withdrawLost()
  const list = new LiveList({
    sql,
    ended: (...which) => fanOut.ended(...which),
    isFollowed: () => sockets.devices().some(([, { subscribed }]) => subscribed),
    changed: () => listPush.changed(),
    delisted: () => keepAlive(calls.tellDelisted()),
  })
  const listPush = new ListPush(parts, () => list.rows)
  const calls = new SessionCalls({ session, userId, list, arm })
  const subscriptions = new Subscriptions(sockets)
  const delivery = new Delivery(sockets)
  const catchUp = new CatchUp({ sockets, subscriptions, delivery, session, userId, keepAlive, arm })
  const attaching = new Attaching({ parts, subscriptions, catchUp, session })
  const fanOut = new FanOut({ subscriptions, delivery, catchUp, attaching })
  const host = new Host({ sql, db, userId, list, session, keepAlive })
  const forward = new Forward({ sql, list, session, userId })
  const status = new RequestStatus({ sql, list, session, userId, host })
  const requests = new Requests({ parts, list, listPush, connect, attaching, forward, status, host })
  const authentication = new Authentication(parts, devices)
  return { devices, pairing, connect, authentication, list, listPush, calls, catchUp, fanOut, requests }
}
