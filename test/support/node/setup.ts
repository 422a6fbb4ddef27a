import { afterEach } from 'vitest'
import { removeTempFolders } from './temp-folder.ts'

// Files of one tier share their modules: what a module registered for itself would hold in the first of them only.
afterEach(removeTempFolders)
