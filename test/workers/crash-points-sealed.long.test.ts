import { isFull, tryScripts } from '../support/workers/crash-tier.ts'
import { scriptModels } from '../support/workers/scripted-models.ts'

const models = scriptModels()

tryScripts(models, { stride: isFull() ? 1 : 71, manners: 'both' }, true)
tryScripts(models, { stride: isFull() ? 5 : 390, manners: isFull() ? 'both' : 'in turns', twice: true }, true)
