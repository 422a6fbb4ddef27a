// `npm start`: installs what is missing and hands over to src/cli/start.ts on the project's own Node.
import path from 'node:path'
import { ensureInstalled } from './lib-node/ensure-installed.mjs'
import { DIE_WITH_PARENT, OWN_NODE, ROOT } from './lib-node/repository.mjs'
import { runChild } from './lib-node/run-child.mjs'

const installed = await ensureInstalled()
if (installed.ok) {
  const program = path.join(ROOT, 'src/cli/start.ts')
  await import('./lib-node/die-with-parent.mjs')
  process.exitCode = await runChild(OWN_NODE, [
    '--import',
    DIE_WITH_PARENT,
    program,
    ...process.argv.slice(2),
  ])
} else {
  console.error(installed.error.message)
  process.exitCode = installed.error.exitCode
}
