#!/usr/bin/env node
// Starts the command line, which is TypeScript, with the Node that the repository brings: it runs types natively, the
// Node on the PATH may be older. Arguments, streams, signals and the exit code are passed through.
import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '..')
const node = path.join(root, 'node_modules', '.bin', 'node')

if (!existsSync(node)) {
  console.error(`switchyard is not installed yet: run \`npm start\` (or \`npm ci\`) in ${root} first`)
  process.exit(2)
}

const child = spawn(node, [path.join(root, 'src', 'cli', 'main.ts'), ...process.argv.slice(2)], {
  stdio: 'inherit',
})

// A terminal delivers Ctrl-C to both of us; a signal that was sent to this process alone must reach the child, too. It
// goes on as SIGTERM, which the child counts apart, so that one Ctrl-C is never taken for two.
process.on('SIGINT', () => child.kill('SIGTERM'))
for (const signal of ['SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal))

child.on('error', (error) => {
  console.error(`switchyard could not be started: ${error.message}`)
  process.exit(1)
})
child.on('exit', (code, signal) => {
  process.exitCode = code ?? 128 + (signal === null ? 0 : os.constants.signals[signal])
})
