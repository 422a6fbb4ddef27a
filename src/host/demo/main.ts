import { parseArgs } from 'node:util'
import { DEMO_MODEL } from './model.ts'
import { startDemoModel } from './server.ts'

const HELP = `The built-in demo model, served like an Ollama daemon on 127.0.0.1.

  node src/host/demo/main.ts [--port PORT]     any free port unless given

A router uses it with:  npm run dev -- --var OLLAMA_BASE_URL:http://127.0.0.1:PORT
The model is ollama/${DEMO_MODEL}. It follows fixed rules; it is no language model.
`

/** A wrong argument, or a port that cannot be had. */
const EXIT_USAGE = 2

async function main(): Promise<number> {
  const options = readOptions()
  if (typeof options === 'string') {
    console.error(options)
    return EXIT_USAGE
  }
  if (options.help) {
    console.log(HELP)
    return 0
  }
  const started = await startDemoModel({ port: options.port })
  if (!started.ok) {
    console.error(`${started.error.message} Choose another with --port.`)
    return EXIT_USAGE
  }
  console.log(started.value.url)
  await new Promise<void>((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => resolve())
  })
  await started.value.close()
  return 0
}

function readOptions(): { help: boolean; port: number } | string {
  try {
    const { values } = parseArgs({
      options: {
        port: { type: 'string', default: '0' },
        help: { type: 'boolean', short: 'h', default: false },
      },
    })
    const port = Number(values.port)
    const valid = /^\d+$/.test(values.port) && port <= 65_535
    return valid ? { help: values.help, port } : `--port ${values.port} is no port number (0 to 65535).`
  } catch (error) {
    return error instanceof Error ? error.message : 'wrong arguments'
  }
}

process.exitCode = await main()
