import { attachSuites } from '../support/remote-device/attached/suites.ts'
import { workersWorld } from '../support/workers/attach-world.ts'
import { scriptModels } from '../support/workers/scripted-models.ts'

const world = workersWorld(scriptModels())

attachSuites(() => world, { long: true })
