import {
  type ChatRequest,
  lastOf,
  type Reply,
  type ScriptedOllama,
  startScriptedOllama,
} from './scripted-ollama.ts'

/** One turn of a script: what the model says, or how it finds it in what it was asked. */
export type Line = Reply | ((request: ChatRequest) => Reply)

export type ScriptedModel = ScriptedOllama & {
  /**
   * What the model says to prompts that hold this word: one line per call, the last one again and again. A newer script
   * for the same word replaces the older.
   */
  script(word: string, ...lines: Line[]): void
  /** The requests whose newest user text holds this word, in order. */
  asked(word: string): ChatRequest[]
}

/** A scripted Ollama that many tests share, each with words of its own. */
export async function startScriptedModel(models = ['scripted']): Promise<ScriptedModel> {
  const scripts = new Map<string, Line[]>()
  const server = await startScriptedOllama(
    (request) => {
      const said = lastOf(request, 'user')
      const word = [...scripts.keys()].find((known) => said.includes(known))
      const lines = word === undefined ? undefined : scripts.get(word)
      const line = lines !== undefined && lines.length > 1 ? lines.shift() : lines?.[0]
      if (line === undefined) return { status: 500, error: `nothing is scripted for ${JSON.stringify(said)}` }
      return typeof line === 'function' ? line(request) : line
    },
    { models },
  )
  return Object.assign(server, {
    script: (word: string, ...lines: Line[]) => {
      scripts.set(word, lines)
    },
    asked: (word: string) => server.requests.filter((request) => lastOf(request, 'user').includes(word)),
  })
}
