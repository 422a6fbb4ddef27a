import { evictDurableObject } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import type { Session } from '../../../src/session/session.ts'
import type { Account, Link, ModelHold, ModelLine, Phone, World } from '../remote-device/attached/world.ts'
import { ProtocolWatch } from '../remote-device/protocol-watch.ts'
import type { Fields } from '../remote-device/shapes.ts'
import { openPairing, pairFrame, upgrade } from './device.ts'
import { hibernate, insideGateway, restart } from './gateway-object.ts'
import { until } from './hold.ts'
import { type Client, makeClient } from './router.ts'
import type { Reply, ScriptedModels } from './scripted-models.ts'
import { crash } from './session-object.ts'

/** A place where the model waits: it looks at a flag, each side on its own time. */
function modelHold(): ModelHold {
  let count = 0
  let released = false
  return {
    wait: async () => {
      count++
      await until(() => released)
    },
    reached: (times = 1) => until(() => count >= times),
    release: () => {
      released = true
    },
  }
}

/** One socket into workerd, with everything that comes checked as on a real one. */
class WorkerLink implements Link {
  onFrame: (frame: Fields) => void = () => {}
  onClosed: () => void = () => {}
  closed = false
  readonly watch = new ProtocolWatch()
  readonly #socket: WebSocket
  #hungUp = false

  constructor(socket: WebSocket) {
    this.#socket = socket
    socket.addEventListener('message', ({ data }) => {
      if (!this.#hungUp) this.onFrame(this.watch.received(typeof data === 'string' ? data : new Uint8Array()))
    })
    socket.addEventListener('close', ({ code }) => {
      if (this.closed) return
      this.closed = true
      if (!this.#hungUp && !this.mayBeCut) this.watch.closed(code)
      this.onClosed()
    })
    socket.accept()
  }

  /** Its gateway is about to end. */
  mayBeCut = false

  async send(frame: Fields): Promise<void> {
    if (this.closed) throw new Error('the connection is closed')
    const content = JSON.stringify(frame)
    this.watch.sent(content)
    this.#socket.send(content)
  }

  hangUp(): void {
    this.#hungUp = true
    this.closed = true
    this.#socket.close()
  }

  async handshake(frame: Fields): Promise<Fields> {
    const answered = new Promise<Fields>((resolve) => {
      this.onFrame = resolve
    })
    await this.send(frame)
    const answer = await answered
    this.onFrame = () => {}
    return answer
  }
}

async function dial(path: string): Promise<WorkerLink> {
  const response = await upgrade(path)
  if (response.webSocket === null) throw new Error(`refused: ${response.status} ${await response.text()}`)
  return new WorkerLink(response.webSocket)
}

const toReply = ({ pieces, ...reply }: Exclude<ModelLine, (...args: never[]) => unknown>): Reply => ({
  ...reply,
  ...(pieces === undefined ? {} : { text: pieces }),
})

const sessionStub = (sessionId: string): DurableObjectStub<Session> =>
  // The binding's type does not know the class behind it.
  env.SESSION.getByName(sessionId) as unknown as DurableObjectStub<Session>

/**
 * The world inside workerd, where objects can be put to sleep and killed between any two frames.
 * @param sleepy the gateway's object sleeps before each frame and each call
 */
export function workersWorld(models: ScriptedModels, { sleepy = false } = {}): World {
  models.hasSeeing = true
  const scripts = new Map<string, ModelLine[]>()
  const clients = new Map<string, Client>()
  const links: { userId: string; link: WorkerLink }[] = []
  const clientOf = (userId: string): Client => {
    const client = clients.get(userId)
    if (client === undefined) throw new Error('an account of another world')
    return client
  }
  const doze = async (userId: string) => {
    if (sleepy) await hibernate(userId).catch(ignoreSleeping)
  }
  /** The mocks of a file are taken back after each test, and with them what the model has to say. */
  const arm = () =>
    models.script((request) => {
      const said = request.messages.findLast(({ role }) => role === 'user')?.content ?? ''
      const word = [...scripts.keys()].find((known) => said.includes(known))
      const lines = word === undefined ? undefined : scripts.get(word)
      const line = lines !== undefined && lines.length > 1 ? lines.shift() : lines?.[0]
      if (line === undefined) return { status: 500, error: `nothing is scripted for ${JSON.stringify(said)}` }
      return toReply(typeof line === 'function' ? line(request) : line)
    })
  const note = (userId: string, link: WorkerLink): Link => {
    links.push({ userId, link })
    if (!sleepy) return link
    const send = link.send.bind(link)
    link.send = async (frame) => {
      await doze(userId)
      await send(frame)
    }
    return link
  }
  return {
    account: async (): Promise<Account> => {
      const client = await makeClient()
      clients.set(client.userId, client)
      return {
        userId: client.userId,
        call: async (method, path, body) => {
          await doze(client.userId)
          const response = await client.send(method, `/api/v1${path}`, body)
          const text = await response.text()
          const isJson = response.headers.get('Content-Type')?.includes('json') ?? false
          return { status: response.status, body: isJson ? JSON.parse(text) : { text } }
        },
      }
    },
    pair: async ({ userId }, names = 'session'): Promise<Phone> => {
      const wish: Fields = names === 'thread' ? { wire_names: 'thread' } : {}
      const { credential, gateway_id } = await openPairing(clientOf(userId))
      const path = `/g/${gateway_id}`
      const first = await dial(path)
      const paired = await first.handshake(pairFrame(credential, wish))
      if (paired.type !== 'paired') throw new Error(`not paired: ${JSON.stringify(paired)}`)
      let unused: WorkerLink | null = first
      return {
        deviceId: String(paired.device_id),
        gatewayId: String(paired.gateway_id),
        instanceId: String(paired.instance_id),
        names,
        connect: async () => {
          if (unused !== null) {
            const link = unused
            unused = null
            return note(userId, link)
          }
          const link = await dial(path)
          const { device_id, token } = paired
          const answer = await link.handshake({
            type: 'authenticate',
            protocol_version: 1,
            device_id,
            token,
            ...wish,
          })
          if (answer.type !== 'authenticated') throw new Error(`refused: ${JSON.stringify(answer)}`)
          return note(userId, link)
        },
      }
    },
    script: (word, ...lines) => {
      scripts.set(word, lines)
      arm()
    },
    hold: modelHold,
    model: 'ollama/small',
    seeingModel: 'ollama/seeing',
    faults: {
      hibernate: (userId) => hibernate(userId).catch(ignoreSleeping),
      closeGateway: async (userId) => {
        const own = links.filter((one) => one.userId === userId && !one.link.closed)
        for (const { link } of own) link.mayBeCut = true
        // One that sleeps has to be woken, or its sockets stay.
        await insideGateway(userId, () => {})
        await restart(userId)
        await until(() => own.every(({ link }) => link.closed))
      },
      evictSession: (sessionId) => evictDurableObject(sessionStub(sessionId)).catch(ignoreSleeping),
      crashSession: (sessionId) => crash(sessionId),
    },
    takeBreaches: async () => {
      const faults = links.splice(0).flatMap(({ link }) => {
        link.hangUp()
        return link.watch.faults
      })
      return faults
    },
  }
}

/** One that sleeps already is as good. */
function ignoreSleeping(error: unknown): void {
  if (!String(error).includes('not currently running')) throw error
}
