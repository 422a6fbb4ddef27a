import { RemoteDevice } from './device.ts'
import { Owner, type Pairing } from './owner.ts'
import type { Fields } from './shapes.ts'

/** A router that devices can reach. */
export type GatewayRouter = {
  /** Its origin, without a slash at the end. */
  url: string
  /** Called before everything that a device or an owner sends, with the owner's id: forces hibernation, say. */
  before(userId: string): Promise<void>
}

export type HomeDialOptions = {
  origin?: string
  address?: string
  headers?: Readonly<Record<string, string>>
  path?: string
}

/** An account on a router with a gateway of its own: what one test does there touches no other. */
export class Home {
  readonly owner: Owner
  readonly #router: GatewayRouter
  #gatewayId: string | null = null

  static async open(router: GatewayRouter): Promise<Home> {
    return new Home(router, await Owner.create(router.url, router.before))
  }

  private constructor(router: GatewayRouter, owner: Owner) {
    this.#router = router
    this.owner = owner
  }

  /** Opens a challenge. */
  async openPairing(): Promise<Pairing> {
    const pairing = await this.owner.openPairing()
    this.#gatewayId = pairing.gateway_id
    return pairing
  }

  /** The id of this gateway; learnt from a challenge, which is opened for it if there was none yet. */
  async gatewayId(): Promise<string> {
    return this.#gatewayId ?? (await this.openPairing()).gateway_id
  }

  /** Opens a socket to this gateway. */
  async dial({ path, ...options }: HomeDialOptions = {}): Promise<RemoteDevice> {
    const base = this.#router.url.replace(/^http/, 'ws')
    const target = path ?? `/g/${await this.gatewayId()}`
    const beforeFrame = () => this.#router.before(this.owner.userId)
    return RemoteDevice.dial(`${base}${target}`, { ...options, beforeFrame })
  }

  /** Pairs a device by a fresh credential; fields of the pair frame may be given. */
  async pair(fields: Fields = {}, options: HomeDialOptions = {}): Promise<PairedDevice> {
    const { credential } = await this.openPairing()
    const device = await this.dial(options)
    const answer = await device.handshake(pairFrame({ secret: credential, ...fields }))
    if (answer.type !== 'paired') throw new Error(`pairing was refused: ${JSON.stringify(answer)}`)
    return { device, paired: answer }
  }

  /** Connects with what the frame names of the tokens. */
  async authenticate(
    fields: Fields,
    options: HomeDialOptions = {},
  ): Promise<{ device: RemoteDevice; answer: Fields }> {
    const device = await this.dial(options)
    return { device, answer: await device.handshake(authenticateFrame(fields)) }
  }

  /** As `authenticate`, when it is refused: the code of the bare error, after the connection has ended. */
  async refusal(fields: Fields, options: HomeDialOptions = {}): Promise<unknown> {
    const device = await this.dial(options)
    await device.send(authenticateFrame(fields))
    return (await device.lastWords()).code
  }

  /** A pair frame that is refused: its bare error, after the connection has ended. */
  async failedPairing(fields: Fields, options: HomeDialOptions = {}): Promise<Fields> {
    const device = await this.dial(options)
    await device.send(pairFrame(fields))
    return device.lastWords()
  }
}

export type PairedDevice = { device: RemoteDevice; paired: Fields }

export const pairFrame = (fields: Fields): Fields => ({
  type: 'pair',
  protocol_version: 1,
  method: 'credential',
  device_name: 'A phone',
  ...fields,
})

export const authenticateFrame = (fields: Fields): Fields => ({
  type: 'authenticate',
  protocol_version: 1,
  ...fields,
})

export const ROTATING: Fields = { capabilities: ['token_rotation'] }
