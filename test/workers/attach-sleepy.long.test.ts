import { attachSuites } from '../support/remote-device/attached/suites.ts'
import { workersWorld } from '../support/workers/attach-world.ts'
import { scriptModels } from '../support/workers/scripted-models.ts'

const world = workersWorld(scriptModels(), { sleepy: true })

// The tests that flood a device need a gateway that remembers how much it sent.
attachSuites(() => world)
