import type { ModelRequest } from '../core/prompt.ts'
import type { Redaction } from './provider-message.ts'

/** Everything of a request that must not come back in an error message. */
export function redactionFor(request: ModelRequest, credential: string | undefined): Redaction {
  const texts = request.messages.flatMap((message) => {
    if (message.role === 'tool') return message.results.map(({ content }) => content)
    if (message.role !== 'assistant') return [message.text]
    return [message.text, ...message.toolCalls.map((call) => JSON.stringify(call.arguments))]
  })
  const names = [request.model.model, ...request.tools.map(({ name }) => name)]
  return { ...(credential === undefined ? {} : { credential }), texts, names }
}
