import type { NotedRevocation, RevocationReason } from '../core/gateway/revocation.ts'
import type { Failure } from '../protocol/execution/errors.ts'
import type { DeviceKind, Route } from '../protocol/remote/handshake-request.ts'
import type { RemoteSessionInfo } from '../protocol/remote/session-info.ts'
import type { Result } from '../protocol/result.ts'
import type { HeldSnapshot } from '../session/rpc.ts'

/**
 * What the Worker, a session's object and a user's gateway say to each other. It is a wire: for a release, methods and
 * fields are only added (D32). Failures are data. Times are epoch milliseconds.
 */

/** Whose gateway it is. `gatewayId` is stable for the user, and what a device keys its stored token by. */
export type GatewayIdentity = { userId: string; gatewayId: string }

/** What the Worker knows of a socket that it lets in. It travels with the upgrade, as JSON in one header. */
export type SocketOrigin = GatewayIdentity & {
  /** The network address of the peer. */
  address: string
  /** Where this router is reached; none when it listens on loopback only. */
  routes: Route[]
  hostName: string | null
  /** Devices whose revocation this object could not store: they are applied before the socket is served. */
  notedRevocations: NotedRevocation[]
  /** Whether the deployment's own keys and endpoints serve this user (D14). Absent from a Worker of an older release. */
  deploymentProviders?: boolean
  /** The token that the upgrade was made with (D38): no handshake, and receipts under its id. Absent: a device's socket. */
  tokenId?: string
  /** When that token runs out: the socket ends with it. */
  tokenExpiresAtMs?: number
}

/** The header of the upgrade that carries the `SocketOrigin`. */
export const SOCKET_ORIGIN_HEADER = 'X-Switchyard-Socket-Origin'

/** A challenge that was opened. The code is formatted `dddd-dddd`. */
export type OpenedPairing = { code: string; credential: string; expiresAtMs: number }

export type DeviceRecord = {
  deviceId: string
  name: string
  kind: DeviceKind
  /** Null: unknown. */
  platform: string | null
  pairedAtMs: number
  /** Null: never since it was paired. */
  lastSeenAtMs: number | null
  online: boolean
  /** Of a device with a static token. */
  expiresAtMs: number | null
  /** The pairing has ended, and the owner should see why; null while it holds. */
  revokedReason: RevocationReason | null
}

export type ConnectRequestRecord = {
  requestId: string
  deviceName: string
  deviceKind: DeviceKind
  platform: string | null
  expiresAtMs: number
}

/** Why a session leaves the live list. */
export type UnlistReason = 'sharing_disabled' | 'owner_exited'

/**
 * What happened in a session that devices follow. `events` go without a gap from `first` to `last`; they may be left out
 * (`first` is then behind `last`), and a gateway whose devices lack them pulls them. `snapshot` follows the events.
 */
export type EventPush = {
  sessionId: string
  registrationEpoch: number
  first: number
  events: string[]
  last: number
  snapshot: HeldSnapshot | null
}

export interface GatewayRpc {
  /** Opens a challenge in place of the one before (RF 4). */
  openPairing(who: GatewayIdentity): Promise<OpenedPairing>
  /** Paired devices and those whose pairing ended by a replay; the newest first. */
  devices(who: GatewayIdentity): Promise<DeviceRecord[]>
  renameDevice(who: GatewayIdentity, deviceId: string, name: string): Promise<Result<DeviceRecord, Failure>>
  /**
   * Ends a pairing, or takes an ended one off the list. Throws when it could not be stored: then the device is refused
   * as long as this object is in memory, and the caller has to note it.
   */
  revokeDevice(who: GatewayIdentity, deviceId: string): Promise<Result<true, Failure>>
  /** Requests that wait for the owner; the oldest first. */
  connectRequests(who: GatewayIdentity): Promise<ConnectRequestRecord[]>
  /** From now on requests are taken, until the returned time (D41). */
  listen(who: GatewayIdentity): Promise<number>
  /** Opens a challenge that only the socket of this request can redeem. */
  acceptRequest(
    who: GatewayIdentity,
    requestId: string,
  ): Promise<Result<{ code: string; expiresAtMs: number }, Failure>>
  denyRequest(who: GatewayIdentity, requestId: string): Promise<Result<true, Failure>>
  /** The account is being deleted: closes every socket and forgets everything. */
  remove(userId: string): Promise<void>
  /**
   * A session's row of the live list, whole. False: this registration was taken off the list by the gateway, and the
   * session needs a new epoch to be listed again (D03).
   */
  putRow(userId: string, row: RemoteSessionInfo): Promise<boolean>
  /** The session is not listed any more under this epoch, or any older one. */
  removeRow(
    userId: string,
    gone: { sessionId: string; registrationEpoch: number; reason: UnlistReason },
  ): Promise<void>
  /** Events of a session for the devices that follow it. `watched` false: none does, until one attaches again. */
  pushEvents(userId: string, push: EventPush): Promise<{ watched: boolean }>
  /** The token was signed out: its sockets are closed, and nothing of what it asked is remembered (D38). */
  closeToken(userId: string, tokenId: string): Promise<void>
}
