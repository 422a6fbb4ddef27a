import { exports } from 'cloudflare:workers'
import type { z } from 'zod'
import { OpenPairingResponse } from '../../../src/protocol/execution/devices.ts'
import { type Client, ORIGIN, parsed } from './router.ts'

export type Frame = Record<string, unknown>

/** What stands in the log of a socket when it has closed. */
export type Closed = { closed: number }

/** The client's end of a socket to a gateway: frames in the order of their arrival, none of them skipped. */
export class Device {
  readonly #socket: WebSocket
  readonly #frames: (Frame | Closed)[] = []
  #at = 0
  #wake: (() => void) | null = null

  private constructor(socket: WebSocket) {
    this.#socket = socket
    const add = (frame: Frame | Closed) => {
      this.#frames.push(frame)
      this.#wake?.()
    }
    socket.addEventListener('message', (event) => add(JSON.parse(String(event.data))))
    socket.addEventListener('close', (event) => add({ closed: event.code }))
    socket.accept()
  }

  /** Dials a gateway. `address` is the network address to come from. */
  static async dial(path: string, { address = '203.0.113.7', headers = {} as Record<string, string> } = {}) {
    const answer = await upgrade(path, { address, headers })
    return Device.of(answer)
  }

  /** The client's end of an upgrade that was granted. */
  static async of(answer: Response): Promise<Device> {
    if (answer.webSocket === null) throw new Error(`refused: ${answer.status} ${await answer.text()}`)
    return new Device(answer.webSocket)
  }

  send(frame: unknown): void {
    this.#socket.send(
      typeof frame === 'string' || frame instanceof ArrayBuffer ? frame : JSON.stringify(frame),
    )
  }

  /** The next frame, whatever it is. */
  async next(): Promise<Frame> {
    while (this.#at >= this.#frames.length) await new Promise<void>((resolve) => (this.#wake = resolve))
    return this.#frames[this.#at++] as Frame
  }

  /** The frames that have come and have not been looked at. */
  get waiting(): readonly (Frame | Closed)[] {
    return this.#frames.slice(this.#at)
  }

  /** Sends a frame and waits for the next one. */
  ask(frame: unknown): Promise<Frame> {
    this.send(frame)
    return this.next()
  }

  /** Asks for an operation; the answer must be the next frame, and bear the id of the request. */
  async request(operation: Frame, envelope: Frame = {}): Promise<Frame> {
    const request_id = `req-${++requests}`
    const answer = await this.ask({ protocol_version: 1, request_id, ...envelope, operation })
    if (answer.request_id !== request_id) throw new Error(`not the answer to it: ${JSON.stringify(answer)}`)
    return answer
  }

  close(): void {
    this.#socket.close(1000)
  }
}

let requests = 0

/** An upgrade over TLS, as in a deployment, unless `headers` or the path say otherwise. */
export const upgrade = (
  path: string,
  { address = '203.0.113.7', headers = {} as Record<string, string>, scheme = 'https' } = {},
): Promise<Response> =>
  exports.default.fetch(`${ORIGIN.replace('http', scheme)}${path}`, {
    headers: { Upgrade: 'websocket', 'CF-Connecting-IP': address, ...headers },
  })

export type Opened = z.infer<typeof OpenPairingResponse>

export const openPairing = async (client: Client): Promise<Opened> =>
  parsed(await client.send('POST', '/api/v1/pairing'), OpenPairingResponse, 201)

export const pairFrame = (secret: string, more: Frame = {}): Frame => ({
  type: 'pair',
  protocol_version: 1,
  method: /^\d{4}-?\d{4}$/.test(secret) ? 'code' : 'credential',
  secret,
  device_name: 'a phone',
  ...more,
})

export const ROTATING = { capabilities: ['token_rotation'] }

/** A device that has just been paired. */
export type PairedDevice = { device: Device; id: string; path: string; paired: Frame }

export async function pairDevice(client: Client, more: Frame = {}, address?: string): Promise<PairedDevice> {
  const { credential, gateway_id } = await openPairing(client)
  const path = `/g/${gateway_id}`
  const device = await Device.dial(path, address === undefined ? {} : { address })
  const paired = await device.ask(pairFrame(credential, more))
  if (paired.type !== 'paired') throw new Error(`not paired: ${JSON.stringify(paired)}`)
  return { device, id: String(paired.device_id), path, paired }
}

/** Dials again and authenticates with these tokens; the first frame that comes back. */
export async function comeBack(
  { path, id }: Pick<PairedDevice, 'path' | 'id'>,
  tokens: Frame,
): Promise<{ device: Device; answer: Frame }> {
  const device = await Device.dial(path)
  const answer = await device.ask({ type: 'authenticate', protocol_version: 1, device_id: id, ...tokens })
  return { device, answer }
}

/** A bare error, and the end of the connection without a code (RF 3). */
export async function ended(device: Device): Promise<Frame> {
  const error = await device.next()
  const closed = await device.next()
  if (closed.closed !== 1005) throw new Error(`not closed without a code: ${JSON.stringify(closed)}`)
  return error
}
