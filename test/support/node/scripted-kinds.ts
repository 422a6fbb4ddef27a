import type { Provider } from '../../../src/protocol/execution/ids.ts'
import { checkConversation, type DialectName } from './conversation-checker.ts'
import type { ScriptedAnswer, SeenRequest } from './scripted-upstream.ts'
import { anthropicDialect } from './scripted-upstream-anthropic.ts'
import {
  piecesUntil,
  type ScriptedCompletion,
  type ScriptedDialect,
  streamedAnswer,
} from './scripted-upstream-completion.ts'
import { chatDialect, ollamaDialect } from './scripted-upstream-dialects.ts'
import { geminiDialect } from './scripted-upstream-gemini.ts'
import { responsesDialect } from './scripted-upstream-responses.ts'
import { startScriptedUpstream } from './scripted-upstream-server.ts'

/** One kind of provider as a deployment knows it. */
export type ProviderKind = {
  provider: Provider
  model: string
  wire: ScriptedDialect
  conversation: DialectName
  /** The variables that lead a router to an origin that speaks this dialect. */
  vars: (origin: string) => Record<string, string>
}

export const OLLAMA_MODEL = 'qwen3:8b'

/** The kinds of providers that a router can have, each with a model whose window is known. */
export const PROVIDER_KINDS: readonly ProviderKind[] = [
  {
    provider: 'anthropic',
    model: 'claude-sonnet-4-5',
    wire: anthropicDialect,
    conversation: 'anthropic',
    vars: (origin) => ({ ANTHROPIC_BASE_URL: origin }),
  },
  {
    provider: 'gemini',
    model: 'gemini-3-flash-preview',
    wire: geminiDialect,
    conversation: 'gemini',
    vars: (origin) => ({ GEMINI_BASE_URL: origin }),
  },
  {
    provider: 'openai',
    model: 'gpt-5.2',
    wire: responsesDialect,
    conversation: 'responses',
    vars: (origin) => ({ OPENAI_BASE_URL: `${origin}/v1` }),
  },
  {
    provider: 'openai-compat:lab',
    model: 'lab-7b',
    wire: chatDialect,
    conversation: 'chat',
    vars: (origin) => ({
      PROVIDERS: JSON.stringify([
        {
          name: 'lab',
          base_url: `${origin}/v1`,
          auth: 'api_key',
          models: [{ model: 'lab-7b', max_context_tokens: 32_768 }],
        },
      ]),
    }),
  },
  {
    provider: 'ollama',
    model: OLLAMA_MODEL,
    wire: ollamaDialect,
    conversation: 'ollama',
    vars: (origin) => ({ OLLAMA_BASE_URL: origin }),
  },
]

/** What a round of tools comes with: reasoning and its proof, and a proof of the call itself. */
export const REASONING_PROOF = 'EqQBCgIYAhIM+sealed/9Zw=='
export const CALL_PROOF = 'CiIBVKhc+call/a7w=='
/** A file's content: once it is in a request, the calls have been answered. */
export const FILE_CONTENT = 'alpha beta gamma'

const TOOLS: ScriptedCompletion = {
  reasoning: ['Two files ', 'then.'],
  signature: REASONING_PROOF,
  text: ['Reading ', 'both.'],
  calls: [
    { id: 'call_1', name: 'read_file', arguments: { path: 'a.txt' }, signature: CALL_PROOF },
    { id: 'call_2', name: 'read_file', arguments: { path: 'b.txt' } },
  ],
  usage: { input: 1200, output: 80, cached: 1000, reasoning: 30 },
}

/** Answers a completion by the word that its conversation holds. */
function answer(wire: ScriptedDialect, request: SeenRequest): ScriptedAnswer {
  const body = JSON.stringify(request.body)
  const refusal = (['bad_key', 'rate_limited', 'server_error', 'too_long'] as const).find((reason) =>
    body.includes(`<${reason}>`),
  )
  if (refusal !== undefined) return wire.refusal(refusal) ?? { status: 500 }
  const cut = { headers: { 'content-type': wire.contentType }, body: piecesUntil(wire, 'Hm').join('') }
  if (body.includes('<cut>')) return { ...cut, ending: 'break' }
  if (body.includes('<hang>')) return { ...cut, ending: 'hang' }
  if (body.includes('<tools>') && !body.includes(FILE_CONTENT)) return streamedAnswer(wire, TOOLS)
  const text = body.includes('<tools>') ? ['Both are ', 'read.'] : ['Größe: 🚂 ', 'fährt.']
  return streamedAnswer(wire, { text, usage: { input: 1200, output: 80, cached: 1000 } })
}

/** A provider of this kind on a port of its own, which takes only conversations that the real one takes. */
export function startScriptedKind({ wire, conversation, model }: ProviderKind) {
  return startScriptedUpstream(
    (request) => {
      if (request.path === '/api/tags') return json({ models: [{ name: model, model }] })
      if (request.path === '/api/show') return json({ capabilities: ['completion', 'tools'] })
      return request.method === 'POST' ? answer(wire, request) : { status: 404 }
    },
    {
      check: ({ method, path, body }) =>
        method === 'POST' && path !== '/api/show' ? checkConversation(conversation, body) : [],
    },
  )
}

const json = (body: unknown): ScriptedAnswer => ({
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify(body),
})
