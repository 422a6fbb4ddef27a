import { createExecutionContext } from 'cloudflare:test'
import { env, exports } from 'cloudflare:workers'
import type { z } from 'zod'
import { OpenPairingResponse } from '../../../src/protocol/execution/devices.ts'
import { app } from '../../../src/worker/app.ts'
import type { Env } from '../../../src/worker/env.ts'
import { type Client, type Headers, ORIGIN, parsed } from './router.ts'

/** A device as the Worker's tests need one: it dials, sends frames, and reads what comes. */
export class GatewayDevice {
  readonly #socket: WebSocket
  readonly #frames: Record<string, unknown>[] = []
  #closed = false
  #wake: () => void = () => {}

  constructor(socket: WebSocket) {
    this.#socket = socket
    socket.addEventListener('message', ({ data }) => {
      this.#frames.push(JSON.parse(String(data)))
      this.#wake()
    })
    socket.addEventListener('close', () => {
      this.#closed = true
      this.#wake()
    })
    socket.accept()
  }

  /** Sends a frame and waits for the next that comes. */
  async ask(frame: Record<string, unknown>): Promise<Record<string, unknown>> {
    this.#socket.send(JSON.stringify({ protocol_version: 1, ...frame }))
    return this.next()
  }

  async next(): Promise<Record<string, unknown>> {
    for (;;) {
      const frame = this.#frames.shift()
      if (frame !== undefined) return frame
      if (this.#closed) throw new Error('the socket is closed')
      await this.#change()
    }
  }

  /** Resolves when the gateway has closed the socket. */
  async untilClosed(): Promise<void> {
    while (!this.#closed) await this.#change()
  }

  hangUp(): void {
    this.#socket.close()
  }

  #change(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve
    })
  }
}

export type DialOptions = {
  headers?: Headers
  /** Variables of the Worker; `undefined` takes one away. */
  vars?: Partial<Record<keyof Env, string | undefined>>
  /** Scheme and host under which the router is asked. */
  at?: string
}

/** The answer to an upgrade, whatever it is. */
export async function upgrade(
  path: string,
  { headers = {}, vars, at = ORIGIN }: DialOptions = {},
): Promise<Response> {
  const request = new Request(new URL(path, at), { headers: { Upgrade: 'websocket', ...headers } })
  if (vars === undefined) return exports.default.fetch(request)
  return app.fetch(request, { ...env, ...vars } as unknown as Env, createExecutionContext())
}

/** A socket, which must be granted. */
export async function dial(path: string, options: DialOptions = {}): Promise<GatewayDevice> {
  const response = await upgrade(path, options)
  if (response.webSocket === null)
    throw new Error(`the upgrade was answered with ${response.status}: ${await response.text()}`)
  return new GatewayDevice(response.webSocket)
}

export const openPairing = async (owner: Client): Promise<z.infer<typeof OpenPairingResponse>> =>
  parsed(await owner.send('POST', '/api/v1/pairing'), OpenPairingResponse, 201)

export type Paired = { socket: GatewayDevice; deviceId: string; frame: Record<string, unknown> }

/** Pairs a device over a socket of its own. */
export async function pairDevice(owner: Client, fields: Record<string, unknown> = {}): Promise<Paired> {
  const { credential, gateway_id } = await openPairing(owner)
  const socket = await dial(`/g/${gateway_id}`)
  const pair = { type: 'pair', method: 'credential', secret: credential, device_name: 'A phone', ...fields }
  const frame = await socket.ask(pair)
  if (frame.type !== 'paired') throw new Error(`pairing was refused: ${JSON.stringify(frame)}`)
  return { socket, deviceId: String(frame.device_id), frame }
}

/** A device that asks to be paired, and waits. The owner must listen. */
export async function askToConnect(
  gatewayId: string,
  fields: Record<string, unknown> = {},
  options: DialOptions = {},
): Promise<{ socket: GatewayDevice; requestId: string }> {
  const socket = await dial(`/g/${gatewayId}`, options)
  const frame = await socket.ask({ type: 'connect_request', device_name: 'A phone', ...fields })
  if (frame.type !== 'connect_pending') throw new Error(`the request was refused: ${JSON.stringify(frame)}`)
  return { socket, requestId: String(frame.request_id) }
}
