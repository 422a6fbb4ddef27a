import { afterAll, afterEach, beforeAll } from 'vitest'
import { type ScriptedModel, startScriptedModel } from '../support/node/model-scripts.ts'
import { connectRequestTests } from '../support/remote-device/connect-request-tests.ts'
import { verifyDevices } from '../support/remote-device/device.ts'
import { Home } from '../support/remote-device/gateway-home.ts'
import { handshakeTests } from '../support/remote-device/handshake-tests.ts'
import { liveListTests } from '../support/remote-device/live-list-tests.ts'
import { pairingTests } from '../support/remote-device/pairing-tests.ts'
import { requestTests } from '../support/remote-device/request-tests.ts'
import { rotationTests } from '../support/remote-device/rotation-tests.ts'
import { type ServedRouter, serveInHarness } from '../support/remote-device/served-router.ts'

/** Remote protocol v1 as a device sees it: real sockets, a client that shares no code with the router. */

let model: ScriptedModel
let router: ServedRouter
let first: Home

beforeAll(async () => {
  model = await startScriptedModel()
  router = await serveInHarness({ hibernating: false, vars: { OLLAMA_BASE_URL: model.url } })
  first = await Home.open(router)
})

afterAll(async () => {
  await router?.close()
  await model?.close()
})

afterEach(verifyDevices)

const theRouter = () => router

handshakeTests(theRouter, () => first)
pairingTests(theRouter)
rotationTests(theRouter)
connectRequestTests(theRouter)
requestTests(theRouter)
liveListTests(theRouter, () => model)
