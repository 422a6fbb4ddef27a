import { afterAll, afterEach, beforeAll } from 'vitest'
import { type ScriptedModel, startScriptedModel } from '../node/model-scripts.ts'
import { connectRequestTests } from './connect-request-tests.ts'
import { verifyDevices } from './device.ts'
import { Home } from './gateway-home.ts'
import { handshakeTests } from './handshake-tests.ts'
import { liveListTests } from './live-list-tests.ts'
import { pairingTests } from './pairing-tests.ts'
import { requestTests } from './request-tests.ts'
import { rotationTests } from './rotation-tests.ts'
import { type ServedRouter, serveInHarness } from './served-router.ts'

/**
 * Remote protocol v1 as a device sees it: real sockets, a client that shares no code with the router.
 * @param hibernating the gateway's object is put to sleep before each frame and each call of its owner
 */
export function gatewaySuites({ hibernating }: { hibernating: boolean }): void {
  let model: ScriptedModel
  let router: ServedRouter
  let first: Home

  beforeAll(async () => {
    model = await startScriptedModel()
    router = await serveInHarness({ hibernating, vars: { OLLAMA_BASE_URL: model.url } })
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
}
