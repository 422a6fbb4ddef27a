import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { seededRandom } from '../support/node/seeded.ts'
import { type StatefulFolder, statefulFolder } from '../support/node/stateful-folder.ts'
import { type RemoteDevice, verifyDevices } from '../support/remote-device/device.ts'
import { makeFrameMaker } from '../support/remote-device/frame-maker.ts'
import { authenticateFrame, Home, ROTATING } from '../support/remote-device/gateway-home.ts'
import { type ServedRouter, serveInProcess } from '../support/remote-device/served-router.ts'
import type { Fields } from '../support/remote-device/shapes.ts'

/** Valid, mutated and random frames over many sockets at once, from devices and from strangers. */

const FRAMES = process.env.SWITCHYARD_FULL === '1' ? 50_000 : 5_000
/** `SWITCHYARD_SEED` repeats a run, as far as timing lets it. */
const SEED = Number(process.env.SWITCHYARD_SEED ?? 20_261_130)
const SOCKETS_AT_ONCE = 12
/** Frames that a device sends before it waits for what it is owed. */
const BURST = 25
/** One socket in so many is a stranger's. */
const STRANGERS = 3
const DEADLINE_MS = 600_000

/** What a runtime prints about code that threw, or a promise that nobody waited for. */
const EXCEPTION = /exception|uncaught|unhandled|✘|\[ERROR\]|\w*Error:|\n\s+at \S+ \(/i

let folder: StatefulFolder
let router: ServedRouter

beforeAll(async () => {
  folder = statefulFolder()
  router = await serveInProcess(folder.path)
})

afterAll(async () => {
  await router?.close()
  folder?.remove()
})

afterEach(verifyDevices)

test(`[U34] whatever ${FRAMES} frames say, only frames of the contract come back (seed ${SEED})`, {
  timeout: DEADLINE_MS,
}, async () => {
  console.log(`gateway fuzz: SWITCHYARD_SEED=${SEED}, ${FRAMES} frames`)
  const startedWith = router.log().length
  const home = await Home.open(router)
  // Paired before anything is fuzzed: failed pairings lock the gateway for minutes.
  const accounts: Fields[] = []
  for (let n = 0; n < SOCKETS_AT_ONCE; n++) {
    const { paired, device } = await home.pair(n % 3 === 2 ? { wire_names: 'thread' } : {})
    device.hangUp()
    accounts.push({
      device_id: paired.device_id,
      token: paired.token,
      ...(n % 3 === 2 ? { wire_names: 'thread' } : {}),
    })
  }
  const { paired: rotating, device: asleep } = await home.pair(ROTATING)
  asleep.hangUp()
  await home.owner.must('POST', '/connect-requests/listen')

  let left = FRAMES
  const worker = async (index: number): Promise<void> => {
    const random = seededRandom(SEED + index)
    const maker = makeFrameMaker(random, [rotating, ...accounts])
    const mine = accounts[index] ?? {}
    for (let round = 0; left > 0; round++) {
      const device = await home.dial({ address: `10.${index}.${round % 250}.${Math.floor(random() * 250)}` })
      if (round % STRANGERS === 0) {
        left--
        await strange(device, maker.first())
        continue
      }
      const answer = await device.handshake(authenticateFrame(mine))
      expect(answer.type).toBe('authenticated')
      for (let n = 0; n < BURST && device.closeCode === null; n++) {
        left--
        await device.send(maker.request(device.watch.names)).catch(() => undefined)
      }
      await device.settled()
      device.hangUp()
    }
  }
  await Promise.all(Array.from({ length: SOCKETS_AT_ONCE }, (_, index) => worker(index)))
  await verifyDevices()

  // It still serves: those that it knew, and others.
  const { device, answer } = await home.authenticate(accounts[0] ?? {})
  expect(answer.type).toBe('authenticated')
  expect(await device.request({ type: 'list_sessions' })).toMatchObject({ type: 'sessions' })
  expect(await home.owner.devices()).not.toEqual([])
  const { device: another } = await (await Home.open(router)).pair()
  await another.pinged()
  expect(router.log().slice(startedWith)).not.toMatch(EXCEPTION)
})

/** A stranger says one thing: the answer is one frame, after which the socket is closed, or it is let in, or it waits. */
async function strange(device: RemoteDevice, content: string | Uint8Array): Promise<void> {
  const answer = await device.handshake(content)
  if (answer.type === 'error') await device.ended()
  else expect(['paired', 'authenticated', 'connect_pending', 'pong']).toContain(answer.type)
  device.hangUp()
}
