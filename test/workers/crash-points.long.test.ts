import { isFull, tryScripts } from '../support/workers/crash-tier.ts'
import { scriptModels } from '../support/workers/scripted-models.ts'

const models = scriptModels()

tryScripts(models, { stride: isFull() ? 1 : 41, manners: 'both' }, false)
tryScripts(
  models,
  { stride: isFull() ? 5 : 210, manners: isFull() ? 'both' : 'in turns', twice: true },
  false,
)
