import { makeHoldPoint } from '../../node/hold-point.ts'
import type { ScriptedModel } from '../../node/model-scripts.ts'
import { type RemoteDevice, verifyDevices } from '../device.ts'
import { type GatewayRouter, Home } from '../gateway-home.ts'
import type { Fields } from '../shapes.ts'
import type { Account, Link, Phone, World } from './world.ts'

/** A socket of `ws` on a real port. `mayBeCut`: its router may die. */
function linkOf(device: RemoteDevice, mayBeCut: boolean): Link {
  if (mayBeCut) device.expectCut()
  const link: Link = {
    send: (frame) => device.send(frame),
    onFrame: () => {},
    onClosed: () => {},
    get closed() {
      return device.closeCode !== null
    },
    hangUp: () => device.hangUp(),
  }
  device.onFrame = (frame) => link.onFrame(frame)
  device.onClosed = () => link.onClosed()
  return link
}

/**
 * The world of a router on a real port and a scripted Ollama beside it.
 * @param mayBeCut connections may break, since the router is killed
 */
export function servedWorld(
  router: () => GatewayRouter,
  model: () => ScriptedModel,
  { mayBeCut = false } = {},
): World {
  const homes = new Map<string, Home>()
  const homeOf = (account: Account): Home => {
    const home = homes.get(account.userId)
    if (home === undefined) throw new Error('an account of another world')
    return home
  }
  return {
    account: async () => {
      const home = await Home.open(router())
      const { owner } = home
      homes.set(owner.userId, home)
      return { userId: owner.userId, call: (method, path, body) => owner.call(method, path, body) }
    },
    pair: async (account, names = 'session') => {
      const home = homeOf(account)
      const wish: Fields = names === 'thread' ? { wire_names: 'thread' } : {}
      const { device: first, paired } = await home.pair(wish)
      let unused: RemoteDevice | null = first
      const phone: Phone = {
        deviceId: String(paired.device_id),
        gatewayId: String(paired.gateway_id),
        instanceId: String(paired.instance_id),
        names,
        connect: async () => {
          if (unused !== null) {
            const device = unused
            unused = null
            return linkOf(device, mayBeCut)
          }
          const { device, answer } = await home.authenticate({
            device_id: paired.device_id,
            token: paired.token,
            ...wish,
          })
          if (answer.type !== 'authenticated') throw new Error(`refused: ${JSON.stringify(answer)}`)
          return linkOf(device, mayBeCut)
        },
      }
      return phone
    },
    script: (word, ...lines) =>
      model().script(
        word,
        ...lines.map((line) =>
          typeof line === 'function'
            ? (request: {
                messages: { role: string; content: string }[]
                tools?: { function: { name: string } }[]
              }) =>
                line({
                  messages: request.messages,
                  tools: (request.tools ?? []).map((tool) => tool.function.name),
                })
            : line,
        ),
      ),
    hold: () => {
      const point = makeHoldPoint()
      return { wait: point.hold, reached: point.reached, release: point.release }
    },
    model: 'ollama/scripted',
    seeingModel: 'ollama/seeing',
    faults: null,
    takeBreaches: async () => {
      try {
        await verifyDevices()
        return []
      } catch (error) {
        return [error instanceof Error ? error.message : String(error)]
      }
    },
  }
}
