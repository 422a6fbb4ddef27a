import type { RevocationReason } from '../core/gateway/revocation.ts'
import type { Route } from '../protocol/remote/handshake-request.ts'
import { REMOTE_PROTOCOL_VERSION } from '../protocol/remote/limits.ts'
import { ROUTER_VERSION } from '../protocol/version.ts'
import type { StoredIdentity } from '../storage/gateway/identity.ts'
import type { Sql } from '../storage/session/sql.ts'
import type { Greeting, Sockets } from './sockets.ts'

/** What the parts of a gateway share. */
export type GatewayParts = {
  sql: Sql
  sockets: Sockets
  /** Whose gateway it is, once the Worker has named it. */
  identity(): StoredIdentity & { gatewayId: string }
  saveIdentity(change: Partial<StoredIdentity>): void
  /** Resolves when everything written so far is durable. */
  sync(): Promise<void>
  /** Sets the object's alarm by what it has to do next. */
  arm(): void
  /** Work that goes on after the event that began it. */
  keepAlive(work: Promise<unknown>): void
  /** Notes a revocation outside the object, whose own storage has failed. */
  noteRevocation(deviceId: string, reason: RevocationReason): Promise<void>
  /** The note has done its part: the object has stored the revocation. */
  dropNote(deviceId: string): Promise<void>
}

/** What `paired` and `authenticated` both say of the router (remote protocol, "Handshake frames"). */
export type RouterFields = {
  protocol_version: typeof REMOTE_PROTOCOL_VERSION
  gateway_id: string
  instance_id: string
  host_name?: string
  version: string
  routes?: Route[]
}

export const routerFields = (
  { gatewayId, instanceId }: { gatewayId: string; instanceId: string },
  { routes, hostName }: Greeting,
): RouterFields => ({
  protocol_version: REMOTE_PROTOCOL_VERSION,
  gateway_id: gatewayId,
  instance_id: instanceId,
  ...(hostName === null ? {} : { host_name: hostName }),
  version: ROUTER_VERSION,
  ...(routes.length === 0 ? {} : { routes }),
})
