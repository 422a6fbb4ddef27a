import type { ModelRequest } from '../../../src/core/prompt.ts'
import { err } from '../../../src/protocol/result.ts'
import { AnthropicProvider } from '../../../src/providers/anthropic.ts'
import { GeminiProvider } from '../../../src/providers/gemini.ts'
import { OllamaProvider } from '../../../src/providers/ollama.ts'
import { OpenAiProvider } from '../../../src/providers/openai.ts'
import { OpenAiCompatibleProvider } from '../../../src/providers/openai-compatible.ts'
import type { ModelProvider } from '../../../src/providers/provider.ts'
import type { Deadlines } from '../../../src/providers/upstream-call.ts'
import type { DialectName } from '../../support/node/conversation-checker.ts'
import { anthropicDialect } from '../../support/node/scripted-upstream-anthropic.ts'
import type { ScriptedDialect } from '../../support/node/scripted-upstream-completion.ts'
import { chatDialect, ollamaDialect } from '../../support/node/scripted-upstream-dialects.ts'
import { geminiDialect } from '../../support/node/scripted-upstream-gemini.ts'
import { responsesDialect } from '../../support/node/scripted-upstream-responses.ts'
import { makeDescriptor, makeRequest } from './support.ts'

/** One adapter with the way in which its provider speaks. */
export type FaultDialect = {
  name: DialectName
  provider: ModelProvider
  request: (streaming?: boolean) => ModelRequest
  wire: ScriptedDialect
  /** What keeps a stream open and says nothing. */
  keepAlive: string
}

export const DEADLINES: Deadlines = { firstByteMs: 3_000, silenceMs: 5_000, totalMs: 30_000 }

const ORIGIN = 'http://lab.internal:8080'
const noModels = async () => err({ category: 'unknown' as const, message: 'nobody asks for a list here' })
const cloud = <Id extends string>(id: Id, baseUrl: string) => ({ id, displayName: id, baseUrl })
const requestTo =
  (provider: ModelRequest['model']['provider'], model: string, local = false) =>
  (streaming = true): ModelRequest =>
    makeRequest({
      model: makeDescriptor({
        provider,
        model,
        local,
        capabilities: { streaming, tools: true, reasoning: false },
        max_output_tokens: 16_000,
      }),
    })

/** Every dialect that the router speaks. */
export const DIALECTS: readonly FaultDialect[] = [
  {
    name: 'anthropic',
    provider: new AnthropicProvider(cloud('anthropic', ORIGIN), noModels, DEADLINES),
    request: requestTo('anthropic', 'claude-sonnet-4-5'),
    wire: anthropicDialect,
    keepAlive: 'event: ping\ndata: {"type":"ping"}\n\n',
  },
  {
    name: 'responses',
    provider: new OpenAiProvider(cloud('openai', `${ORIGIN}/v1`), noModels, DEADLINES),
    request: requestTo('openai', 'gpt-5.2'),
    wire: responsesDialect,
    keepAlive: ': keep-alive\n\n',
  },
  {
    name: 'chat',
    provider: new OpenAiCompatibleProvider(
      {
        id: 'openai-compat:lab',
        displayName: 'Lab',
        baseUrl: `${ORIGIN}/v1`,
        local: false,
        auth: 'none',
      },
      DEADLINES,
    ),
    request: requestTo('openai-compat:lab', 'lab-7b'),
    wire: chatDialect,
    keepAlive: ': OPENROUTER PROCESSING\n\n',
  },
  {
    name: 'gemini',
    provider: new GeminiProvider(cloud('gemini', ORIGIN), noModels, DEADLINES),
    request: requestTo('gemini', 'gemini-3-flash-preview'),
    wire: geminiDialect,
    keepAlive: ': keep-alive\n\n',
  },
  {
    name: 'ollama',
    provider: new OllamaProvider({ baseUrl: ORIGIN, local: true, maxContextTokens: 32_768 }, DEADLINES),
    request: requestTo('ollama', 'qwen3:8b', true),
    wire: ollamaDialect,
    keepAlive: '\n',
  },
]
