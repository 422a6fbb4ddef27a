import { tryScripts } from '../support/workers/crash-tier.ts'
import { scriptModels } from '../support/workers/scripted-models.ts'

const models = scriptModels()

tryScripts(models, { stride: 150, manners: 'in turns' }, true)
