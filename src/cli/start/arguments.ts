import { parseArgs } from 'node:util'
import { DEMO_MODEL } from '../../host/demo/model.ts'
import { parseSessionId } from '../../protocol/execution/ids.ts'
import { err, ok, type Result } from '../../protocol/result.ts'

export const DEFAULT_PORT = 8787
export const DEFAULT_PROMPT = 'What does this project do?'

export const START_HELP = `npm start [-- [options] [prompt]]

Starts a router on this machine, makes an account on it, chooses a local model, and carries out one
task in the folder where you are: "${DEFAULT_PROMPT}" unless you give another. In a terminal it then
waits for more; without one it ends.

  npm start
  npm start -- "where are the settings read?"
  npm start -- --model ollama/qwen3:8b "explain @src/main.ts"

Options:
  --model MODEL         use this model: provider/model, or the name of an Ollama model, or
                        ${DEMO_MODEL}
  --session ID          go on in this session instead of a new one
  --lan                 let devices on the local network and on overlay networks (Tailscale and the
                        like) connect, and run until stopped with Ctrl-C, also without a terminal.
                        Only their sockets are let in; the API stays on 127.0.0.1
  --persist-to FOLDER   keep the router's state there instead of .wrangler/state
  --help                show this

Environment:
  PORT                  port of the router on 127.0.0.1 (${DEFAULT_PORT})
  SWITCHYARD_MODEL      as --model
  OLLAMA_HOST           where Ollama listens, if not on 127.0.0.1:11434

A local model: Ollama (https://ollama.com) is used when it runs and has a model that can call tools,
for instance after \`ollama pull qwen3:8b\`. Otherwise a built-in demo model answers; it follows fixed
rules and is no language model.

A router that already runs here (npm run dev, or another npm start) is used as it is and is not
stopped at the end. Everything that was started is. With --lan there must be none: a router learns
only at its start where devices reach it.
`

export type StartArguments = {
  help: boolean
  prompt: string
  port: number
  /** Whether the port was asked for, rather than taken because nobody said anything. */
  portGiven: boolean
  model: string | undefined
  sessionId: string | undefined
  persistTo: string | undefined
  /** Whether devices on the local network may connect. */
  lan: boolean
}

/** Reads the command line and the environment. The error is a sentence for the user. */
export function readStartArguments(
  argv: readonly string[],
  env: NodeJS.ProcessEnv,
): Result<StartArguments, string> {
  const parsed = parse(argv)
  if (!parsed.ok) return parsed
  const { values, positionals } = parsed.value
  const portText = env.PORT ?? ''
  const port = portText === '' ? DEFAULT_PORT : Number(portText)
  if (!Number.isInteger(port) || port < 1 || port > 65_535) {
    return err(`PORT=${portText} is no port number (1 to 65535).`)
  }
  const session = nonEmpty(values.session)
  const sessionId = session === undefined ? undefined : parseSessionId(session)
  if (sessionId === null) return err(`--session ${session} is no id of a session.`)
  const prompt = positionals.join(' ').trim()
  return ok({
    help: values.help ?? false,
    prompt: prompt === '' ? DEFAULT_PROMPT : prompt,
    port,
    portGiven: portText !== '',
    model: nonEmpty(values.model) ?? nonEmpty(env.SWITCHYARD_MODEL),
    sessionId,
    persistTo: nonEmpty(values['persist-to']),
    lan: values.lan ?? false,
  })
}

function parse(argv: readonly string[]) {
  try {
    return ok(
      parseArgs({
        args: [...argv],
        allowPositionals: true,
        options: {
          help: { type: 'boolean', short: 'h' },
          model: { type: 'string' },
          session: { type: 'string' },
          lan: { type: 'boolean' },
          'persist-to': { type: 'string' },
        },
      }),
    )
  } catch (error) {
    // parseArgs says in its message which argument is wrong and why.
    return err(error instanceof Error ? error.message : 'wrong arguments')
  }
}

const nonEmpty = (text: string | undefined): string | undefined =>
  text === undefined || text === '' ? undefined : text
