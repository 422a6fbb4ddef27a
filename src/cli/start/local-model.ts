import { DEMO_MODEL } from '../../host/demo/model.ts'
import { type DemoModelServer, startDemoModel } from '../../host/demo/server.ts'
import { ModelReference } from '../../protocol/execution/ids.ts'
import { err, ok, type Result } from '../../protocol/result.ts'
import { findOllama, ollamaOrigin, preferredModel } from './ollama.ts'

/** The model to route to by default, and the endpoint that the router is given as its Ollama. */
export type ChosenModel = {
  /** `provider/model` */
  reference: string
  /** What OLLAMA_BASE_URL of the router is set to. */
  ollamaUrl: string
  /** A sentence about the choice. */
  note: string
  /** Set when the demo model was started for this; whoever asked closes it. */
  demo?: DemoModelServer
}

const DEMO_REFERENCE = `ollama/${DEMO_MODEL}`

export const DEMO_NOTE =
  'the built-in demo model: it follows fixed rules and is no language model. For a real one, install Ollama (https://ollama.com), run `ollama pull qwen3:8b`, and `npm start` again.'

/**
 * Chooses what runs without any key: what the user named, else a tool-calling model of a running Ollama, else the demo
 * model. The error is a sentence for the user.
 * @param wanted `provider/model`, or the bare name of an Ollama model
 */
export async function chooseModel(
  wanted: string | undefined,
  env: NodeJS.ProcessEnv,
): Promise<Result<ChosenModel, string>> {
  const reference = wanted === undefined ? undefined : toReference(wanted)
  if (reference === DEMO_REFERENCE) return startDemo('chosen by you; ')
  const origin = ollamaOrigin(env.OLLAMA_HOST)
  const daemon = await findOllama(origin)
  if (reference?.startsWith('ollama/')) {
    const name = reference.slice('ollama/'.length)
    const found = daemon?.models.find((model) => model.name === name || model.name === `${name}:latest`)
    if (found)
      return ok({
        reference: `ollama/${found.name}`,
        ollamaUrl: origin,
        note: `chosen by you, from Ollama at ${origin}`,
      })
    if (daemon === undefined)
      return err(`No Ollama answers at ${origin}, so ${reference} cannot be used. Is it running?`)
    const names = daemon.models.map((model) => model.name).join(', ')
    return err(
      `Ollama at ${origin} has no model ${name} that can call tools. ${names === '' ? `\`ollama pull ${name}\` may fetch it.` : `It has: ${names}.`}`,
    )
  }
  const preferred = preferredModel(daemon?.models ?? [])
  const local = preferred
    ? ok({ reference: `ollama/${preferred.name}`, ollamaUrl: origin, note: `from Ollama at ${origin}` })
    : await startDemo(daemon === undefined ? '' : `Ollama at ${origin} has no model that can call tools; `)
  if (!local.ok || reference === undefined) return local
  return ok({ ...local.value, reference, note: 'chosen by you' })
}

/** A bare name is one of Ollama's, in whose names slashes may occur. */
function toReference(wanted: string): string {
  const parsed = ModelReference.safeParse(wanted)
  return parsed.success ? parsed.data : `ollama/${wanted}`
}

async function startDemo(reason: string): Promise<Result<ChosenModel, string>> {
  const demo = await startDemoModel()
  if (!demo.ok) return err(`The demo model could not be started: ${demo.error.message}`)
  return ok({
    reference: DEMO_REFERENCE,
    ollamaUrl: demo.value.url,
    note: `${reason}${DEMO_NOTE}`,
    demo: demo.value,
  })
}
