import type { SwitchyardClient } from '../../src/client/client.ts'
import { must } from './router.ts'
import { type BenchSocket, openSocket } from './socket.ts'

export type Fields = Record<string, unknown>

/** A session as a device is told of it. */
export type Listed = { session_id: string; registration_epoch: number }

/** A paired device. It can connect any number of times. */
export type BenchDevice = {
  gatewayId: string
  /** A connection behind its handshake. */
  connect(): Promise<BenchSocket>
}

/** A device holds so many connections at most. */
const SOCKETS_PER_DEVICE = 8

/** Pairs a device with the gateway of a client that is signed in. */
export async function pairDevice(url: string, client: SwitchyardClient): Promise<BenchDevice> {
  const { gateway_id, credential } = must(await client.pairing.open())
  const door = `${url.replace(/^http/, 'ws')}/g/${gateway_id}`
  const first = await openSocket(door)
  const pair = {
    type: 'pair',
    protocol_version: 1,
    method: 'credential',
    secret: credential,
    device_name: 'a bench',
  }
  const { device_id, token } = expectType(await first.ask(pair), 'paired')
  first.close()
  return {
    gatewayId: gateway_id,
    connect: async () => {
      const socket = await openSocket(door)
      expectType(
        await socket.ask({ type: 'authenticate', protocol_version: 1, device_id, token }),
        'authenticated',
      )
      return socket
    },
  }
}

/** So many connections, of as many devices as that takes. */
export async function connectMany(
  url: string,
  client: SwitchyardClient,
  count: number,
): Promise<BenchSocket[]> {
  const sockets: BenchSocket[] = []
  while (sockets.length < count) {
    const device = await pairDevice(url, client)
    for (let n = 0; n < SOCKETS_PER_DEVICE && sockets.length < count; n++)
      sockets.push(await device.connect())
  }
  return sockets
}

let requests = 0

/** A request of a device; with a session it is about that. */
export function requestFrame(operation: Fields, session?: Listed): Fields {
  requests++
  const { session_id, registration_epoch } = session ?? {}
  return {
    protocol_version: 1,
    request_id: `bench-${requests}`,
    ...(session === undefined ? {} : { session_id, registration_epoch }),
    operation,
  }
}

/** The session's row in the live list. */
export async function listed(socket: BenchSocket, sessionId: string): Promise<Listed> {
  const { sessions } = resultOf(await socket.ask(requestFrame({ type: 'list_sessions' })), 'sessions')
  const row = (sessions as Listed[]).find(({ session_id: id }) => id === sessionId)
  if (row === undefined) throw new Error('the session is not listed')
  return row
}

/** Attaches without a cursor, and gives where the device stands then. */
export async function attach(
  socket: BenchSocket,
  session: Listed,
): Promise<{ sequence: number; snapshotId: string }> {
  const answer = await socket.ask(requestFrame({ type: 'attach_session' }, session))
  const { sequence, snapshot_id } = resultOf(answer, 'attached').snapshot as Fields
  return { sequence: Number(sequence), snapshotId: String(snapshot_id) }
}

export function resultOf(answer: Fields, type: string): Fields {
  return expectType(answer.result as Fields, type)
}

function expectType(answer: Fields, type: string): Fields {
  if (answer?.type !== type) throw new Error(`the gateway refused: ${JSON.stringify(answer).slice(0, 300)}`)
  return answer
}
