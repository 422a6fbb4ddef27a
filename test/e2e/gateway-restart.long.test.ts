import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { type ScriptedModel, startScriptedModel } from '../support/node/model-scripts.ts'
import { type StatefulFolder, statefulFolder } from '../support/node/stateful-folder.ts'
import { verifyDevices } from '../support/remote-device/device.ts'
import { eventually } from '../support/remote-device/eventually.ts'
import { Home, pairFrame, ROTATING } from '../support/remote-device/gateway-home.ts'
import { serveInProcess } from '../support/remote-device/served-router.ts'

/** What a device holds, and what its owner has started, outlives a router that is killed (RF 5, RF 6, D04, D40). */

let folder: StatefulFolder
let model: ScriptedModel
let router: Awaited<ReturnType<typeof serveInProcess>>

beforeAll(async () => {
  folder = statefulFolder()
  model = await startScriptedModel()
  router = await serveInProcess(folder.path, { OLLAMA_BASE_URL: model.url })
})

afterAll(async () => {
  await router?.close()
  await model?.close()
  folder?.remove()
})

afterEach(verifyDevices)

async function killAndRestart(): Promise<void> {
  await router.process.kill9()
  await router.process.restart()
}

test('[U02, D04] devices, tokens, an unacknowledged rotation, an open challenge and the list survive a kill', async () => {
  const home = await Home.open(router)
  const { device, paired } = await home.pair()
  const { device: rotating, paired: family } = await home.pair(ROTATING)
  rotating.hangUp()
  const first = { device_id: family.device_id, refresh_token: family.refresh_token }
  const { device: unacknowledged, answer } = await home.authenticate(first)
  const session = await home.owner.newSession('Outlives the router')
  model.script('<outlives>', { pieces: ['Yes.'] })
  await device.request({ type: 'subscribe_sessions' })
  await home.owner.run(session, '<outlives>')
  const rows = await device.nextList(([row]) => row?.activity === 'idle')
  const { code } = await home.openPairing()
  for (const one of [device, unacknowledged]) one.expectCut()

  await killAndRestart()

  // The answer that got lost is given again, as it was.
  const { device: again, answer: repeated } = await home.authenticate(first)
  expect(repeated).toEqual(answer)
  await again.send({ type: 'token_ack', rotation_id: answer.rotation_id })
  // The challenge is still open.
  const phone = await home.dial()
  expect(await phone.handshake(pairFrame({ method: 'code', secret: code }))).toMatchObject({
    type: 'paired',
    instance_id: paired.instance_id,
  })
  const { device: back, answer: known } = await home.authenticate({
    device_id: paired.device_id,
    token: paired.token,
  })
  expect(known).toMatchObject({
    type: 'authenticated',
    instance_id: paired.instance_id,
    expires_at: paired.expires_at,
  })
  expect(await back.request({ type: 'subscribe_sessions' })).toMatchObject({ sessions: rows })
  await home.owner.run(session, '<outlives>')
  const [row] = await back.nextList(([only]) => only?.turn_count === 2 && only.activity === 'idle')
  expect(row?.registration_epoch).toBe(rows[0]?.registration_epoch)
  for (const one of [again, phone, back]) one.expectCut()

  await killAndRestart()

  // It was acknowledged before: now it is a replay.
  const second = { device_id: family.device_id, refresh_token: answer.refresh_token }
  const { device: newest, answer: rotated } = await home.authenticate(second)
  expect(rotated.type).toBe('authenticated')
  newest.hangUp()
  expect(await home.refusal(first)).toBe('token_replayed')
  expect(await home.refusal({ ...second, refresh_token: rotated.refresh_token })).toBe('unauthorized')

  await killAndRestart()

  // A revocation holds, too, and so does its reason.
  expect(await home.refusal({ ...second, refresh_token: rotated.refresh_token })).toBe('unauthorized')
  const ended = (await home.owner.devices()).find(({ device_id: id }) => id === family.device_id)
  expect(ended).toMatchObject({ revoked_reason: 'token_replayed', online: false })
})

test('[D41] a kill in the middle of connection requests leaves none behind, and the window open', async () => {
  const home = await Home.open(router)
  await home.owner.must('POST', '/connect-requests/listen')
  const request = { type: 'connect_request', protocol_version: 1, device_name: 'nearby' }
  const pending = await home.dial({ address: '10.8.0.1' })
  expect(await pending.handshake(request)).toMatchObject({ type: 'connect_pending' })
  const approved = await home.dial({ address: '10.8.0.2' })
  const { request_id: id } = await approved.handshake(request)
  const { code } = await home.owner.must('POST', `/connect-requests/${String(id)}/accept`)
  await approved.next()
  for (const one of [pending, approved]) one.expectCut()

  await killAndRestart()

  await eventually(() => home.owner.connectRequests()).toEqual([])
  expect((await home.failedPairing({ method: 'code', secret: code })).code).toBe('pairing_failed')
  for (const address of ['10.8.0.1', '10.8.0.2']) {
    const again = await home.dial({ address })
    expect(await again.handshake(request)).toMatchObject({ type: 'connect_pending' })
  }
  const { paired } = await home.pair()
  expect(await home.owner.devices()).toMatchObject([{ device_id: paired.device_id }])
})

test('[D41] failed pairings and the lock they lead to survive a kill', async () => {
  const home = await Home.open(router)
  for (let round = 0; round < 2; round++) {
    await home.openPairing()
    for (let attempt = 0; attempt < 5; attempt++) {
      expect((await home.failedPairing({ secret: 'A'.repeat(43) })).code).toBe('pairing_failed')
    }
  }

  await killAndRestart()

  const { credential } = await home.openPairing()
  expect((await home.failedPairing({ secret: credential })).code).toBe('rate_limited')
})
