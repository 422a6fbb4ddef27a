import { afterAll, beforeAll } from 'vitest'
import { type ScriptedModel, startScriptedModel } from '../../node/model-scripts.ts'
import { type ServedRouter, serveInHarness } from '../served-router.ts'
import { servedWorld } from './served-world.ts'
import { attachSuites } from './suites.ts'

/**
 * The suites of attached devices over real sockets.
 * @param hibernating the gateway's object is put to sleep before each frame and each call of its owner
 * @param long the tests that move megabytes as well
 */
export function attachedE2e({ hibernating, long = false }: { hibernating: boolean; long?: boolean }): void {
  let model: ScriptedModel
  let router: ServedRouter

  beforeAll(async () => {
    model = await startScriptedModel(['scripted', 'seeing'])
    router = await serveInHarness({ hibernating, vars: { OLLAMA_BASE_URL: model.url } })
  })

  afterAll(async () => {
    await router?.close()
    await model?.close()
  })

  const world = servedWorld(
    () => router,
    () => model,
  )
  attachSuites(() => world)
  if (long) attachSuites(() => world, { long: true })
}
